// A desktop's day, a second at a time: typing, a film, ssh, a locked screen, suspend, battery. What
// the sources would say follows from what people do; whether the machine was idle is known apart
// from them.
#include <catch2/catch.hpp>
#include <vector>

#include "volunteer/lend/pause_policy.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kIdleAfter = 180;
constexpr std::int64_t kRest = 120;
constexpr std::int64_t kTerminalStep = 8;  // of a terminal's access time

Instant second_of_day(std::int64_t second) {
  return Instant(std::chrono::duration_cast<Micros>(std::chrono::seconds(86'400 + second)));
}

enum class Does { kTypes, kWatchesFilm, kTypesOverSsh, kLeavesLocked, kSleeps, kUnplugged, kAway };

struct Part {
  std::int64_t begin;
  std::int64_t end;
  Does does;
};

// A day of people at the machine; they are away in all other hours. Who types strikes a key at
// first, and then every two minutes: the longest rest that is shorter than what the policy wait
// for, with a margin.
const std::vector<Part> kDay = {
    {2 * kHour, 2 * kHour + 1200, Does::kTypesOverSsh},
    {7 * kHour, 8 * kHour, Does::kTypes},
    {8 * kHour, 9 * kHour, Does::kLeavesLocked},
    {9 * kHour, 12 * kHour, Does::kTypes},
    {12 * kHour, 13 * kHour, Does::kSleeps},
    {13 * kHour, 14 * kHour, Does::kTypes},
    {15 * kHour, 16 * kHour, Does::kUnplugged},
    {17 * kHour, 17 * kHour + 30, Does::kTypes},
    {20 * kHour, 22 * kHour, Does::kWatchesFilm},
    {23 * kHour, 23 * kHour + 600, Does::kTypesOverSsh},
};

struct Desktop {
  std::int64_t last_input = -kHour;  // keyboard and mouse of the desktop
  std::int64_t last_typed = -kHour;  // in a terminal
  std::int64_t locked_at = -1;
  std::int64_t film_at = -kHour;  // the last second of one
  Readings readings;
  bool is_here = false;  // somebody sits there or types from afar
};

// `strikes`: a key or the mouse, if somebody is there.
void live(Desktop& desktop, Does does, bool strikes, std::int64_t second) {
  Readings& readings = desktop.readings;
  readings = Readings{};
  readings.has_desktop = true;
  readings.on_battery = does == Does::kUnplugged;
  readings.is_suspending = does == Does::kSleeps;
  desktop.is_here =
      does == Does::kTypes || does == Does::kWatchesFilm || does == Does::kTypesOverSsh;
  if (does == Does::kTypes && strikes) desktop.last_input = second;
  if (does == Does::kTypesOverSsh && strikes)
    desktop.last_typed = second / kTerminalStep * kTerminalStep;
  desktop.locked_at = does != Does::kLeavesLocked ? -1
                      : desktop.locked_at < 0     ? second
                                                  : desktop.locked_at;
  // A desktop tells logind of its idleness after 5 min; a film is an inhibitor.
  const bool is_hinted = second - desktop.last_input >= 300;
  const bool is_film = does == Does::kWatchesFilm;
  Instant logind = is_hinted ? second_of_day(desktop.last_input) : second_of_day(second);
  if (desktop.locked_at >= 0) logind = second_of_day(desktop.locked_at);
  if (is_film) desktop.film_at = second;
  logind = std::max(logind, second_of_day(desktop.film_at));
  readings.uses = {{"logind", logind, "session 2"},
                   {"terminals", second_of_day(desktop.last_typed), "pts/0"},
                   {"input devices", second_of_day(desktop.last_input), "event3"}};
}

}  // namespace

TEST_CASE("pause policy: in a desktop's day nothing wrong is taken for idle, and idle time is used",
          "[idle]") {
  PausePolicy policy{Rules{}};
  Desktop desktop;
  std::int64_t last_presence = -kHour;
  std::int64_t wrong = 0;
  std::int64_t idle = 0;
  std::int64_t used = 0;
  std::int64_t pauses = 0;
  bool worked = false;
  for (std::int64_t second = 0; second < 24 * kHour; ++second) {
    Does does = Does::kAway;
    bool strikes = false;
    for (const Part& part : kDay) {
      if (second < part.begin || second >= part.end) continue;
      does = part.does;
      strikes = (second - part.begin) % kRest == 0;
    }
    live(desktop, does, strikes, second);
    const bool works = policy.decide(desktop.readings, second_of_day(second)).works();
    if (desktop.is_here) last_presence = second;
    const bool forbidden = does == Does::kSleeps || does == Does::kUnplugged;
    // Somebody is there, or was within the time that people are given.
    const bool is_taken = second - last_presence < kIdleAfter - kRest - kTerminalStep;
    if (works && (is_taken || forbidden)) ++wrong;
    if (!forbidden && second - last_presence >= kIdleAfter) {
      ++idle;
      used += works ? 1 : 0;
    }
    pauses += worked && !works ? 1 : 0;
    worked = works;
  }
  REQUIRE(wrong == 0);
  REQUIRE(idle > 8 * kHour);
  REQUIRE(static_cast<double>(used) >= 0.95 * static_cast<double>(idle));
  // One for each time somebody came, and for nothing else.
  REQUIRE(pauses == 7);
}

}  // namespace gleaner::volunteer
