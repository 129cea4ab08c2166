#include "volunteer/lend/watch.hpp"

#include <utility>

namespace gleaner::volunteer {
namespace {

constexpr Millis kSilence{5'000};
// No machine has more graphical sessions at a time.
constexpr std::size_t kSessionsMax = 64;

constexpr Millis kHurried{25};
constexpr Millis kUnhurried{500};
constexpr Millis kSecond{1'000};

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

Watch::Watch(Options options)
    : options_(std::move(options)),
      bus_({[this] { return reports_.sessions(); }, options_.root, "libsystemd.so.0"}),
      machine_(options_.root, options_.environment),
      sources_(use_sources(options_.root)) {
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
    // Continued use is reported once a second.
    if (use && *use - *before >= kSecond) return true;
  }
  return false;
}

}  // namespace gleaner::volunteer
