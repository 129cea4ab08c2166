// Locality-sensitive hashing: turns a query (the hidden codes of an example) and a row (the weights
// of a neuron, without its bias) into one code a table, such that vectors that point the same way
// often get the same code. All shards share one SimHash, drawn from the seed.
//
// Bit k of table t is the sign of the vector's product with a random +-1 vector, so that two
// vectors at angle a agree in a bit with probability close to 1 - a / pi (Charikar: Similarity
// Estimation Techniques from Rounding Algorithms, STOC 2002; Goemans and Williamson for the angle).
// A sum that is not positive gives 0. The +-1 vectors are those of SignProjections: orthogonal in
// blocks, which lessens the estimate's variance (Ji et al.: Super-Bit Locality-Sensitive Hashing,
// NIPS 2012), and fast for rows.
//
// Queries are integers, so their sums are exact; rows are hashed in the kernels' canonical order.
// Immutable after construction; any thread, each with its own HashScratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/kernels/kernels.hpp"
#include "common/model/model_config.hpp"

namespace gleaner {

// Rows that hash_rows takes at once, at most.
inline constexpr std::size_t kHashRowsMax = 64;

// Working memory of one thread.
struct HashScratch {
  std::vector<std::uint16_t> words;
};

class SimHash {
 public:
  // `kernels` outlives it.
  SimHash(const ModelConfig& config, const Kernels& kernels);

  // Writes one code a table, each below 2^hash_bits. `hidden` has H codes.
  void hash_query(std::span<const std::uint8_t> hidden, std::span<std::uint32_t> codes,
                  HashScratch& scratch) const;

  // Hashes rows of H weights each: `codes` is rows.size() x tables. At most kHashRowsMax
  // rows.
  void hash_rows(std::span<const float* const> rows, std::span<std::uint32_t> codes,
                 HashScratch& scratch) const;

 private:
  // Cuts one vector's bits into its codes.
  void cut(const std::uint16_t* words, std::span<std::uint32_t> codes) const;

  const Kernels& kernels_;
  std::uint32_t bits_;
  std::uint32_t tables_;
  std::vector<float> flips_;
  std::vector<std::int8_t> pairs_;
  std::vector<std::int32_t> thresholds_;
  SignProjections projections_;
};

}  // namespace gleaner
