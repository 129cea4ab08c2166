#include <catch2/catch.hpp>
#include <vector>

#include "common/counter_random.hpp"

namespace gleaner {

TEST_CASE("permutation: is a bijection with a matching inverse at every size", "[permutation]") {
  for (const std::uint64_t size : {1u, 2u, 3u, 4u, 5u, 16u, 17u, 255u, 256u, 257u, 10'007u}) {
    const Permutation order(size, 42);
    std::vector<bool> seen(size, false);
    for (std::uint64_t index = 0; index < size; ++index) {
      const std::uint64_t image = order.forward(index);
      REQUIRE(image < size);
      REQUIRE_FALSE(seen[image]);
      seen[image] = true;
      REQUIRE(order.inverse(image) == index);
    }
  }
}

TEST_CASE("permutation: another key gives another order", "[permutation]") {
  const Permutation a(1000, 1);
  const Permutation b(1000, 2);
  int equal = 0;
  for (std::uint64_t index = 0; index < 1000; ++index)
    equal += a.forward(index) == b.forward(index);
  REQUIRE(equal < 20);
}

TEST_CASE("permutation: consecutive indices spread over the range", "[permutation]") {
  // Frequent labels come first in a file; each of 16 shards must get its share of the first 1600.
  const Permutation order(53'000, 7);
  std::vector<int> shard(16, 0);
  for (std::uint64_t label = 0; label < 1600; ++label) ++shard[order.forward(label) * 16 / 53'000];
  for (const int count : shard) REQUIRE((count > 60 && count < 145));  // 100 +- 4.5 sigma
}

}  // namespace gleaner
