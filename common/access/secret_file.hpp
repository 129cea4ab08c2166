// Small files that only their owner may read or write. Blocks on the disk: for start-up and for a
// user's commands.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace gleaner {

// Readers of a secret besides root. Mounted secrets of systemd and Kubernetes are links, or files
// that their group may read.
enum class SecretFrom { kOwner, kMount };

// The text of `path`; nullopt when it does not exist. Refuses anything but a file, a file that
// others may read or write, and more than `bytes_max`. kMount follows links and lets the group
// read.
Result<std::optional<std::string>> read_secret_file(const std::string& path, std::size_t bytes_max,
                                                    SecretFrom from = SecretFrom::kOwner);

enum class SecretFile { kNew, kReplaced };

// Writes `text` completely or not at all, with mode 0600 whatever the umask, never through a link.
// kNew leaves an existing file as it is, and succeeds.
Result<void> write_secret_file(const std::string& path, std::string_view text, SecretFile mode);

}  // namespace gleaner
