// Whatever a stranger owes and withholds, others wait for it once, and not for long.
#include "tests/support/obligations.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "master/core/session.hpp"
#include "tests/sim/cluster.hpp"
#include "tests/sim/sim_context.hpp"
#include "tests/sim/small_world.hpp"

namespace gleaner::sim {
namespace {

constexpr std::uint32_t kHonest = 4;
// In every second run the stranger has proved itself when it begins to withhold.
constexpr Millis kProven{2'000};
// The ticks within which it is seen that something is overdue, and the bytes of these shards pass.
constexpr Millis kSeen = 3 * kTick;

// A message that a stranger keeps to itself.
struct Withheld {
  std::string what;
  std::function<bool(Message&)> is_it;
  Obligation owed{};  // what it does not meet so
};

// One message of each type, in their order: another type is among them by itself.
template <std::size_t... kTypes>
std::vector<Message> one_of_each(std::index_sequence<kTypes...>) {
  return {Message(std::in_place_index<kTypes>)...};
}

// How messages of a type may be kept back: all, every other one, every other one until the one
// after the next, which thus comes first, or all, in whose place the first comes again and again.
std::vector<std::pair<std::string, std::function<bool(Message&)>>> ways(std::size_t type) {
  const auto of_type = [type](std::function<bool(Message&)> keep) {
    return [type, keep = std::move(keep)](Message& m) { return m.index() == type && keep(m); };
  };
  return {
      {"", of_type([](Message&) { return true; })},
      {"every other ", of_type([count = 0](Message&) mutable { return ++count % 2 == 1; })},
      {"swapped ", of_type([kept = std::optional<Message>(), count = 0](Message& m) mutable {
         if (!kept) return kept.emplace(std::move(m)), true;
         if (++count % 2 == 0) std::swap(*kept, m);
         return false;
       })},
      {"the same ", of_type([first = std::optional<Message>()](Message& m) mutable {
         if (!first) return first.emplace(std::move(m)), true;
         m = *first;
         return false;
       })},
  };
}

// Each type of message that meets an obligation of strangers, and all of them once it has
// introduced itself, since whatever it sends is heard.
std::vector<Withheld> all_withheld() {
  std::vector<Withheld> all;
  for (const Message& one : one_of_each(std::make_index_sequence<std::variant_size_v<Message>>())) {
    const std::optional<Obligation> owed = met_by(one);
    // Strangers get no input shards.
    const bool is_for_trusted = std::holds_alternative<InputResult>(one);
    if (!owed || owed == Obligation::kHeartbeat || is_for_trusted) continue;
    for (const auto& [way, keep] : ways(one.index())) {
      all.push_back({way + message_name(one), keep, *owed});
    }
  }
  all.push_back({"everything", [](const Message& m) { return !std::holds_alternative<Hello>(m); },
                 Obligation::kHeartbeat});
  return all;
}

ClusterOptions options_of(SmallWorld& world, AuditMode audit, std::uint64_t seed,
                          const Withheld& withheld) {
  ClusterOptions options;
  options.model = world.model();
  options.model.output_shards = 8;
  options.model.epochs = 60;
  options.model.divergence_factor = 0;  // it learns all that there is in fewer
  options.expected = &world.calm(options.model);
  options.seed = seed;
  options.volunteers = kHonest;
  options.slowness_max = 1;
  options.join_spread_ms = 400;
  options.is_checked = false;
  options.strangers.are_there = true;
  if (audit == AuditMode::kAdaptive) SmallWorld::audit_by_lot(options);
  options.master.audit = audit;
  // Shards are offered by who comes again.
  if (withheld.owed == Obligation::kOffer) {
    options.faults.until = Millis(3'000);
    options.faults[Fault::kReset] = Millis(300);
  }
  // As the programs come, in a tenth of the time.
  const CoreConfig real;
  options.master.stall = real.stall / 10;
  options.master.stranger_stall = real.stranger_stall / 10;
  options.master.forget_slowness = real.forget_slowness / 10;
  options.master.silence = real.silence / 10;
  options.master.join_timeout = real.join_timeout / 10;
  return options;
}

// Batches per second from `begin` on.
double speed_from(const ClusterResult& result, Instant begin) {
  const auto first = std::ranges::lower_bound(result.applied, begin);
  return 1e6 * static_cast<double>(result.applied.end() - first) /
         static_cast<double>((result.applied.back() - begin).count());
}

// The time that a stranger has for it at most: see Sessions::time_for.
Millis time_for(Obligation obligation, const CoreConfig& config) {
  if (obligation == Obligation::kHello) return config.join_timeout;
  if (obligation == Obligation::kHeartbeat) return config.silence;
  return 6 * config.stranger_stall;
}

ClusterResult finish(SmallWorld& world, const ClusterOptions& options) {
  ClusterResult result = world.run(options);
  for (const std::string& violation : result.violations) FAIL_CHECK(violation);
  REQUIRE(result.finished);
  CHECK(result.convicted.empty());
  CHECK(*result.reached.digests.rbegin() == *options.expected->digests.rbegin());
  return result;
}

// The moment from which nobody waits for the stranger any more.
Instant held_back_at(const ClusterResult& result, const ClusterOptions& options,
                     const Withheld& withheld) {
  const Instant begin = result.withholder.withheld.front();
  const std::string name = "v" + std::to_string(options.volunteers);
  const auto is_it = [&](const Left& left) {
    return left.at >= begin && (withheld.owed == Obligation::kHello || left.who == name);
  };
  const auto left = std::ranges::find_if(result.left, is_it);
  const Instant due = begin + time_for(withheld.owed, options.master) + kSeen;
  if (left == result.left.end()) {
    CHECK(result.applied.back() < due);
    return begin;
  }
  INFO(left->why);
  CHECK(left->at <= due);
  if (!left->why.starts_with("did not")) return left->at;
  const bool is_named = left->why.starts_with(std::string("did not ") + what_of(withheld.owed));
  CHECK((is_named || withheld.owed == Obligation::kHeartbeat));
  const Instant again = left->at + options.master.forget_slowness;
  CHECK(std::ranges::none_of(result.withholder.lent,
                             [&](Instant at) { return at > left->at + kSeen && at < again; }));
  return left->at;
}

}  // namespace

// With GLEANER_SEEDS: the number of seeds.
TEST_CASE("obligations: others wait once for who withholds anything, and lose no tenth later",
          "[sim]") {
  SmallWorld world;
  const auto [first, seeds] = seeds_to_run(1);
  std::set<std::string> seen;
  std::set<Obligation> owed;
  // Batches per second, calm and once the stranger is held back, in all ways and seeds.
  std::map<std::pair<AuditMode, Obligation>, std::pair<double, double>> speeds;
  for (const AuditMode audit : {AuditMode::kAll, AuditMode::kAdaptive}) {
    std::map<std::pair<std::uint64_t, bool>, double> calm_of;  // by seed and whether links break
    std::uint64_t number = audit == AuditMode::kAll ? 0 : 1;
    for (const Withheld& withheld : all_withheld()) {
      ++number;
      auto& [calm, after] = speeds[{audit, withheld.owed}];
      for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
        INFO(withheld.what << " with seed " << seed);
        ClusterOptions options = options_of(world, audit, seed, withheld);
        const auto [known, is_new] = calm_of.try_emplace({seed, options.faults.until > Millis(0)});
        if (is_new) {
          known->second = speed_from(finish(world, options), Instant(options.faults.until));
        }
        ++options.volunteers;
        options.strangers.withholds = withheld.is_it;
        options.strangers.withholds_from = (seed + number) % 2 == 0 ? kProven : Millis(0);
        const ClusterResult besieged = finish(world, options);
        if (besieged.withholder.withheld.empty()) continue;
        seen.insert(withheld.what);
        owed.insert(withheld.owed);
        calm += known->second;
        after += speed_from(besieged, held_back_at(besieged, options, withheld));
      }
    }
  }
  for (const auto& [kind, sums] : speeds) {
    INFO("who does not " << what_of(kind.second) << " under audit mode "
                         << static_cast<int>(kind.first));
    CHECK(sums.second >= 0.9 * sums.first);
  }
  CHECK(seen.size() == all_withheld().size());
  CHECK(owed == std::set<Obligation>(kObligations.begin(), kObligations.end()));
}

}  // namespace gleaner::sim
