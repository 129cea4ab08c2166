#include <fcntl.h>
#include <linux/input.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <utility>
#include <vector>

#include "volunteer/lend/machine.hpp"
#include "volunteer/lend/watch.hpp"

namespace gleaner::volunteer {
namespace {

constexpr Millis kLookAgain{5'000};

// Devices without keys are sensors, which send events without any user.
bool has_keys(int device) {
  unsigned long kinds = 0;
  if (ioctl(device, EVIOCGBIT(0, sizeof kinds), &kinds) < 0) return errno == ENOTTY;
  return (kinds & (1UL << EV_KEY)) != 0;
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "pts/3" and "tty1", not "ptmx", "tty" and "ttyS0".
std::vector<std::string> terminal_names(const std::string& root) {
  std::vector<std::string> names;
  for (const auto& path : entries_of(root + "/dev/pts")) {
    if (is_number(path.filename().string())) names.push_back("pts/" + path.filename().string());
  }
  for (int console = 1; console < 64; ++console) names.push_back("tty" + std::to_string(console));
  return names;
}

}  // namespace

InputDevices::~InputDevices() {
  for (const auto& [name, descriptor] : open_) close(descriptor);
}

void InputDevices::look_for_devices(Instant now) {
  if (looked_at_ && now - *looked_at_ < kLookAgain) return;
  looked_at_ = now;
  for (const auto& path : entries_of(root_ + "/dev/input")) {
    const std::string name = path.filename().string();
    if (!name.starts_with("event") || open_.contains(name)) continue;
    const int device = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (device < 0) continue;
    if (!has_keys(device)) {
      close(device);
      continue;
    }
    open_.emplace(name, device);
    // Its last use is unknown, or somebody has just plugged it in.
    last_use_ = now;
    last_device_ = name;
  }
}

std::optional<UseReading> InputDevices::read(Instant now) {
  look_for_devices(now);
  for (auto entry = open_.begin(); entry != open_.end();) {
    std::array<input_event, 64> events{};
    bool is_gone = false;
    while (true) {
      const ssize_t bytes = ::read(entry->second, events.data(), sizeof events);
      if (bytes > 0) {
        last_use_ = now;
        last_device_ = entry->first;
      }
      if (bytes < 0 && errno == ENODEV) is_gone = true;
      if (bytes < static_cast<ssize_t>(sizeof events)) break;
    }
    if (is_gone) close(entry->second);
    entry = is_gone ? open_.erase(entry) : std::next(entry);
  }
  if (open_.empty()) return std::nullopt;
  return UseReading{"input devices", last_use_, last_device_};
}

std::optional<UseReading> Terminals::read(Instant now) {
  std::error_code error;
  if (!std::filesystem::exists(root_ + "/dev/pts", error)) return std::nullopt;
  UseReading reading{"terminals", Instant{}, "none"};
  std::map<std::string, Seen> present;
  for (const std::string& name : terminal_names(root_)) {
    struct stat facts {};

    if (stat((root_ + "/dev/" + name).c_str(), &facts) != 0) continue;
    Seen seen;
    seen.accessed_ns = std::int64_t{facts.st_atim.tv_sec} * 1'000'000'000 + facts.st_atim.tv_nsec;
    const auto known = seen_.find(name);
    if (known == seen_.end()) {
      // A terminal from before the start may have been used long ago.
      const std::int64_t age_s = std::max<std::int64_t>(wall_seconds() - facts.st_atim.tv_sec, 0);
      seen.last_use = now - std::chrono::duration_cast<Micros>(std::chrono::seconds(age_s));
    } else {
      // A changed time means use, whatever happened to the wall clock.
      const bool is_same = known->second.accessed_ns == seen.accessed_ns;
      seen.last_use = is_same ? known->second.last_use : now;
    }
    if (seen.last_use > *reading.last_use) {
      reading.last_use = seen.last_use;
      reading.detail = name;
    }
    present.emplace(name, seen);
  }
  seen_ = std::move(present);
  return reading;
}

std::vector<std::unique_ptr<UseSource>> use_sources(const std::string& root) {
  std::vector<std::unique_ptr<UseSource>> sources;
  sources.push_back(std::make_unique<Terminals>(root));
  sources.push_back(std::make_unique<InputDevices>(root));
  return sources;
}

}  // namespace gleaner::volunteer
