#include "volunteer/idle/session_reports.hpp"

namespace gleaner::volunteer {
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

}  // namespace gleaner::volunteer
