#include <catch2/catch.hpp>
#include <cmath>

#include "master/finished_run.hpp"
#include "tests/sim/workload/planted_data.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kMemory = std::uint64_t{1} << 40;

std::vector<JudgedExample> judged(const PackedDataset& test, bool is_hit) {
  std::vector<JudgedExample> judged;
  for (std::uint64_t p = 0; p < test.points(); ++p) judged.push_back({test.example(p), is_hit});
  return judged;
}

}  // namespace

TEST_CASE("centroid comparison: a network is below that misses what the centroids find",
          "[centroids]") {
  // Every label has features of its own, so its centroid is a good guess.
  const auto train = planted_data({400, 48, 10}, 7, 0);
  const auto test = planted_data({300, 48, 10}, 7, 1);
  const std::atomic<bool> is_stopping = false;
  const auto bad = compare_with_centroids(*train, judged(*test, false), kMemory, is_stopping);
  REQUIRE(bad.ok());
  REQUIRE(bad->examples == 300);
  REQUIRE(bad->network_p_at_1 == 0);
  REQUIRE(bad->centroid_p_at_1 == 1);
  REQUIRE(bad->halfwidth == 0);
  REQUIRE(bad->network_is_below());
  // Half the differences are 1, half are 0.
  std::vector<JudgedExample> half = judged(*test, false);
  for (std::size_t i = 0; i < half.size(); i += 2) half[i].is_hit = true;
  const auto fair = compare_with_centroids(*train, half, kMemory, is_stopping);
  REQUIRE(fair->network_p_at_1 == 0.5);
  REQUIRE(fair->halfwidth == Approx(1.96 * std::sqrt(0.25 / 300)));
  REQUIRE(fair->network_is_below());
  const auto good = compare_with_centroids(*train, judged(*test, true), kMemory, is_stopping);
  REQUIRE(good->network_p_at_1 == 1);
  REQUIRE_FALSE(good->network_is_below());
}

TEST_CASE("centroid comparison: a difference within its interval is none", "[centroids]") {
  CentroidComparison comparison{100, 0.50, 0.55, 0.06};
  REQUIRE_FALSE(comparison.network_is_below());
  comparison.halfwidth = 0.04;
  REQUIRE(comparison.network_is_below());
  comparison.network_p_at_1 = 0.6;
  REQUIRE_FALSE(comparison.network_is_below());
}

TEST_CASE("centroid comparison: it is left out where it costs too much, or was given up",
          "[centroids]") {
  const auto train = planted_data({}, 7, 0);
  const auto test = planted_data({40, 48, 40}, 7, 1);
  std::atomic<bool> is_stopping = false;
  REQUIRE(compare_with_centroids(*train, judged(*test, true), 100, is_stopping).error().code ==
          ErrorCode::kResources);
  is_stopping = true;
  REQUIRE(compare_with_centroids(*train, judged(*test, true), kMemory, is_stopping).error().code ==
          ErrorCode::kShuttingDown);
}

}  // namespace gleaner
