// Small files that only their owner may read or write. Blocks on the disk: at start-up, and for
// what a person asks for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace gleaner {

// Who may have a secret besides root. Mounted secrets, as systemd and Kubernetes make them, are
// links or files that their group may read.
enum class SecretFrom { kOwner, kMount };

// The text of `path`; nullopt when there is no such file. Refuses what is no file, a file that
// others may read or write, and more than `bytes_max`. kMount follows links and allows the group to
// read.
Result<std::optional<std::string>> read_secret_file(const std::string& path, std::size_t bytes_max,
                                                    SecretFrom from = SecretFrom::kOwner);

enum class SecretFile { kNew, kReplaced };

// Puts `text` there whole or not at all, mode 0600 whatever the umask, never through a link. kNew
// does nothing where the file exists: the caller reads it then.
Result<void> write_secret_file(const std::string& path, std::string_view text, SecretFile mode);

}  // namespace gleaner
