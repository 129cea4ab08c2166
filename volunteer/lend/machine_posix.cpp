#include <algorithm>
#include <sstream>

#include "volunteer/lend/machine.hpp"

namespace gleaner::volunteer {
namespace {

std::optional<double> some_pressure(const std::string& path) {
  const auto text = read_text_file(path);
  return text ? number_after(*text, "some avg10=") : std::nullopt;
}

}  // namespace

std::optional<bool> Machine::on_battery() const {
  std::optional<bool> result;
  for (const auto& supply : entries_of(root_ + "/sys/class/power_supply")) {
    const std::string folder = supply.string();
    const std::string type = read_text_file(folder + "/type").value_or("");
    // The battery of a device, for instance a mouse, is not the machine's.
    if (read_text_file(folder + "/scope").value_or("") == "Device") continue;
    if (type == "Mains" || type == "USB") {
      if (read_text_file(folder + "/online").value_or("0") == "1") return false;
      if (type == "Mains" && !result) result = false;
    } else if (type == "Battery") {
      const bool drains = read_text_file(folder + "/status").value_or("") == "Discharging";
      result = result.value_or(false) || drains;
    }
  }
  return result;
}

std::optional<double> Machine::celsius() const {
  constexpr double kSane = 200;
  // Disks and network cards have sensors with other limits.
  constexpr const char* kProcessors[] = {"k10temp", "zenpower", "coretemp", "cpu_thermal"};
  std::optional<double> hottest;
  const auto read = [&](const std::filesystem::path& path) {
    const auto text = read_text_file(path.string());
    const auto millidegrees = text ? number_after(*text, "") : std::nullopt;
    if (!millidegrees || *millidegrees <= 0 || *millidegrees > kSane * 1000) return;
    hottest = std::max(hottest.value_or(0), *millidegrees / 1000);
  };
  for (const auto& zone : entries_of(root_ + "/sys/class/thermal")) {
    if (zone.filename().string().starts_with("thermal_zone")) read(zone / "temp");
  }
  for (const auto& chip : entries_of(root_ + "/sys/class/hwmon")) {
    const std::string name = read_text_file((chip / "name").string()).value_or("");
    if (std::ranges::find(kProcessors, name) == std::end(kProcessors)) continue;
    for (const auto& file : entries_of(chip.string())) {
      const std::string sensor = file.filename().string();
      if (sensor.starts_with("temp") && sensor.ends_with("_input")) read(file);
    }
  }
  return hottest;
}

std::optional<std::uint64_t> Machine::memory_bytes() const {
  const auto text = read_text_file(root_ + "/proc/meminfo");
  const auto kib = text ? number_after(*text, "MemAvailable:") : std::nullopt;
  if (!kib || *kib < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*kib) * 1024;
}

std::optional<double> Machine::cpu_pressure() const {
  const auto own = own_group(root_);
  if (!own || *own == "/") return std::nullopt;
  std::optional<double> most;
  std::string level = root_ + "/sys/fs/cgroup";
  std::istringstream names(own->substr(1));
  for (std::string name; std::getline(names, name, '/');) {
    for (const auto& group : entries_of(level)) {
      if (group.filename() == name) continue;
      const auto pressure = some_pressure(group.string() + "/cpu.pressure");
      if (pressure) most = std::max(most.value_or(0), *pressure);
    }
    level += "/" + name;
  }
  return most;
}

std::optional<double> Machine::memory_pressure() const {
  return some_pressure(root_ + "/proc/pressure/memory");
}

bool Machine::has_display() const {
  return !entries_of(root_ + "/tmp/.X11-unix").empty();
}

}  // namespace gleaner::volunteer
