#include "volunteer/idle/input_devices.hpp"

#include <fcntl.h>
#include <linux/input.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "volunteer/idle/text_file.hpp"

namespace gleaner::volunteer {
namespace {

constexpr Millis kLookAgain{5'000};

// Sensors send events without anybody's hand; they have no keys.
bool has_keys(int device) {
  unsigned long kinds = 0;
  if (ioctl(device, EVIOCGBIT(0, sizeof kinds), &kinds) < 0) return errno == ENOTTY;
  return (kinds & (1UL << EV_KEY)) != 0;
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
    // Nobody knows when it was last used, or somebody has just plugged it in.
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

}  // namespace gleaner::volunteer
