#include "common/machine_facts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "common/os/process.hpp"

namespace gleaner {
namespace {

// This process's group and all groups around it, in the unified hierarchy and in the older one of a
// controller ("cpu", "memory"). A container sees its own root.
std::vector<std::string> groups_around(const std::string& root, const std::string& controller) {
  const std::string base = root + "/sys/fs/cgroup";
  std::vector<std::string> folders = {base, base + "/" + controller};
  std::istringstream lines(read_text_file(root + "/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/a/b", "0::/a/b"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_its = ("," + controllers + ",").find("," + controller + ",") != std::string::npos;
    if (!controllers.empty() && !is_its) continue;
    std::string folder = controllers.empty() ? base : base + "/" + controllers;
    std::istringstream names(line.substr(second + 1));
    for (std::string name; std::getline(names, name, '/');) {
      if (!name.empty()) folder += "/" + name;
      folders.push_back(folder);
      // The controllers of one hierarchy are in one folder, or each has a link to it.
      if (!controllers.empty()) {
        folders.push_back(base + "/" + controller +
                          folder.substr(base.size() + 1 + controllers.size()));
      }
    }
  }
  return folders;
}

std::optional<double> number_in(const std::string& path) {
  const auto text = read_text_file(path);
  return text ? number_after(*text, "") : std::nullopt;
}

}  // namespace

std::optional<std::string> read_text_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::string text(std::size_t{64} << 10, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::optional<double> number_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return std::nullopt;
  const char* begin = text.c_str() + at + key.size();
  char* end = nullptr;
  const double value = std::strtod(begin, &end);
  return end == begin ? std::nullopt : std::optional(value);
}

std::optional<std::string> own_group(const std::string& root) {
  const auto text = read_text_file(root + "/proc/self/cgroup");
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return std::nullopt;
}

std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> least;
  for (const std::string& group : groups_around(root, "cpu")) {
    double quota = 0;
    double period = 0;
    std::istringstream(read_text_file(group + "/cpu.max").value_or("")) >> quota >> period;
    if (period <= 0) {
      quota = number_in(group + "/cpu.cfs_quota_us").value_or(0);
      period = number_in(group + "/cpu.cfs_period_us").value_or(0);
    }
    if (quota > 0 && period > 0) least = std::min(least.value_or(quota / period), quota / period);
  }
  return least;
}

std::optional<std::uint64_t> memory_limit(const std::string& root) {
  constexpr double kNone = double{1ULL << 60};  // the older hierarchy writes no limit as a huge one
  std::optional<std::uint64_t> least;
  for (const std::string& group : groups_around(root, "memory")) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      const auto bytes = number_in(group + file);
      if (!bytes || *bytes <= 0 || *bytes >= kNone) continue;
      const auto whole = static_cast<std::uint64_t>(*bytes);
      least = std::min(least.value_or(whole), whole);
    }
  }
  return least;
}

MachineFacts machine_facts() {
  MachineFacts facts;
  // Tests put a folder in place of the machine.
  const char* const given = std::getenv("GLEANER_MACHINE_ROOT");  // NOLINT(concurrency-mt-unsafe)
  const std::string root = given == nullptr ? "" : given;
  facts.cores = os::usable_cores();
  if (const auto quota = cpu_quota(root)) {
    facts.cores = std::min(facts.cores, static_cast<std::uint32_t>(std::ceil(*quota)));
  }
  facts.memory_bytes = os::machine_memory();
  if (const auto limit = memory_limit(root)) {
    facts.memory_bytes = std::min(facts.memory_bytes, *limit);
  }
  facts.host_name = os::host_name();
  return facts;
}

}  // namespace gleaner
