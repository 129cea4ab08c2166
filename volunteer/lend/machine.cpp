#include "volunteer/lend/machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include "common/thread_pool.hpp"

namespace gleaner::volunteer {
namespace {

std::optional<double> some_pressure(const std::string& path) {
  const auto text = read_text_file(path);
  return text ? number_after(*text, "some avg10=") : std::nullopt;
}

}  // namespace

void Machine::read(Readings& readings) const {
  readings.confinement = confinement();
  readings.has_desktop = readings.has_desktop || has_display();
  readings.on_battery = on_battery();
  readings.celsius = celsius();
  readings.memory_bytes = memory_bytes();
  readings.cpu_pressure = cpu_pressure();
  readings.memory_pressure = memory_pressure();
  readings.minute_of_week = minute_of_week(wall_seconds());
}

std::string Machine::confinement() const {
  const auto job = [this](const char* variable, const char* what) -> std::string {
    const char* id = environment_(variable);
    return id == nullptr ? "" : std::string("job ") + id + " of " + what;
  };
  for (const auto& [variable, what] :
       {std::pair("SLURM_JOB_ID", "Slurm"), {"PBS_JOBID", "PBS"}, {"LSB_JOBID", "LSF"}}) {
    if (std::string text = job(variable, what); !text.empty()) return text;
  }
  if (environment_("_CONDOR_SCRATCH_DIR") != nullptr) return "a job of HTCondor";
  if (environment_("KUBERNETES_SERVICE_HOST") != nullptr) return "a pod of Kubernetes";
  for (const char* file : {"/.dockerenv", "/run/.containerenv", "/run/systemd/container"}) {
    if (access((root_ + file).c_str(), F_OK) == 0) return "a container";
  }
  return "";
}

std::optional<bool> Machine::on_battery() const {
  std::optional<bool> result;
  for (const auto& supply : entries_of(root_ + "/sys/class/power_supply")) {
    const std::string folder = supply.string();
    const std::string type = read_text_file(folder + "/type").value_or("");
    // The battery of a mouse says nothing of the machine.
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
  std::optional<double> hottest;
  for (const auto& zone : entries_of(root_ + "/sys/class/thermal")) {
    if (!zone.filename().string().starts_with("thermal_zone")) continue;
    const auto text = read_text_file(zone.string() + "/temp");
    const auto millidegrees = text ? number_after(*text, "") : std::nullopt;
    if (!millidegrees || *millidegrees <= 0 || *millidegrees > kSane * 1000) continue;
    hottest = std::max(hottest.value_or(0), *millidegrees / 1000);
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

void give_way_as_group(const std::string& root) {
  const auto own = own_group(root);
  if (!own || *own == "/") return;
  const std::string folder = root + "/sys/fs/cgroup" + *own;
  if (read_text_file(folder + "/cgroup.procs").value_or("") != std::to_string(getpid())) return;
  std::ofstream(folder + "/cpu.idle") << 1 << '\n';
}

std::uint32_t minute_of_week(std::int64_t wall_seconds) {
  const auto seconds = static_cast<std::time_t>(wall_seconds);
  std::tm local{};
  localtime_r(&seconds, &local);
  const int day = (local.tm_wday + 6) % 7;  // from Monday
  return static_cast<std::uint32_t>((day * 24 + local.tm_hour) * 60 + local.tm_min);
}

namespace {

// "/autogroup-6 nice 0"
std::optional<int> niceness_of_session(const std::string& path) {
  std::istringstream text(read_text_file(path).value_or(""));
  std::string group;
  std::string word;
  int nice = 0;
  if (!(text >> group >> word >> nice) || word != "nice") return std::nullopt;
  return nice;
}

void write(const std::string& path, int nice) {
  std::ofstream(path) << nice << '\n';
}

}  // namespace

QuietSession::QuietSession(const std::string& root, int nice)
    : path_(root + "/proc/self/autogroup") {
  const int wanted = std::min(nice, kNiceMax);
  const std::optional<int> now = niceness_of_session(path_);
  if (!now || *now >= wanted) return;
  before_ = now;
  write(path_, wanted);
}

QuietSession::~QuietSession() {
  if (before_) write(path_, *before_);
}

}  // namespace gleaner::volunteer
