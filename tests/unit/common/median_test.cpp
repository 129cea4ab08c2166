#include <catch2/catch.hpp>
#include <vector>

#include "common/counter_random.hpp"
#include "common/order_statistics.hpp"
#include "tests/property/property_seed.hpp"

namespace gleaner {

TEST_CASE("median: those without one value are those of the other values", "[median]") {
  REQUIRE_FALSE(Medians({}).all().has_value());
  REQUIRE_FALSE(Medians({1}).without(1).has_value());
  const std::uint64_t seed = property_seed();
  INFO("GLEANER_SEED=" << seed);
  Rng random(seed, Purpose::kTest);
  for (int i = 0; i < 100; ++i) {
    std::vector<double> values(2 + random.next_below(9));
    for (double& value : values) value = static_cast<double>(random.next_below(6));
    const Medians medians(values);
    REQUIRE(medians.all() == median(values));
    for (std::size_t k = 0; k < values.size(); ++k) {
      std::vector<double> others = values;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
      REQUIRE(medians.without(values[k]) == median(others));
    }
  }
}

}  // namespace gleaner
