// Decides whether the machine may be used now: from readings to a verdict with one reason. Pure:
// time is an argument, and there is no file, clock or thread.
//
// Invariants
// - A pause has exactly one reason, and says when it may end.
// - Where use matters, a single source that reports use or cannot tell causes a pause.
// - A pause for harm (heat, memory, waiting programs) ends only after a time of calm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/time.hpp"
#include "volunteer/lend/readings.hpp"
#include "volunteer/lend/schedule.hpp"

namespace gleaner::volunteer {

enum class When : std::uint8_t { kAlways, kIdle, kSchedule };

// Rules that the owner has set.
struct Rules {
  std::optional<When> when;  // unset: idle where there is a desktop, else always
  LendingHours schedule;
  Millis idle_after{180'000};
  bool on_battery = false;
  bool on_metered = false;
  double celsius_max = 90;
  std::uint64_t free_memory_bytes = std::uint64_t{512} << 20;
  double cpu_pressure_max = 10;     // percent; 100: no limit
  double memory_pressure_max = 10;  // percent; 100: no limit
  std::optional<std::uint64_t> up_bytes_per_day;
  std::optional<std::uint64_t> down_bytes_per_day;
  Millis calm{30'000};  // how long a harm must be over
};

enum class PauseReason : std::uint8_t {
  kNone,
  kSuspending,
  kAsked,
  kSnoozed,
  kTraffic,
  kBattery,
  kMetered,
  kHeat,
  kMemory,
  kMemoryPressure,
  kCpuPressure,
  kSchedule,
  kInUse,
  kUnknownUse,
};

// "in_use", for programs.
const char* pause_reason_name(PauseReason reason);

struct Verdict {
  PauseReason reason = PauseReason::kNone;
  std::string why;               // "it runs on battery"; while it works: why it may
  std::string ends;              // "when it is plugged in"; empty when it works
  std::optional<Instant> until;  // the earliest end, if known

  [[nodiscard]] bool works() const { return reason == PauseReason::kNone; }

  // Whether the owner asked for the pause.
  [[nodiscard]] bool is_asked() const {
    return reason == PauseReason::kAsked || reason == PauseReason::kSnoozed;
  }

  // "paused by its owner", "paused: it runs on battery; until it is plugged in". Names no time,
  // since the master's clock may differ.
  [[nodiscard]] std::string pause_words() const {
    return is_asked() ? "paused " + why : "paused: " + sentence();
  }

  // Whether the pause is known to end within `time`.
  [[nodiscard]] bool ends_within(Micros time, Instant now) const {
    return until && *until - now <= time;
  }

  // "it runs on battery; until it is plugged in".
  [[nodiscard]] std::string sentence() const {
    return why + (ends.empty() ? "" : "; until " + ends);
  }
};

class PausePolicy {
 public:
  explicit PausePolicy(Rules rules) : rules_(std::move(rules)) {}

  // `now` never goes back.
  Verdict decide(const Readings& readings, Instant now);

  void set_rules(Rules rules) { rules_ = std::move(rules); }

  // The owner's command, until the next one.
  void ask_pause() { asked_ = true; }

  void ask_snooze(Instant until) { snoozed_until_ = until; }

  // Withdraws both commands. The other rules stay.
  void ask_resume() {
    asked_ = false;
    snoozed_until_.reset();
  }

  // The mode that applies to this machine.
  [[nodiscard]] When when(const Readings& readings) const;

 private:
  // A harm, which must be over for a while before its pause ends.
  class Harm {
   public:
    bool holds(bool is_bad, bool is_well, Instant now, Millis calm);

   private:
    bool holds_ = false;
    std::optional<Instant> well_since_;
  };

  std::optional<Verdict> asked(const Readings& readings, Instant now) const;
  std::optional<Verdict> forbidden(const Readings& readings, Instant now) const;
  std::optional<Verdict> harmful(const Readings& readings, Instant now);
  bool is_short_of_memory(const Readings& readings, Instant now);
  std::optional<Verdict> untimely(const Readings& readings, Instant now) const;
  [[nodiscard]] std::optional<Verdict> used(const Readings& readings, Instant now) const;

  Rules rules_;
  bool asked_ = false;
  std::optional<Instant> snoozed_until_;
  bool has_seen_desktop_ = false;
  Harm heat_, memory_, memory_pressure_, cpu_pressure_;
  std::uint64_t held_at_memory_pause_ = 0;
};

}  // namespace gleaner::volunteer
