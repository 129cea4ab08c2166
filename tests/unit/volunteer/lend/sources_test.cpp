// The readers of files, with a folder in the place of the machine.
#include <fcntl.h>
#include <linux/input.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "common/thread_pool.hpp"
#include "volunteer/lend/machine.hpp"
#include "volunteer/lend/system_bus.hpp"
#include "volunteer/lend/watch.hpp"

namespace gleaner::volunteer {
namespace {

namespace fs = std::filesystem;

struct FakeRoot {
  FakeRoot() {
    std::string pattern = (fs::temp_directory_path() / "gleaner-root-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }

  ~FakeRoot() { fs::remove_all(path); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path + name).substr(0, (path + name).rfind('/')));
    std::ofstream(path + name) << text << '\n';
  }

  // The access time, in seconds before this moment.
  void access(const std::string& name, std::int64_t seconds_ago) const {
    const timespec times[2] = {{wall_seconds() - seconds_ago, 0}, {0, UTIME_OMIT}};
    REQUIRE(utimensat(AT_FDCWD, (path + name).c_str(), times, 0) == 0);
  }

  std::map<std::string, std::string> environment;

  [[nodiscard]] Machine machine() const {
    return {path, [this](const char* name) -> const char* {
              const auto found = environment.find(name);
              return found == environment.end() ? nullptr : found->second.c_str();
            }};
  }

  std::string path;
};

Instant after_start(std::int64_t second) {
  return Instant(std::chrono::duration_cast<Micros>(std::chrono::seconds(1'000'000 + second)));
}

}  // namespace

TEST_CASE("system bus: without libsystemd a logind that runs cannot tell", "[idle]") {
  const FakeRoot root;
  SystemBus bus({{}, root.path, "libgleaner-absent.so.0"});
  REQUIRE_FALSE(bus.read(after_start(0)));

  root.write("/run/systemd/sessions/1", "");
  const auto use = bus.read(after_start(1));
  REQUIRE(use);
  REQUIRE_FALSE(use->last_use);
  REQUIRE(use->detail.find("install libsystemd0") != std::string::npos);
}

TEST_CASE("terminals: the latest of consoles and logins counts, and a change counts at once",
          "[idle]") {
  const FakeRoot root;
  Terminals terminals(root.path);
  REQUIRE_FALSE(terminals.read(after_start(0)).has_value());  // no such thing here
  root.write("/dev/pts/0", "");
  root.write("/dev/pts/ptmx", "");
  root.write("/dev/tty1", "");
  root.access("/dev/pts/0", 500);
  root.access("/dev/pts/ptmx", 0);
  root.access("/dev/tty1", 900);
  const auto first = terminals.read(after_start(0));
  REQUIRE(first->last_use <= after_start(-499));
  REQUIRE(first->last_use >= after_start(-502));
  REQUIRE(first->detail == "pts/0");
  root.access("/dev/tty1", 300);
  const auto typed = terminals.read(after_start(7));
  REQUIRE(typed->last_use == after_start(7));  // whatever the wall clock says
  REQUIRE(typed->detail == "tty1");
  REQUIRE(terminals.read(after_start(60))->last_use == after_start(7));
  // A login that is gone is no use any more; a new one is.
  fs::remove(root.path + "/dev/tty1");
  REQUIRE(terminals.read(after_start(61))->last_use < after_start(-400));
  root.write("/dev/pts/1", "");
  root.access("/dev/pts/1", 0);
  REQUIRE(terminals.read(after_start(62))->last_use >= after_start(60));
}

TEST_CASE("input devices: an event is use; devices that may not be read are no source", "[idle]") {
  const FakeRoot root;
  InputDevices devices(root.path);
  REQUIRE_FALSE(devices.read(after_start(0)).has_value());
  fs::create_directories(root.path + "/dev/input");
  const std::string path = root.path + "/dev/input/event0";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  REQUIRE_FALSE(devices.read(after_start(1)).has_value());  // it looks for new ones every 5 s
  REQUIRE(devices.read(after_start(6))->last_use == after_start(6));
  REQUIRE(devices.read(after_start(7))->last_use == after_start(6));
  const int writer = open(path.c_str(), O_WRONLY | O_NONBLOCK);
  REQUIRE(writer >= 0);
  input_event event{};
  event.type = EV_KEY;
  REQUIRE(write(writer, &event, sizeof event) == static_cast<ssize_t>(sizeof event));
  const auto used = devices.read(after_start(8));
  REQUIRE(used->last_use == after_start(8));
  REQUIRE(used->detail == "event0");
  REQUIRE(devices.read(after_start(9))->last_use == after_start(8));
  close(writer);
}

TEST_CASE("session helper: the latest report counts, and a silent helper is forgotten", "[idle]") {
  SessionReports reports;
  REQUIRE_FALSE(reports.read(after_start(0)).has_value());
  reports.report("2", after_start(-100), after_start(0));
  reports.report("5", after_start(-10), after_start(1));
  REQUIRE(reports.read(after_start(2))->last_use == after_start(-10));
  REQUIRE(reports.read(after_start(2))->detail == "session 5");
  REQUIRE(reports.sessions() == std::set<std::string>{"2", "5"});
  REQUIRE(reports.read(after_start(5))->last_use == after_start(-10));
  REQUIRE(reports.sessions() == std::set<std::string>{"5"});
  REQUIRE_FALSE(reports.read(after_start(6)).has_value());
}

TEST_CASE("machine: mains power wins over batteries, and a mouse's battery is none", "[idle]") {
  const FakeRoot root;
  REQUIRE_FALSE(root.machine().on_battery().has_value());
  root.write("/sys/class/power_supply/mouse/type", "Battery");
  root.write("/sys/class/power_supply/mouse/scope", "Device");
  root.write("/sys/class/power_supply/mouse/status", "Discharging");
  REQUIRE_FALSE(root.machine().on_battery().has_value());
  root.write("/sys/class/power_supply/BAT0/type", "Battery");
  root.write("/sys/class/power_supply/BAT0/status", "Discharging");
  REQUIRE(root.machine().on_battery() == true);
  root.write("/sys/class/power_supply/AC/type", "Mains");
  root.write("/sys/class/power_supply/AC/online", "1");
  REQUIRE(root.machine().on_battery() == false);
  root.write("/sys/class/power_supply/AC/online", "0");
  REQUIRE(root.machine().on_battery() == true);
  root.write("/sys/class/power_supply/BAT0/status", "Full");
  REQUIRE(root.machine().on_battery() == false);
}

TEST_CASE("machine: the hottest zone counts, and nonsense does not", "[idle]") {
  const FakeRoot root;
  REQUIRE_FALSE(root.machine().celsius().has_value());
  root.write("/sys/class/thermal/thermal_zone0/temp", "45000");
  root.write("/sys/class/thermal/thermal_zone1/temp", "61500");
  root.write("/sys/class/thermal/thermal_zone2/temp", "-274000");
  root.write("/sys/class/thermal/thermal_zone3/temp", "999000");
  root.write("/sys/class/thermal/cooling_device0/temp", "99000");
  REQUIRE(*root.machine().celsius() == Approx(61.5));
}

TEST_CASE("machine: memory and pressure are read, and its own pressure is not others'", "[idle]") {
  const FakeRoot root;
  const std::string quiet = "some avg10=0.50 avg60=0.00 avg300=0.00 total=1";
  const std::string loud = "some avg10=42.25 avg60=9.00 avg300=0.00 total=1";
  REQUIRE_FALSE(root.machine().cpu_pressure().has_value());
  root.write("/proc/meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB");
  root.write("/proc/pressure/memory", loud + "\nfull avg10=1.00 avg60=0 avg300=0 total=1");
  root.write("/proc/self/cgroup", "9:name=systemd:/\n0::/system.slice/gleaner.service");
  root.write("/sys/fs/cgroup/system.slice/cpu.pressure", loud);
  root.write("/sys/fs/cgroup/system.slice/gleaner.service/cpu.pressure", loud);
  root.write("/sys/fs/cgroup/system.slice/ssh.service/cpu.pressure", quiet);
  REQUIRE(root.machine().memory_bytes() == 2048 * 1024);
  REQUIRE(*root.machine().memory_pressure() == Approx(42.25));
  REQUIRE(*root.machine().cpu_pressure() == Approx(0.5));
  root.write("/sys/fs/cgroup/user.slice/cpu.pressure", loud);
  REQUIRE(*root.machine().cpu_pressure() == Approx(42.25));
  root.write("/proc/self/cgroup", "0::/");
  REQUIRE_FALSE(root.machine().cpu_pressure().has_value());
}

TEST_CASE("machine: containers and jobs are told from machines", "[idle]") {
  FakeRoot root;
  REQUIRE(root.machine().confinement().empty());
  root.write("/run/.containerenv", "");
  REQUIRE(root.machine().confinement() == "a container");
  root.environment["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  REQUIRE(root.machine().confinement() == "a pod of Kubernetes");
  root.environment["SLURM_JOB_ID"] = "17";
  REQUIRE(root.machine().confinement() == "job 17 of Slurm");
}

TEST_CASE("machine: the least quota of the control groups around it is its processors", "[idle]") {
  const FakeRoot root;
  REQUIRE_FALSE(cpu_quota(root.path).has_value());
  root.write("/proc/self/cgroup", "0::/a.slice/b.scope");
  root.write("/sys/fs/cgroup/a.slice/cpu.max", "150000 100000");
  root.write("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "max 100000");
  REQUIRE(*cpu_quota(root.path) == Approx(1.5));
  root.write("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "50000 100000");
  REQUIRE(*cpu_quota(root.path) == Approx(0.5));
  // As a container sees itself.
  root.write("/proc/self/cgroup", "0::/");
  root.write("/sys/fs/cgroup/cpu.max", "200000 100000");
  REQUIRE(*cpu_quota(root.path) == Approx(2));
}

TEST_CASE("machine: the least limit of the control groups around it is its memory", "[idle]") {
  const FakeRoot root;
  REQUIRE_FALSE(memory_limit(root.path).has_value());
  root.write("/proc/self/cgroup", "0::/a.slice/b.scope");
  root.write("/sys/fs/cgroup/a.slice/memory.max", "max");
  REQUIRE_FALSE(memory_limit(root.path).has_value());
  root.write("/sys/fs/cgroup/a.slice/b.scope/memory.max", "1073741824");
  REQUIRE(*memory_limit(root.path) == std::uint64_t{1} << 30);
  root.write("/sys/fs/cgroup/memory.max", "536870912");
  REQUIRE(*memory_limit(root.path) == std::uint64_t{1} << 29);
}

TEST_CASE("machine: limits of the older hierarchy count, by either name of its folder", "[idle]") {
  for (const char* folder : {"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"}) {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "4:cpu,cpuacct:/a/b\n3:memory:/a\n0::/");
    root.write(std::string(folder) + "/a/cpu.cfs_quota_us", "-1");
    root.write(std::string(folder) + "/a/cpu.cfs_period_us", "100000");
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    REQUIRE_FALSE(cpu_quota(root.path).has_value());
    REQUIRE_FALSE(memory_limit(root.path).has_value());
    root.write(std::string(folder) + "/a/b/cpu.cfs_quota_us", "150000");
    root.write(std::string(folder) + "/a/b/cpu.cfs_period_us", "100000");
    root.write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824");
    REQUIRE(*cpu_quota(root.path) == Approx(1.5));
    REQUIRE(*memory_limit(root.path) == std::uint64_t{1} << 30);
  }
  // As a container sees itself: the path is the host's, and the mount the container's own group.
  const FakeRoot root;
  root.write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/1234");
  root.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000");
  root.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  REQUIRE(*cpu_quota(root.path) == Approx(1));
}

TEST_CASE("machine: the temperature of a processor is read where there is no thermal zone",
          "[idle]") {
  const FakeRoot root;
  root.write("/sys/class/hwmon/hwmon0/name", "nvme");
  root.write("/sys/class/hwmon/hwmon0/temp1_input", "95000");
  REQUIRE_FALSE(root.machine().celsius().has_value());
  for (const char* chip : {"k10temp", "zenpower", "coretemp"}) {
    root.write("/sys/class/hwmon/hwmon1/name", chip);
    root.write("/sys/class/hwmon/hwmon1/temp1_input", "70500");
    root.write("/sys/class/hwmon/hwmon1/temp3_input", "81000");
    root.write("/sys/class/hwmon/hwmon1/temp1_max", "99000");
    REQUIRE(*root.machine().celsius() == Approx(81));
  }
}

TEST_CASE("machine: only a control group of its own is made idle", "[idle]") {
  const FakeRoot root;
  const std::string folder = "/sys/fs/cgroup/a.service";
  root.write("/proc/self/cgroup", "0::/a.service");
  root.write(folder + "/cpu.idle", "0");
  const auto is_idle = [&] {
    int value = -1;
    std::ifstream(root.path + folder + "/cpu.idle") >> value;
    return value == 1;
  };
  root.write(folder + "/cgroup.procs", std::to_string(getpid()) + "\n1");
  give_way_as_group(root.path);
  REQUIRE_FALSE(is_idle());
  root.write(folder + "/cgroup.procs", std::to_string(getpid()));
  give_way_as_group(root.path);
  REQUIRE(is_idle());
}

TEST_CASE("session: it gives way while the program runs, and then is as before", "[idle]") {
  const FakeRoot root;
  const std::string file = "/proc/self/autogroup";
  const auto text = [&] {
    std::string line;
    std::ifstream stream(root.path + file);
    std::getline(stream, line);
    return line;
  };
  root.write(file, "/autogroup-6 nice 4");
  {
    const QuietSession session(root.path, kNiceIdle);
    REQUIRE(text() == "19");
  }
  REQUIRE(text() == "4");
  root.write(file, "/autogroup-6 nice 4");
  {
    const QuietSession session(root.path, 3);
    REQUIRE(text() == "/autogroup-6 nice 4");
  }
  REQUIRE(text() == "/autogroup-6 nice 4");
  const FakeRoot elsewhere;
  const QuietSession session(elsewhere.path, kNiceIdle);
  REQUIRE_FALSE(std::ifstream(elsewhere.path + file).good());
}

}  // namespace gleaner::volunteer
