// The decision: one reason at a time, the end of each pause, and what is never taken for idle.
#include "volunteer/lend/pause_policy.hpp"

#include <catch2/catch.hpp>

namespace gleaner::volunteer {
namespace {

using Reason = PauseReason;

constexpr Instant kNoon{Micros(3'600'000'000)};

Instant after_noon(std::int64_t seconds) {
  return kNoon + std::chrono::duration_cast<Micros>(std::chrono::seconds(seconds));
}

Rules idle_rules() {
  Rules rules;
  rules.when = When::kIdle;
  return rules;
}

// A whole machine that nobody has touched for an hour.
Readings calm_machine() {
  Readings readings;
  readings.uses = {{"logind", after_noon(-3600), "session 2"},
                   {"terminals", after_noon(-3600), "pts/1"}};
  readings.memory_bytes = std::uint64_t{8} << 30;
  readings.on_battery = false;
  return readings;
}

}  // namespace

TEST_CASE("pause policy: by default a desktop waits to be idle, all else works always", "[idle]") {
  Readings server;
  REQUIRE(PausePolicy(Rules{}).decide(server, kNoon).works());

  PausePolicy policy{Rules{}};
  Readings desktop;
  desktop.has_desktop = true;
  desktop.uses = {{"terminals", after_noon(-1), "pts/1"}};
  REQUIRE(policy.decide(desktop, kNoon).reason == Reason::kInUse);
  // The display is gone for a moment: somebody may still sit there.
  desktop.has_desktop = false;
  REQUIRE(policy.decide(desktop, kNoon).reason == Reason::kInUse);

  Readings container = desktop;
  container.has_desktop = true;
  container.confinement = "a container";
  const Verdict verdict = PausePolicy{Rules{}}.decide(container, kNoon);
  REQUIRE(verdict.works());
  REQUIRE_THAT(verdict.why, Catch::Contains("a container"));
}

TEST_CASE("pause policy: idle means that every source says so, for long enough", "[idle]") {
  Readings readings = calm_machine();
  REQUIRE(PausePolicy(idle_rules()).decide(readings, kNoon).works());

  readings.uses[1] = {"terminals", after_noon(-179), "pts/4"};
  const Verdict typing = PausePolicy(idle_rules()).decide(readings, kNoon);
  REQUIRE(typing.reason == Reason::kInUse);
  REQUIRE_THAT(typing.why, Catch::Contains("terminals: pts/4"));
  REQUIRE_THAT(typing.ends, Catch::Contains("3 min"));
  REQUIRE(typing.until == after_noon(1));
  REQUIRE_FALSE(PausePolicy(idle_rules()).decide(readings, after_noon(1) - Micros(1)).works());
  REQUIRE(PausePolicy(idle_rules()).decide(readings, after_noon(1)).works());
}

TEST_CASE("pause policy: unknown use is not idleness, and the reason is given", "[idle]") {
  Readings readings = calm_machine();
  readings.uses[0] = {"logind", std::nullopt, "logind does not answer"};
  const Verdict verdict = PausePolicy(idle_rules()).decide(readings, kNoon);
  REQUIRE(verdict.reason == Reason::kUnknownUse);
  REQUIRE_THAT(verdict.why, Catch::Contains("logind does not answer"));
  // Use that is known is the better reason.
  readings.uses[1].last_use = kNoon;
  REQUIRE(PausePolicy(idle_rules()).decide(readings, kNoon).reason == Reason::kInUse);
  // No source at all.
  readings.uses.clear();
  REQUIRE(PausePolicy(idle_rules()).decide(readings, kNoon).reason == Reason::kUnknownUse);
}

TEST_CASE("pause policy: a schedule has hours, and says when they begin", "[idle]") {
  Rules rules;
  rules.when = When::kSchedule;
  rules.schedule = LendingHours::parse("mon-fri 20:00-07:00").value();
  PausePolicy policy(rules);
  Readings readings = calm_machine();
  readings.uses[0].last_use = kNoon;  // does not matter here
  readings.minute_of_week = 19 * 60 + 30;
  const Verdict early = policy.decide(readings, kNoon);
  REQUIRE(early.reason == Reason::kSchedule);
  REQUIRE(early.until == after_noon(30 * 60));
  readings.minute_of_week = 20 * 60;
  REQUIRE(policy.decide(readings, kNoon).works());
  readings.minute_of_week = kMinutesPerDay + 6 * 60 + 59;
  REQUIRE(policy.decide(readings, kNoon).works());
  readings.minute_of_week = kMinutesPerDay + 7 * 60;
  REQUIRE_FALSE(policy.decide(readings, kNoon).works());
  rules.schedule = {};
  REQUIRE_FALSE(PausePolicy(rules).decide(readings, kNoon).until.has_value());
}

TEST_CASE("pause policy: battery and metered networks wait, unless they are allowed", "[idle]") {
  Readings readings = calm_machine();
  readings.on_battery = true;
  readings.is_metered = true;
  REQUIRE(PausePolicy(idle_rules()).decide(readings, kNoon).reason == Reason::kBattery);
  Rules rules = idle_rules();
  rules.on_battery = true;
  REQUIRE(PausePolicy(rules).decide(readings, kNoon).reason == Reason::kMetered);
  rules.on_metered = true;
  REQUIRE(PausePolicy(rules).decide(readings, kNoon).works());
  // Unknown counts as neither.
  readings.on_battery.reset();
  readings.is_metered.reset();
  REQUIRE(PausePolicy(idle_rules()).decide(readings, kNoon).works());
}

TEST_CASE("pause policy: heat ends a pause only when the machine has been cool for a while",
          "[idle]") {
  PausePolicy policy(idle_rules());
  Readings readings = calm_machine();
  const auto decide = [&](double celsius, std::int64_t second) {
    readings.celsius = celsius;
    return policy.decide(readings, after_noon(second)).reason;
  };
  REQUIRE(decide(89.9, 0) == Reason::kNone);
  REQUIRE(decide(90, 1) == Reason::kHeat);
  REQUIRE(decide(81, 100) == Reason::kHeat);
  REQUIRE(decide(80, 101) == Reason::kHeat);
  REQUIRE(decide(81, 120) == Reason::kHeat);  // it begins again
  REQUIRE(decide(80, 121) == Reason::kHeat);
  REQUIRE(decide(79, 150) == Reason::kHeat);
  REQUIRE(decide(79, 151) == Reason::kNone);
  REQUIRE(decide(89, 152) == Reason::kNone);
}

TEST_CASE("pause policy: memory that a pause gave back is not taken again at once", "[idle]") {
  PausePolicy policy(idle_rules());
  Readings readings = calm_machine();
  const std::uint64_t mib = std::uint64_t{1} << 20;
  readings.held_bytes = 1000 * mib;
  readings.memory_bytes = 511 * mib;
  REQUIRE(policy.decide(readings, after_noon(0)).reason == Reason::kMemory);
  readings.held_bytes = 0;
  readings.memory_bytes = 1511 * mib;
  REQUIRE(policy.decide(readings, after_noon(1)).reason == Reason::kMemory);
  REQUIRE(policy.decide(readings, after_noon(1000)).reason == Reason::kMemory);
  readings.memory_bytes = 1512 * mib;
  REQUIRE(policy.decide(readings, after_noon(1001)).reason == Reason::kMemory);
  REQUIRE(policy.decide(readings, after_noon(1031)).works());
}

TEST_CASE("pause policy: it gives way when others wait, not when they merely work", "[idle]") {
  PausePolicy policy(idle_rules());
  Readings readings = calm_machine();
  readings.cpu_pressure = 9.9;
  REQUIRE(policy.decide(readings, after_noon(0)).works());
  readings.cpu_pressure = 10;
  REQUIRE(policy.decide(readings, after_noon(1)).reason == Reason::kCpuPressure);
  readings.memory_pressure = 10;
  REQUIRE(policy.decide(readings, after_noon(2)).reason == Reason::kMemoryPressure);
  readings.cpu_pressure = readings.memory_pressure = 5;
  REQUIRE_FALSE(policy.decide(readings, after_noon(3)).works());
  REQUIRE(policy.decide(readings, after_noon(33)).works());
  // In a container pressure is the host's, and none of ours; 100 is no limit.
  readings.cpu_pressure = 90;
  readings.confinement = "a container";
  REQUIRE(policy.decide(readings, after_noon(34)).works());
  Rules rules = idle_rules();
  rules.cpu_pressure_max = 100;
  readings.confinement.clear();
  readings.memory_pressure.reset();
  readings.cpu_pressure = 100;
  REQUIRE(PausePolicy(rules).decide(readings, after_noon(0)).works());
}

TEST_CASE("pause policy: a person's word comes first, and ends when it was to end", "[idle]") {
  PausePolicy policy(idle_rules());
  Readings readings = calm_machine();
  readings.on_battery = true;
  policy.ask_snooze(after_noon(7200));
  const Verdict snoozed = policy.decide(readings, after_noon(0));
  REQUIRE(snoozed.reason == Reason::kSnoozed);
  REQUIRE(snoozed.until == after_noon(7200));
  REQUIRE(snoozed.pause_words() == "paused by its owner");
  REQUIRE(snoozed.ends_within(Millis(7'200'000), after_noon(0)));
  REQUIRE_FALSE(snoozed.ends_within(Millis(15'000), after_noon(0)));
  policy.ask_pause();
  REQUIRE_FALSE(policy.decide(readings, after_noon(1)).ends_within(Millis(15'000), after_noon(1)));
  REQUIRE(policy.decide(readings, after_noon(1)).reason == Reason::kAsked);
  readings.is_suspending = true;
  REQUIRE(policy.decide(readings, after_noon(2)).reason == Reason::kSuspending);
  readings.is_suspending = false;
  policy.ask_resume();
  REQUIRE(policy.decide(readings, after_noon(3)).reason ==
          Reason::kBattery);  // the other rules stay
  readings.on_battery = false;
  policy.ask_snooze(after_noon(10));
  REQUIRE_FALSE(policy.decide(readings, after_noon(9)).works());
  REQUIRE(policy.decide(readings, after_noon(10)).works());
}

TEST_CASE("pause policy: a day's traffic that is spent waits for midnight", "[idle]") {
  Rules rules = idle_rules();
  rules.up_bytes_per_day = 1000;
  Readings readings = calm_machine();
  readings.minute_of_week = 3 * kMinutesPerDay + 23 * 60;
  readings.up_bytes = 999;
  readings.down_bytes = 1 << 30;
  REQUIRE(PausePolicy(rules).decide(readings, kNoon).works());
  readings.up_bytes = 1000;
  const Verdict verdict = PausePolicy(rules).decide(readings, kNoon);
  REQUIRE(verdict.reason == Reason::kTraffic);
  REQUIRE_THAT(verdict.why, Catch::Contains("sent"));
  REQUIRE(verdict.until == after_noon(3600));
}

TEST_CASE("pause policy: every pause says why and when it ends", "[idle]") {
  for (int reason = 1; reason <= static_cast<int>(Reason::kUnknownUse); ++reason) {
    REQUIRE(std::string(pause_reason_name(static_cast<Reason>(reason))) != "unknown");
  }
  Readings readings = calm_machine();
  readings.on_battery = true;
  const Verdict verdict = PausePolicy(idle_rules()).decide(readings, kNoon);
  REQUIRE(verdict.sentence() == "the machine runs on battery; until it is plugged in");
}

TEST_CASE("schedule: what is no hours of a week is refused with an example", "[idle]") {
  for (const char* text : {"monday 20:00-07:00", "mon", "mon 20-7-8", "20-20", "7", "25-7",
                           "mon 24:00-01:00", "mon 08:00-08:00", "mon 08:60-09:00",
                           "mon 08:00-24:01", "mon 08:00-09:00 x", ",", "mon-xyz 08:00-09:00"}) {
    INFO(text);
    const auto schedule = LendingHours::parse(text);
    REQUIRE_FALSE(schedule);
    REQUIRE_THAT(schedule.error().message, Catch::Contains("mon-fri 20:00-07:00"));
  }
  const LendingHours weekend = LendingHours::parse("sat-mon 23:00-24:00, wed 00:00-00:01").value();
  REQUIRE(weekend.allows(23 * 60));                            // Monday
  REQUIRE_FALSE(weekend.allows(kMinutesPerDay + 23 * 60));     // Tuesday
  REQUIRE(weekend.allows(6 * kMinutesPerDay + 23 * 60 + 59));  // Sunday
  REQUIRE(weekend.allows(2 * kMinutesPerDay));
  REQUIRE(weekend.until_change(2 * kMinutesPerDay) == 1);
  REQUIRE(LendingHours().until_change(0) == kMinutesPerWeek);
  const LendingHours nights = LendingHours::parse("19-7").value();
  for (const std::uint32_t day : {0u, 6u}) {
    REQUIRE(nights.allows(day * kMinutesPerDay + 19 * 60));
    REQUIRE(nights.allows(day * kMinutesPerDay + 7 * 60 - 1));
    REQUIRE_FALSE(nights.allows(day * kMinutesPerDay + 7 * 60));
  }
}

}  // namespace gleaner::volunteer
