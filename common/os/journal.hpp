// Access to the systemd journal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gleaner::os {

// Whether JOURNAL_STREAM, "DEVICE:INODE", names the file with these numbers.
bool names_file(std::string_view journal_stream, std::uint64_t device, std::uint64_t inode);

// A function that sends one entry, as fields "NAME=value". Empty if `stream` does not lead to the
// journal, or there is no journal. Call at start-up, before other threads run.
std::function<void(const std::vector<std::string>& fields)> journal_behind(std::FILE* stream);

}  // namespace gleaner::os
