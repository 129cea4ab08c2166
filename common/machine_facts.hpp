// The machine, and the part of it that this process may use: affinity, quotas and limits of control
// groups of either version. Every default number of threads comes from here. Stateless; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gleaner {

struct MachineFacts {
  std::uint32_t cores = 1;         // usable by this process
  std::uint64_t memory_bytes = 0;  // of the machine, or of the control group if that is less
  std::string host_name;
};

MachineFacts machine_facts();

// The text of a small file (at most 64 KiB); nullopt if it cannot be read.
std::optional<std::string> read_text_file(const std::string& path);
// The number directly after `key` in a text: 1.25 for "avg10=" in "avg10=1.25".
std::optional<double> number_after(const std::string& text, const std::string& key);

// In the functions below `root` precedes /proc and /sys; `root` is empty on a real machine.

// The control group of this process, such as "/user.slice/session-2.scope", in the unified
// hierarchy; nullopt elsewhere.
std::optional<std::string> own_group(const std::string& root);
// Number of processors that the control group allows, such as 1.5; nullopt without a limit.
std::optional<double> cpu_quota(const std::string& root);
// Bytes of memory that the control group allows; nullopt without a limit.
std::optional<std::uint64_t> memory_limit(const std::string& root);

}  // namespace gleaner
