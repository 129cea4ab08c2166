// SimHash: bit k of table t is the sign of the vector's product with a random +-1 vector, so that
// two vectors at angle a agree in a bit with probability close to 1 - a / pi (Charikar: Similarity
// Estimation Techniques from Rounding Algorithms, STOC 2002; Goemans and Williamson for the angle).
// A sum that is not positive gives 0. The +-1 vectors are those of SignProjections: orthogonal in
// blocks, which lessens the estimate's variance (Ji et al.: Super-Bit Locality-Sensitive Hashing,
// NIPS 2012), and fast for rows.
#pragma once

#include "common/lsh/hash_family.hpp"

namespace gleaner {

class SimHash final : public HashFamily {
 public:
  SimHash(const ModelConfig& config, const Kernels& kernels);

  void hash_query(std::span<const std::uint8_t> hidden, std::span<std::uint32_t> codes,
                  HashScratch& scratch) const override;
  void hash_rows(std::span<const float* const> rows, std::span<std::uint32_t> codes,
                 HashScratch& scratch) const override;

 private:
  // Cuts one vector's bits into its codes.
  void cut(const std::uint16_t* words, std::span<std::uint32_t> codes) const;

  const Kernels& kernels_;
  std::uint32_t bits_;
  std::uint32_t tables_;
  std::vector<float> flips_;
  std::vector<std::int8_t> pairs_;
  SignProjections projections_;
};

}  // namespace gleaner
