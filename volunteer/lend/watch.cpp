#include "volunteer/lend/watch.hpp"

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

namespace {

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
      // One that was there at the start may have been used long ago.
      const std::int64_t age_s = std::max<std::int64_t>(wall_seconds() - facts.st_atim.tv_sec, 0);
      seen.last_use = now - std::chrono::duration_cast<Micros>(std::chrono::seconds(age_s));
    } else {
      // A change tells, whatever has been done to the wall clock.
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

namespace {

constexpr Millis kSilence{5'000};
// Nobody has more graphical sessions at a time.
constexpr std::size_t kSessionsMax = 64;

}  // namespace

void SessionReports::report(const std::string& session, Instant last_use, Instant now) {
  const std::lock_guard lock(mutex_);
  if (heard_.size() >= kSessionsMax && !heard_.contains(session)) return;
  heard_[session] = {last_use, now};
}

std::optional<UseReading> SessionReports::read(Instant now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(heard_, [&](const auto& entry) { return now - entry.second.at >= kSilence; });
  if (heard_.empty()) return std::nullopt;
  UseReading reading{"session helper", Instant{}, "none"};
  for (const auto& [session, heard] : heard_) {
    if (heard.last_use < *reading.last_use) continue;
    reading.last_use = heard.last_use;
    reading.detail = "session " + session;
  }
  return reading;
}

std::set<std::string> SessionReports::sessions() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> names;
  for (const auto& [session, heard] : heard_) names.insert(session);
  return names;
}

namespace {

constexpr Millis kHurried{25};
constexpr Millis kUnhurried{500};
constexpr Millis kSecond{1'000};

}  // namespace

Watch::Watch(Options options)
    : options_(std::move(options)),
      bus_({[this] { return reports_.sessions(); }, options_.root, "libsystemd.so.0"}),
      machine_(options_.root, options_.environment) {
  sources_.push_back(std::make_unique<Terminals>(options_.root));
  sources_.push_back(std::make_unique<InputDevices>(options_.root));
  thread_ = std::thread([this] { run(); });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watch::set_hurry(bool is_on) {
  {
    const std::lock_guard lock(mutex_);
    if (is_hurried_ == is_on) return;
    is_hurried_ = is_on;
  }
  wake_.notify_all();
}

void Watch::allow_sleep() {
  const std::lock_guard lock(mutex_);
  may_sleep_ = true;
}

void Watch::run() {
  while (true) {
    const Instant now = monotonic_now();
    Readings readings = read(now);
    if (is_news(readings, now)) {
      reported_ = readings;
      reported_at_ = now;
      options_.report(std::move(readings));
    }
    std::unique_lock lock(mutex_);
    if (std::exchange(may_sleep_, false) && bus_.is_suspending()) bus_.allow_sleep();
    if (is_stopping_) return;
    wake_.wait_for(lock, is_hurried_ ? kHurried : kUnhurried);
    if (is_stopping_) return;
  }
}

Readings Watch::read(Instant now) {
  std::vector<UseReading> uses;
  const auto ask = [&](UseSource& source) {
    auto use = source.read(now);
    if (use) uses.push_back(std::move(*use));
    return use.has_value();
  };
  bool is_told = ask(reports_);
  is_told = ask(bus_) || is_told;
  for (const auto& source : sources_) (void)ask(*source);
  if (!slow_at_ || now - *slow_at_ >= kSecond) {
    slow_at_ = now;
    slow_ = {};
    machine_.read(slow_);
  }
  Readings readings = slow_;
  readings.has_desktop = readings.has_desktop || bus_.has_desktop();
  readings.is_metered = bus_.is_metered();
  readings.is_suspending = bus_.is_suspending();
  if (slow_.has_desktop && !is_told) {
    uses.push_back({"display", std::nullopt,
                    "nobody tells of it; run gleaner-volunteer session-helper in its session"});
  }
  readings.uses = std::move(uses);
  return readings;
}

bool Watch::is_news(const Readings& readings, Instant now) const {
  if (!reported_at_ || now - *reported_at_ >= kSecond) return true;
  if (readings.is_suspending != reported_.is_suspending) return true;
  if (readings.uses.size() != reported_.uses.size()) return true;
  for (std::size_t i = 0; i < readings.uses.size(); ++i) {
    const auto& use = readings.uses[i].last_use;
    const auto& before = reported_.uses[i].last_use;
    if (use.has_value() != before.has_value()) return true;
    // Use that goes on is told once a second.
    if (use && *use - *before >= kSecond) return true;
  }
  return false;
}

}  // namespace gleaner::volunteer
