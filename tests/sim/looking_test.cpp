// The core looks at what an event may have changed. Looking at everything gives the same events, to
// the last one.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>

#include "tests/sim/small_world.hpp"

namespace gleaner::sim {

// With GLEANER_SEEDS: the number of seeds, from GLEANER_SEED on.
TEST_CASE("looking: a look at everything finds no more than one at what has changed", "[sim]") {
  const char* const text = std::getenv("GLEANER_SEEDS");
  const std::uint64_t seeds = text == nullptr ? 20 : std::strtoull(text, nullptr, 10);
  const char* const from = std::getenv("GLEANER_SEED");
  const std::uint64_t first = from == nullptr ? 1 : std::strtoull(from, nullptr, 10);
  SmallWorld world;
  for (const auto draw :
       {&SmallWorld::storm, &SmallWorld::storm_of_strangers, &SmallWorld::adaptive_storm}) {
    for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
      ClusterOptions options = (world.*draw)(seed);
      const ClusterResult some = world.run(options);
      options.master.looks_at_all = true;
      const ClusterResult all = world.run(options);
      INFO("seed " << seed);
      CHECK(some.event_digest == all.event_digest);
    }
  }
}

}  // namespace gleaner::sim
