// Locality-sensitive hashing: a hash family turns a query (the hidden codes of an example) and a
// row (the weights of a neuron, without its bias) into one code a table, such that vectors that
// point the same way often get the same code. All shards share one family, drawn from the seed.
//
// Queries are integers, so their sums are exact; rows are hashed in the kernels' canonical order.
// Immutable after construction; any thread, each with its own HashScratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/kernels/kernels.hpp"
#include "common/model_config.hpp"

namespace gleaner {

// Rows that hash_rows takes at once, at most.
inline constexpr std::size_t kHashRowsMax = 64;

// Working memory of one thread.
struct HashScratch {
  std::vector<std::uint16_t> words;
  std::vector<std::uint32_t> winners;
};

class HashFamily {
 public:
  virtual ~HashFamily() = default;

  // Writes one code a table, each below 2^hash_bits. `hidden` has H codes.
  virtual void hash_query(std::span<const std::uint8_t> hidden, std::span<std::uint32_t> codes,
                          HashScratch& scratch) const = 0;

  // The same for rows of H weights each: `codes` is rows.size() x tables. At most kHashRowsMax
  // rows.
  virtual void hash_rows(std::span<const float* const> rows, std::span<std::uint32_t> codes,
                         HashScratch& scratch) const = 0;
};

// The family the configuration names; `kernels` outlives it.
std::unique_ptr<HashFamily> make_hash_family(const ModelConfig& config, const Kernels& kernels);

}  // namespace gleaner
