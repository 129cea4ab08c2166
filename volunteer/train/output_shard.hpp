// One output shard: its rows, their hash codes and tables, and the training step on a batch.
//
// A step is neuron-major: active sets of all examples first, then each touched neuron in ascending
// order computes its logits, losses and gradients over its examples and is updated once. Everything
// a step reads besides the shard is in the QueryBatch, and everything it computes goes to a
// ShardScratch, so threads that own different shards share nothing.
//
// Several batches that are all there may take their steps together: a neuron reads no other, so it
// can go through all of them while its row is in the cache, each time as the batch before left it.
// Every row then comes from memory once, instead of once a batch, and all bits are the same.
//
// Invariant: a row whose codes are not stale stands in the tables under the code of its weights.
// One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/kernels/kernels.hpp"
#include "common/lsh/sim_hash.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_digest.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/active_set.hpp"
#include "volunteer/train/hash_table.hpp"
#include "volunteer/train/output_rows.hpp"
#include "volunteer/train/query_batch.hpp"

namespace gleaner {

// Everything that all shards of a run share; outlives them. `sim_hash` is null without tables.
struct ShardContext {
  const ModelConfig& config;
  const ShardMap& map;
  const Kernels& kernels;
  const SimHash* sim_hash;
};

// So many batches take their steps together at most. What is random in their access, gradients of
// the hidden codes, has to fit the second cache level.
inline constexpr std::size_t kBatchesTogether = 4;

// What a batch's step on a shard needs for itself.
struct BatchScratch {
  explicit BatchScratch(const ModelConfig& config) : active(config) {}

  ActiveSets active;
  AlignedVector<float> hidden_gradient;  // examples x H, of one shard
  std::vector<std::int32_t> steps;       // the same as integers
  std::vector<std::size_t> block_ends;
};

// Working memory of one thread, reused over shards and batches.
struct ShardScratch {
  explicit ShardScratch(const ModelConfig& config)
      : batches(kBatchesTogether, BatchScratch(config)) {}

  std::vector<BatchScratch> batches;   // of those that take their steps together
  AlignedVector<float> row_gradients;  // kRowsPerStep x H
  std::vector<float> logits;
  std::vector<float> deltas;
  std::vector<const float*> hash_rows;
  std::vector<std::uint32_t> hash_codes;
  HashScratch hash;
};

// A batch to be trained.
struct ShardBatch {
  const QueryBatch* queries = nullptr;
  const Positives* positives = nullptr;
  float rate = 0;
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

  // Forward, loss, backward and update on these batches, kBatchesTogether at most, the bits being
  // those of one after the other; what each came to goes to `outcomes`. Leaves the shard's integer
  // gradient of batch i, examples x H, in scratch.batches[i].steps. Does not rehash.
  void train(std::span<const ShardBatch> batches, std::span<ShardOutcome> outcomes,
             ShardScratch& scratch);

  // The same with one batch.
  ShardOutcome train(const QueryBatch& batch, const Positives& positives, float rate,
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
  class BlockWalk;

  // Chooses the batch's neurons; returns what all of its blocks share.
  RowsTraining begin_batch(const ShardBatch& batch, BatchScratch& own, ShardScratch& scratch);
  // Makes the batch's gradient integers.
  void end_batch(const ShardBatch& batch, BatchScratch& own, ShardOutcome& outcome) const;
  // Points `work` at these rows, one at least, which are about to change.
  void take_rows(RowsTraining& work, std::span<const std::uint32_t> rows,
                 std::span<const std::size_t> pair_ends, const ActivePair* pairs,
                 ShardScratch& scratch);
  // Trains the rows of all batches, block by block.
  void train_blocks(std::span<std::optional<BlockWalk>> walks, ShardScratch& scratch);
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
