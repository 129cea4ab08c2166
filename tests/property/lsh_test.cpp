// Collision rates of SimHash against theory.
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "common/counter_random.hpp"
#include "common/train/sim_hash.hpp"
#include "tests/property/property_seed.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kHidden = 256;
constexpr std::uint32_t kTables = 1024;

ModelConfig config_of(std::uint32_t bits, std::uint64_t seed) {
  ModelConfig config;
  config.seed = seed;
  config.hidden = kHidden;
  config.hash_bits = bits;
  config.tables = kTables;
  return config;
}

double gaussian(Rng& rng) {
  // The sum of twelve uniforms of variance 1/3 each, scaled.
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(signed_unit(rng.next()));
  return sum / 2;
}

std::vector<double> unit_vector(Rng& rng) {
  std::vector<double> vector(kHidden);
  double squares = 0;
  for (double& value : vector) {
    value = gaussian(rng);
    squares += value * value;
  }
  for (double& value : vector) value /= std::sqrt(squares);
  return vector;
}

// Share of the tables in which two vectors at `angle` have the same code, over several pairs.
double collision_rate(std::uint32_t bits, double angle) {
  constexpr int kPairs = 24;
  std::size_t equal = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    const std::uint64_t stream = property_seed() + static_cast<std::uint64_t>(pair);
    const SimHash sim_hash(config_of(bits, stream), kernels_for(SimdLevel::kScalar));
    Rng rng(stream, Purpose::kTest, bits);
    const std::vector<double> a = unit_vector(rng);
    std::vector<double> across = unit_vector(rng);
    double overlap = 0;
    for (std::size_t i = 0; i < kHidden; ++i) overlap += a[i] * across[i];
    double squares = 0;
    for (std::size_t i = 0; i < kHidden; ++i) {
      across[i] -= overlap * a[i];
      squares += across[i] * across[i];
    }
    std::vector<float> first(kHidden);
    std::vector<float> second(kHidden);
    for (std::size_t i = 0; i < kHidden; ++i) {
      const double orthogonal = across[i] / std::sqrt(squares);
      first[i] = static_cast<float>(a[i]);
      second[i] = static_cast<float>(std::cos(angle) * a[i] + std::sin(angle) * orthogonal);
    }
    std::vector<std::uint32_t> codes(std::size_t{2} * kTables);
    HashScratch scratch;
    const float* rows[] = {first.data(), second.data()};
    sim_hash.hash_rows(rows, codes, scratch);
    for (std::size_t table = 0; table < kTables; ++table) {
      equal += codes[table] == codes[kTables + table] ? 1 : 0;
    }
  }
  return static_cast<double>(equal) / (kPairs * static_cast<double>(kTables));
}

}  // namespace

TEST_CASE("simhash: vectors at an angle collide with probability (1 - angle / pi)^K", "[lsh]") {
  CAPTURE(property_seed());
  for (const std::uint32_t bits : {1u, 4u, 9u}) {
    for (const double angle : {0.0, 0.2, 0.5, 1.0, std::numbers::pi / 2, 2.5}) {
      const double expected = std::pow(1 - angle / std::numbers::pi, bits);
      const double rate = collision_rate(bits, angle);
      CAPTURE(bits, angle, expected, rate);
      // 24,576 draws, but draws of one pair share its vectors: five deviations and a little more.
      REQUIRE(std::abs(rate - expected) < 5 * std::sqrt(expected * (1 - expected) / 24576) + 0.004);
    }
  }
}

}  // namespace gleaner
