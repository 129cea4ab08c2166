// Locality-sensitive hashing: turns a query (the quantized activations of an example) and a row
// (the weights of a neuron, without its bias) into one hash code per table. Vectors of similar
// direction often get the same code. All shards share one SimHash, which follows from the seed.
//
// Bit k of table t is the sign of the vector's product with a random +-1 vector, so two vectors at
// angle a agree in a bit with probability close to 1 - a / pi (Charikar: Similarity Estimation
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
#include <memory>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "common/model/model_config.hpp"
#include "common/thread_pool.hpp"
#include "common/train/kernels.hpp"
#include "common/work/quantized_activations.hpp"

namespace gleaner {

// The most rows that hash_rows takes at once.
inline constexpr std::size_t kHashRowsMax = 64;

// Working memory of one thread.
struct HashScratch {
  std::vector<std::uint16_t> words;
};

class SimHash {
 public:
  // `kernels` outlives it.
  SimHash(const ModelConfig& config, const Kernels& kernels);

  // Writes one hash code per table, each below 2^hash_bits. `hidden` has H quantized activations.
  void hash_query(std::span<const std::uint8_t> hidden, std::span<std::uint32_t> codes,
                  HashScratch& scratch) const;

  // Hashes at most kHashRowsMax rows of H weights each. `codes` is rows.size() x tables.
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

// The hash codes of a shard's committed rows. They follow from the weights: a holder computes them
// when it commits, the store when it folds commits, and both get the same. One thread at a time.
class RowCodes {
 public:
  // Rows have hash codes only in a run that samples by LSH. Uses the machine's fastest kernels.
  explicit RowCodes(const ModelConfig& config);

  // `values` has `row_width` floats per row, the first H of which are its weights. Returns
  // config.tables hash codes per row, or none without tables. Valid until the next call.
  std::span<const std::uint32_t> of(std::span<const float> values, std::size_t row_width);

 private:
  std::size_t tables_ = 0;
  std::unique_ptr<SimHash> sim_hash_;
  HashScratch scratch_;
  std::vector<const float*> rows_;
  std::vector<std::uint32_t> codes_;
};

// The facts about a batch's examples that every shard needs, computed once for all held shards:
// hash codes, and the table at which the walk through the tables begins, which depends only on
// (seed, batch, position in the batch). One thread at a time calls prepare(), which runs its loop
// on the pool; then any thread may read.
class QueryBatch {
 public:
  // `sim_hash` is null without tables; it outlives the batch.
  QueryBatch(const ModelConfig& config, const SimHash* sim_hash);

  // `codes` outlives the use of the batch.
  void prepare(BatchIndex batch, const QuantizedActivations& codes, ThreadPool& pool);

  [[nodiscard]] BatchIndex batch() const { return batch_; }

  [[nodiscard]] std::uint32_t examples() const { return codes_->examples; }

  [[nodiscard]] const QuantizedActivations& codes() const { return *codes_; }

  // The example's hash code in each table.
  [[nodiscard]] std::span<const std::uint32_t> hashes(std::uint32_t example) const {
    return {&hashes_[std::size_t{example} * tables_], tables_};
  }

  // Table at which the walk begins.
  [[nodiscard]] std::uint32_t start_table(std::uint32_t example) const {
    return start_tables_[example];
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  void prepare_example(std::uint32_t example, HashScratch& scratch);

  const ModelConfig& config_;
  const SimHash* sim_hash_;
  std::uint32_t tables_;
  BatchIndex batch_ = 0;
  const QuantizedActivations* codes_ = nullptr;
  std::vector<std::uint32_t> hashes_;
  std::vector<std::uint32_t> start_tables_;
  std::vector<HashScratch> scratch_;  // one per thread
};

}  // namespace gleaner
