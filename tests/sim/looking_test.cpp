// The core looks at what an event may have changed. Looking at everything gives the same events, to
// the last one.
#include <catch2/catch.hpp>
#include <cstdint>

#include "tests/sim/small_world.hpp"

namespace gleaner::sim {

// With GLEANER_SEEDS: the number of seeds, from GLEANER_SEED on.
TEST_CASE("looking: a look at everything finds no more than one at what has changed", "[sim]") {
  const auto [first, seeds] = seeds_to_run(20);
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
