#include "volunteer/lend/pause_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace gleaner::volunteer {
namespace {

// How far below its limit a reading must fall before the harm counts as over.
constexpr double kCelsiusBelow = 10;
constexpr double kPressureBelow = 0.5;
constexpr double kNoPressureLimit = 100;

Verdict pause(PauseReason reason, std::string why, std::string ends,
              std::optional<Instant> until = {}) {
  return {reason, std::move(why), std::move(ends), until};
}

std::string in_words(Micros duration) {
  return duration_words(static_cast<std::uint64_t>(seconds_in(duration)));
}

Micros minutes(std::uint32_t count) {
  return std::chrono::duration_cast<Micros>(std::chrono::minutes(count));
}

}  // namespace

const char* pause_reason_name(PauseReason reason) {
  constexpr const char* kNames[] = {"none",    "suspending",      "asked",        "snoozed",
                                    "traffic", "battery",         "metered",      "heat",
                                    "memory",  "memory_pressure", "cpu_pressure", "schedule",
                                    "in_use",  "unknown_use"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(PauseReason::kUnknownUse) + 1);
  return kNames[static_cast<std::size_t>(reason)];
}

bool PausePolicy::Harm::holds(bool is_bad, bool is_well, Instant now, Millis calm) {
  if (is_bad) {
    holds_ = true;
    well_since_.reset();
  } else if (holds_ && is_well) {
    if (!well_since_) well_since_ = now;
    if (now - *well_since_ >= calm) holds_ = false;
  } else {
    well_since_.reset();
  }
  return holds_;
}

When PausePolicy::when(const Readings& readings) const {
  if (rules_.when) return *rules_.when;
  const bool has_desktop = readings.has_desktop || has_seen_desktop_;
  return has_desktop && readings.confinement.empty() ? When::kIdle : When::kAlways;
}

Verdict PausePolicy::decide(const Readings& readings, Instant now) {
  has_seen_desktop_ = has_seen_desktop_ || readings.has_desktop;
  // Weighs harm first and always, so that its time of calm is counted.
  std::optional<Verdict> harm = harmful(readings, now);
  if (auto verdict = asked(readings, now)) return *verdict;
  if (auto verdict = forbidden(readings, now)) return *verdict;
  if (harm) return *harm;
  if (auto verdict = untimely(readings, now)) return *verdict;
  Verdict work;
  switch (when(readings)) {
    case When::kIdle:
      work.why = "nobody uses the machine";
      break;
    case When::kSchedule:
      work.why =
          fmt::format("its hours go on for {}",
                      in_words(minutes(rules_.schedule.until_change(readings.minute_of_week))));
      break;
    case When::kAlways:
      work.why = rules_.when ? "it may always work"
                 : readings.confinement.empty()
                     ? "no desktop session is here, so it may always work"
                     : "this is " + readings.confinement + ", so it may always work";
      break;
  }
  return work;
}

std::optional<Verdict> PausePolicy::asked(const Readings& readings, Instant now) const {
  if (readings.is_suspending) {
    return pause(PauseReason::kSuspending, "the machine is about to sleep", "it wakes up");
  }
  if (asked_) return pause(PauseReason::kAsked, "by its owner", "somebody resumes it");
  if (snoozed_until_ && now < *snoozed_until_) {
    return pause(PauseReason::kSnoozed, "by its owner", "that time is over", snoozed_until_);
  }
  return std::nullopt;
}

std::optional<Verdict> PausePolicy::forbidden(const Readings& readings, Instant now) const {
  const auto is_spent = [](const std::optional<std::uint64_t>& limit, std::uint64_t bytes) {
    return limit && bytes >= *limit;
  };
  const bool up = is_spent(rules_.up_bytes_per_day, readings.up_bytes);
  if (up || is_spent(rules_.down_bytes_per_day, readings.down_bytes)) {
    const std::uint32_t left = kMinutesPerDay - readings.minute_of_week % kMinutesPerDay;
    return pause(PauseReason::kTraffic,
                 fmt::format("it has {} all that it may in a day", up ? "sent" : "received"),
                 "the day is over", now + minutes(left));
  }
  if (!rules_.on_battery && readings.on_battery.value_or(false)) {
    return pause(PauseReason::kBattery, "the machine runs on battery", "it is plugged in");
  }
  if (!rules_.on_metered && readings.is_metered.value_or(false)) {
    return pause(PauseReason::kMetered, "the network is metered", "another network is used");
  }
  return std::nullopt;
}

std::optional<Verdict> PausePolicy::harmful(const Readings& readings, Instant now) {
  const bool is_whole_machine = readings.confinement.empty();
  const double celsius = readings.celsius.value_or(0);
  const bool is_hot = heat_.holds(celsius >= rules_.celsius_max,
                                  celsius <= rules_.celsius_max - kCelsiusBelow, now, rules_.calm);
  const auto presses = [&](Harm& harm, const std::optional<double>& pressure, double limit) {
    const double percent = is_whole_machine && limit < kNoPressureLimit ? pressure.value_or(0) : 0;
    return harm.holds(percent >= limit, percent <= limit * kPressureBelow, now, rules_.calm);
  };
  const bool memory_presses =
      presses(memory_pressure_, readings.memory_pressure, rules_.memory_pressure_max);
  const bool cpu_presses = presses(cpu_pressure_, readings.cpu_pressure, rules_.cpu_pressure_max);
  if (is_hot) {
    return pause(PauseReason::kHeat,
                 fmt::format("the machine reached {:.0f} °C", rules_.celsius_max),
                 fmt::format("it has cooled to {:.0f} °C", rules_.celsius_max - kCelsiusBelow));
  }
  if (is_short_of_memory(readings, now)) {
    return pause(
        PauseReason::kMemory,
        fmt::format("less than {} MiB of memory were free", rules_.free_memory_bytes >> 20),
        "that is free beside what it needs");
  }
  if (memory_presses) {
    return pause(PauseReason::kMemoryPressure, "programs wait for memory", "that is over");
  }
  if (cpu_presses) {
    return pause(PauseReason::kCpuPressure, "other programs wait for a processor", "that is over");
  }
  return std::nullopt;
}

bool PausePolicy::is_short_of_memory(const Readings& readings, Instant now) {
  const std::uint64_t available = readings.memory_bytes.value_or(~std::uint64_t{0} >> 1);
  const bool is_short = readings.confinement.empty() && available < rules_.free_memory_bytes;
  // Work would take back at once the memory that the pause gives back.
  if (is_short) held_at_memory_pause_ = std::max(held_at_memory_pause_, readings.held_bytes);
  const std::uint64_t taken_again =
      held_at_memory_pause_ - std::min(held_at_memory_pause_, readings.held_bytes);
  const bool is_well = available >= rules_.free_memory_bytes + taken_again;
  const bool holds = memory_.holds(is_short, is_well, now, rules_.calm);
  if (!holds) held_at_memory_pause_ = 0;
  return holds;
}

std::optional<Verdict> PausePolicy::untimely(const Readings& readings, Instant now) const {
  switch (when(readings)) {
    case When::kAlways:
      return std::nullopt;
    case When::kSchedule: {
      if (rules_.schedule.allows(readings.minute_of_week)) return std::nullopt;
      const std::uint32_t left = rules_.schedule.until_change(readings.minute_of_week);
      if (left >= kMinutesPerWeek) {
        return pause(PauseReason::kSchedule, "its schedule has no hours", "somebody gives it some");
      }
      return pause(PauseReason::kSchedule, "these are not its hours", "its hours begin",
                   now + minutes(left));
    }
    case When::kIdle:
      return used(readings, now);
  }
  return std::nullopt;
}

std::optional<Verdict> PausePolicy::used(const Readings& readings, Instant now) const {
  const std::string ends = fmt::format("nobody has used it for {}", in_words(rules_.idle_after));
  const UseReading* latest = nullptr;
  const UseReading* unknown = nullptr;
  for (const UseReading& use : readings.uses) {
    if (!use.last_use) {
      if (unknown == nullptr) unknown = &use;
    } else if (latest == nullptr || *use.last_use > *latest->last_use) {
      latest = &use;
    }
  }
  if (latest != nullptr && now - *latest->last_use < rules_.idle_after) {
    return pause(PauseReason::kInUse,
                 fmt::format("the machine is in use ({}: {})", latest->source, latest->detail),
                 ends, *latest->last_use + rules_.idle_after);
  }
  if (unknown != nullptr) {
    return pause(PauseReason::kUnknownUse,
                 fmt::format("whether the machine is in use is unknown ({}: {})", unknown->source,
                             unknown->detail),
                 "that is known");
  }
  if (latest == nullptr) {
    return pause(PauseReason::kUnknownUse, "nothing here tells whether the machine is in use",
                 "something does, or --when says always");
  }
  return std::nullopt;
}

}  // namespace gleaner::volunteer
