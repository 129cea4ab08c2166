#include "common/machine_facts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "common/os/process.hpp"

namespace gleaner {
namespace {

// The smallest value of `file` in this process's group and all groups around it. A container sees
// its own root. `parse` returns a file's value, if any.
template <class T, class Parse>
std::optional<T> least_of_groups(const std::string& root, const char* file, Parse parse) {
  std::optional<T> least;
  std::string folder = root + "/sys/fs/cgroup";
  std::istringstream names(own_group(root).value_or("/").substr(1));
  std::string name;
  do {
    const auto text = read_text_file(folder + "/" + file);
    T value{};
    if (text && parse(std::istringstream(*text), value))
      least = std::min(least.value_or(value), value);
    folder += "/";
  } while (std::getline(names, name, '/') && !(folder += name).empty());
  return least;
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
  return least_of_groups<double>(root, "cpu.max", [](std::istringstream text, double& cores) {
    double period = 0;
    if (!(text >> cores >> period) || cores <= 0 || period <= 0) return false;
    cores /= period;
    return true;
  });
}

std::optional<std::uint64_t> memory_limit(const std::string& root) {
  return least_of_groups<std::uint64_t>(
      root, "memory.max",
      [](std::istringstream text, std::uint64_t& bytes) { return text >> bytes && bytes > 0; });
}

MachineFacts machine_facts() {
  MachineFacts facts;
  facts.cores = os::usable_cores();
  if (const auto quota = cpu_quota("")) {
    facts.cores = std::min(facts.cores, static_cast<std::uint32_t>(std::ceil(*quota)));
  }
  facts.memory_bytes = os::machine_memory();
  if (const auto limit = memory_limit("")) {
    facts.memory_bytes = std::min(facts.memory_bytes, *limit);
  }
  facts.host_name = os::host_name();
  return facts;
}

}  // namespace gleaner
