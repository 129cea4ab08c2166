// A stranger that says anything: the model is the same, and nobody else suffers.
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tests/property/codec_messages.hpp"
#include "tests/sim/cluster.hpp"
#include "tests/sim/small_world.hpp"

namespace gleaner::sim {
namespace {

// Now and then a message has another number than it should have, or another message comes in its
// place: a random one, about the shard and the unit that were spoken of before.
class Babble {
 public:
  Babble(std::uint64_t seed, std::uint64_t one_in)
      : random_(seed, Purpose::kTest, 0), one_in_(one_in) {}

  bool operator()(Message& message) {
    std::visit([this](const auto& own) { remember(own); }, message);
    if (std::holds_alternative<Hello>(message) || !random_.chance(1, one_in_)) return false;
    if (random_.chance(2, 3)) {
      testing::change_number(message, random_);
    } else {
      const std::size_t kind = random_.next_below(std::variant_size_v<Message>);
      message = testing::random_message(kind, random_);
      std::visit([this](auto& own) { speak_of_the_same(own); }, message);
    }
    return false;
  }

 private:
  void remember(const auto& own) {
    if constexpr (requires { own.lease; }) lease_ = own.lease;
    if constexpr (requires { own.unit; }) unit_ = own.unit;
    if constexpr (requires { own.round; }) round_ = own.round;
  }

  void speak_of_the_same(auto& own) {
    if constexpr (requires { own.lease; }) own.lease = lease_;
    if constexpr (requires { own.unit; }) own.unit = unit_;
    if constexpr (requires { own.round; }) own.round = static_cast<decltype(own.round)>(round_);
  }

  Rng random_;
  const std::uint64_t one_in_;
  LeaseRef lease_;
  UnitId unit_{};
  std::uint64_t round_ = 0;
};

}  // namespace

// With GLEANER_SEEDS: the number of seeds, from GLEANER_SEED on.
TEST_CASE("babble: a stranger that says anything changes no checkpoint", "[sim]") {
  SmallWorld world;
  const auto [first, seeds] = seeds_to_run(100);
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    ClusterOptions options;
    options.model = world.model();
    options.expected = &world.calm(options.model);
    if (seed % 3 == 0) {
      world.make_wide(options);
      options.expected = &world.calm(options.model);
    }
    options.seed = seed;
    options.volunteers = 4;
    options.restart_after_most = Millis(100);
    options.strangers.are_there = true;
    options.strangers.trusted = seed % 2;
    options.strangers.come_again = true;
    options.master.audit = AuditMode::kAll;
    options.strangers.withholds = Babble(seed, 2 + 10 * (seed % 4));
    const ClusterResult result = world.run(options);
    INFO("seed " << seed);
    for (const std::string& violation : result.violations) FAIL_CHECK(violation);
    REQUIRE(result.finished);
    REQUIRE(result.reached.digests == options.expected->digests);
    const std::string babbler =
        "v" + std::to_string(options.volunteers - options.strangers.trusted);
    for (const std::string& who : result.convicted) REQUIRE(who == babbler);
    for (const auto& [mark, times] : result.happened) reached[mark] += times;
  }
  if (seeds < 100) return;
  CHECK(reached["branch.another_key"] > seeds);
  CHECK(reached["notice.convicted"] > 0);
}

}  // namespace gleaner::sim
