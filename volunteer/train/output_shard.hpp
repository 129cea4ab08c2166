// One output shard: its rows, their hash codes and tables, and the training step on a batch.
//
// A step is neuron-major: active sets of all examples first, then each touched neuron in ascending
// order computes its logits, losses and gradients over its examples and is updated once. Everything
// a step reads besides the shard is in the QueryBatch, and everything it computes goes to a
// ShardScratch, so threads that own different shards share nothing.
//
// Invariant: a row whose codes are not stale stands in the tables under the code of its weights.
// One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/kernels/kernels.hpp"
#include "common/lsh/hash_family.hpp"
#include "common/model_config.hpp"
#include "common/shard_digest.hpp"
#include "common/shard_map.hpp"
#include "common/shard_rows.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/active_set.hpp"
#include "volunteer/train/hash_table.hpp"
#include "volunteer/train/output_rows.hpp"
#include "volunteer/train/query_batch.hpp"
#include "volunteer/train/softmax.hpp"

namespace gleaner {

// What all shards of a run have in common; outlives them. `family` is null without tables.
struct ShardContext {
  const ModelConfig& config;
  const ShardMap& map;
  const Kernels& kernels;
  const HashFamily* family;
};

// Working memory of one thread, reused over shards and batches.
struct ShardScratch {
  explicit ShardScratch(const ModelConfig& config) : active(config) {}

  ActiveSets active;
  AlignedVector<float> hidden_gradient;  // examples x H, of one shard
  std::vector<std::int32_t> steps;       // the same as integers
  AlignedVector<float> row_gradients;    // kRowsPerStep x H
  AlignedVector<float> hidden_values;    // of one example
  std::vector<float> logits;
  std::vector<float> deltas;
  std::vector<std::size_t> block_ends;
  SoftmaxScratch softmax;
  std::vector<const float*> hash_rows;
  std::vector<std::uint32_t> hash_codes;
  HashScratch hash;
};

// Largest magnitude of a shard's integer gradient: 2^24, or less when there are so many shards that
// their sum would leave 32 bits.
std::int32_t gradient_limit(const ModelConfig& config);

class OutputShard {
 public:
  // All rows are zero and their codes stale until load() and refresh_codes().
  OutputShard(const ShardContext& context, ShardId shard);

  [[nodiscard]] ShardId id() const { return shard_; }

  [[nodiscard]] NeuronRange neurons() const { return neurons_; }

  [[nodiscard]] const OutputRows& rows() const { return rows_; }

  [[nodiscard]] const HashTables& tables() const { return tables_; }

  // Sets a row that no commit has touched yet; its codes become stale. Different rows may be set by
  // different threads.
  void load_initial(std::uint32_t row, std::span<const float> values);
  // Sets a row as commits left it. `codes` are the row's; when empty, they become stale.
  void load(std::uint32_t row, std::span<const float> values, float state,
            std::span<const std::uint32_t> codes);
  // Sets a row that has moved on from the committed one loaded before.
  void load_touched(std::uint32_t row, std::span<const float> values, float state,
                    std::span<const std::uint32_t> codes, bool codes_are_stale);
  // Ends loading, or a step back: computes stale codes of rows that nobody has touched since the
  // last commit, and the tables.
  void finish_loading(ThreadPool& pool, std::span<ShardScratch> scratch);

  // Forward, loss, backward and update on one batch. Leaves the shard's integer gradient, examples
  // x H, in scratch.steps. Does not rehash.
  ShardOutcome train(const QueryBatch& batch, const Positives& positives, float rate,
                     ShardScratch& scratch);

  // Instead of a step: adds each example's hidden code, less the batch's mean, to the rows of its
  // true labels. `is_last` makes every sum centroid_scale long. The integer gradient is zero.
  ShardOutcome sum_centroids(const QueryBatch& batch, const Positives& positives, bool is_last,
                             ShardScratch& scratch);

  // Hashes anew the rows changed since their codes were computed, and rebuilds the tables changed.
  void rehash(ShardScratch& scratch);

  // Ends a round: rounds touched rows to what the update says, rehashes, and returns the update in
  // parts of ascending rows, at least one.
  std::vector<SparseUpdate> commit(ShardScratch& scratch);

  // Undoes what was trained since the last commit, and the last `commits` commits with it. False
  // when it cannot go so far back (see OutputRows); nothing is changed then. finish_loading() must
  // follow before the shard is trained.
  [[nodiscard]] bool step_back(std::uint32_t commits);

  // What a store has of the shard at its last commit. Requires that nothing is touched since.
  [[nodiscard]] ShardDigest digest() const;

  // The rows touched since the last commit as they stand, in parts, at least one.
  [[nodiscard]] std::vector<ShardRows> touched_rows() const;

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  void scale_centroids();
  // Points `work` at these rows, one at least, which are about to change.
  void take_rows(RowsTraining& work, std::span<const std::uint32_t> rows,
                 std::span<const std::size_t> pair_ends, const ActivePair* pairs,
                 ShardScratch& scratch);
  // Trains the rows of scratch.active, block by block; `work` has what all blocks share.
  std::int64_t train_blocks(RowsTraining& work, const RmsRule& rule, ShardScratch& scratch);
  // The same for a loss that needs all logits of an example at once.
  std::int64_t train_softmax(RowsTraining& work, const RmsRule& rule, std::uint32_t examples,
                             ShardScratch& scratch);
  // Computes the codes of some rows, kHashRowsMax at most, into scratch.hash_codes.
  void compute_codes(std::span<const std::uint32_t> rows, ShardScratch& scratch) const;

  ShardContext context_;
  ShardId shard_;
  NeuronRange neurons_;
  OutputRows rows_;
  HashTables tables_;
  std::vector<std::uint8_t> stale_;  // rows: changed since their codes were computed
};

}  // namespace gleaner
