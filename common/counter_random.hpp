// Counter-based randomness: a value is a hash of (seed, purpose, indices), without the state of a
// generator. So it does not depend on the machine, the thread or the order of requests. The hash is
// the finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// OOPSLA 2014), applied once per word.
#pragma once

#include <array>
#include <cstdint>

namespace gleaner {

// One number per use. Append only: the numbers determine the random values of a seed.
enum class Purpose : std::uint64_t {
  kExampleOrder = 1,
  kNeuronOrder = 2,
  kOutputWeight = 3,
  kInputWeight = 4,
  kHashProjection = 5,
  kStartTable = 6,
  kRandomNegative = 8,
  kDropout = 9,
  kSplit = 10,
  kSynthetic = 11,
  kSimulation = 12,
  kBackoff = 13,
  kTest = 14,
  kFeatureDropout = 15,
  kSelfTest = 16,
};

constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::uint64_t counter_random(std::uint64_t seed, Purpose purpose, std::uint64_t a = 0,
                                       std::uint64_t b = 0, std::uint64_t c = 0) {
  std::uint64_t x = mix64(seed ^ (static_cast<std::uint64_t>(purpose) << 56));
  x = mix64(x ^ a);
  x = mix64(x ^ b);
  return mix64(x ^ c);
}

// Uniform in [0, bound), bound > 0. The multiply-shift's bias is below bound / 2^64.
constexpr std::uint64_t below(std::uint64_t random, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(random) * bound) >> 64);
}

// Uniform in [-1, 1), a multiple of 2^-23, hence exact in float.
constexpr float signed_unit(std::uint64_t random) {
  return static_cast<float>(static_cast<std::int64_t>(random >> 40) - (std::int64_t{1} << 23)) *
         (1.0f / 8388608.0f);
}

// A sequential stream of counter_random, for shells and simulations.
class Rng {
 public:
  Rng(std::uint64_t seed, Purpose purpose, std::uint64_t stream = 0)
      : key_(counter_random(seed, purpose, stream)) {}

  std::uint64_t next() { return mix64(key_ ^ mix64(counter_++)); }

  // Uniform in [0, bound), bound > 0.
  std::uint64_t next_below(std::uint64_t bound) { return below(next(), bound); }

  // True with probability numerator / denominator.
  bool chance(std::uint64_t numerator, std::uint64_t denominator) {
    return next_below(denominator) < numerator;
  }

  [[nodiscard]] std::uint64_t position() const { return counter_; }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

// A seeded bijection of [0, size) without a table: a balanced Feistel network over the next even
// power of two, with cycle walking (Black and Rogaway: Ciphers with Arbitrary Finite Domains,
// CT-RSA 2002). It orders examples within an epoch and spreads labels over shards.
class Permutation {
 public:
  // `key` is any 64-bit value, usually counter_random(seed, purpose, ...). size >= 1.
  Permutation(std::uint64_t size, std::uint64_t key);

  // Both require index < size. Expected cost: at most four Feistel passes.
  [[nodiscard]] std::uint64_t forward(std::uint64_t index) const;
  [[nodiscard]] std::uint64_t inverse(std::uint64_t image) const;

  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  static constexpr int kRounds = 6;

  std::uint64_t size_;
  unsigned half_bits_;
  std::uint64_t half_mask_;
  std::array<std::uint64_t, kRounds> round_keys_;
};

}  // namespace gleaner
