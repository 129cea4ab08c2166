// Densified winner-take-all hashing (Chen and Shrivastava: Densified Winner Take All (DWTA) Hashing
// for Sparse Datasets, UAI 2018). A bin is a random choice of eight coordinates and its hash the
// position, three bits, of the largest among them (the first, if equal). A bin whose coordinates
// are all zero borrows the hash of another bin, chosen by a random sequence that is the same for
// every vector. A code is the concatenation of ceil(hash_bits / 3) bins; the last of them looks at
// only four or two coordinates if that is what is left of the bits.
#pragma once

#include "common/lsh/hash_family.hpp"

namespace gleaner {

class Dwta final : public HashFamily {
 public:
  explicit Dwta(const ModelConfig& config);

  void hash_query(std::span<const std::uint8_t> hidden, std::span<std::uint32_t> codes,
                  HashScratch& scratch) const override;
  void hash_rows(std::span<const float* const> rows, std::span<std::uint32_t> codes,
                 HashScratch& scratch) const override;

 private:
  template <typename T>
  void hash(const T* vector, std::span<std::uint32_t> codes, HashScratch& scratch) const;
  // The winner that the empty `bin` borrows.
  [[nodiscard]] std::uint32_t borrow(std::uint32_t bin,
                                     std::span<const std::uint32_t> winners) const;

  std::uint64_t seed_;
  std::uint32_t hidden_;
  std::uint32_t bits_;
  std::uint32_t tables_;
  std::uint32_t bins_;                      // of a table
  std::vector<std::uint32_t> coordinates_;  // tables x bins x 8
};

}  // namespace gleaner
