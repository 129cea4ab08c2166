// A seeded bijection of [0, size) that needs no memory: a balanced Feistel network over the next
// even power of two, with cycle walking (Black and Rogaway: Ciphers with Arbitrary Finite Domains,
// CT-RSA 2002). Orders examples within an epoch and spreads labels over shards.
#pragma once

#include <array>
#include <cstdint>

namespace gleaner {

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
