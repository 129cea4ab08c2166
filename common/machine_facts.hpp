// The machine as the system tells it, and the part of it that this process may use. Stateless; any
// thread. any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gleaner {

struct MachineFacts {
  std::uint32_t cores = 1;         // that this process may use
  std::uint64_t memory_bytes = 0;  // of the machine, or of the control group if that is less
  std::string host_name;
};

// Asks the system.
MachineFacts machine_facts();

// Below, `root` stands before /proc and /sys; empty on a real machine.

// The text of a small file there; nullopt where it cannot be read. At most 64 KiB.
std::optional<std::string> read_text_file(const std::string& path);
// The number after `key` in a text, and before anything else: "avg10=1.25" for "avg10=".
std::optional<double> number_after(const std::string& text, const std::string& key);
// The control group of this process, "/user.slice/session-2.scope", in the one hierarchy of all
// controllers; nullopt elsewhere.
std::optional<std::string> own_group(const std::string& root);
// Processors' worth that the control group of this process allows: 1.5; nullopt without a limit.
std::optional<double> cpu_quota(const std::string& root);
// Bytes of memory that it allows; nullopt without a limit.
std::optional<std::uint64_t> memory_limit(const std::string& root);

}  // namespace gleaner
