#include "volunteer/lend/machine.hpp"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>

#include "common/os/priority.hpp"
#include "common/os/process.hpp"

namespace gleaner::volunteer {
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
  std::error_code error;
  for (const char* file : {"/.dockerenv", "/run/.containerenv", "/run/systemd/container"}) {
    if (std::filesystem::exists(root_ + file, error)) return "a container";
  }
  return "";
}

void give_way_as_group(const std::string& root) {
  const auto own = own_group(root);
  if (!own || *own == "/") return;
  const std::string folder = root + "/sys/fs/cgroup" + *own;
  if (read_text_file(folder + "/cgroup.procs").value_or("") != std::to_string(os::process_id()))
    return;
  std::ofstream(folder + "/cpu.idle") << 1 << '\n';
}

std::uint32_t minute_of_week(std::int64_t wall_seconds) {
  const auto seconds = static_cast<std::time_t>(wall_seconds);
  std::tm local{};
  (void)os::local_time(seconds, local);
  const int day = (local.tm_wday + 6) % 7;  // from Monday
  return static_cast<std::uint32_t>((day * 24 + local.tm_hour) * 60 + local.tm_min);
}

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
