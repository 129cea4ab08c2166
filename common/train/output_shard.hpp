// One output shard: its rows, their hash codes, and the training step on some of its neurons.
//
// A step is neuron-major: each touched neuron in ascending order computes its logits, losses and
// gradients over its examples and is updated once. Everything a step reads besides the shard is in
// the QueryBatch and the PairLists, and everything it computes goes to the scratch of a worker.
//
// A neuron reads no other, and gradients are summed in integers; so the neurons may be divided
// among threads, and fused batches, which are all there, may go through a neuron one after the
// other while its row is in the cache. All bits are the same.
//
// OutputLayer trains the shards that a volunteer holds. One caller at a time, but for train_part().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/active_set.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/hash_table.hpp"
#include "common/train/kernels.hpp"
#include "common/train/leased_shards.hpp"
#include "common/train/output_rows.hpp"
#include "common/train/sim_hash.hpp"
#include "common/work/units.hpp"

namespace gleaner {

// Working memory for training output shards: one a thread, reused over shards and batches, so that
// a steady state allocates nothing.

// The most batches that are fused.
inline constexpr std::size_t kFusedBatches = 4;

// Words of a checksum (GradientRounding::check).
inline constexpr std::size_t kCheckWords = 16;

// The memory of one worker for a batch.
struct BatchScratch {
  std::vector<std::size_t> block_ends;  // of the pairs of a block's rows
  // examples x H: the gradient of the shards that this worker ended, in units (kGradientGuardBits);
  // between two shards, in whole steps.
  AlignedVector<std::uint32_t> sums;
  std::vector<std::uint32_t> checks;        // examples x kCheckWords: of `sums` between two shards
  std::vector<std::uint32_t> shard_checks;  // the same of the shard that is being ended
};

// Working memory of one thread, reused over shards and batches.
struct alignas(kCacheLine) ShardScratch {
  explicit ShardScratch(const ModelConfig& config) : chooser(config), batches(kFusedBatches) {}

  // Makes fused batch `index` ready for a first shard: its gradient is zero.
  void clear_gradient(std::size_t index, std::uint32_t examples, std::uint32_t hidden);

  // Adds entries of the gradient of fused batch `index` (examples x H) from `begin` on, in steps.
  void add_gradient_to(std::size_t index, std::size_t begin, std::span<std::int32_t> sum) const;

  [[nodiscard]] std::uint64_t memory_bytes() const;

  ActiveSetChooser chooser;
  std::vector<BatchScratch> batches;  // of those that are fused
  std::vector<std::uint32_t*> sums;   // of an example, one a worker
  std::vector<std::uint32_t> stale_rows;
  AlignedVector<float> row_gradients;  // kRowsPerStep x H
  std::vector<float> logits;
  std::vector<float> deltas;
  std::vector<const float*> hash_rows;
  std::vector<std::uint32_t> hash_codes;
  HashScratch hash;
};

// The threads that work on one shard: one, which works alone, or all of a pool, where there are
// fewer shards than threads. What is computed is the same.
class Team {
 public:
  // The calling thread alone, with its working memory.
  Team(ShardScratch& alone) : scratch_(&alone, 1) {}  // NOLINT: implicit; the usual case

  // All threads of the pool. `scratch` is one for each of them.
  Team(ThreadPool& pool, std::span<ShardScratch> scratch) : pool_(&pool), scratch_(scratch) {
    GLEANER_CHECK(scratch.size() >= pool.threads());
  }

  [[nodiscard]] std::size_t threads() const { return pool_ == nullptr ? 1 : pool_->threads(); }

  // The memory of all workers; the first is also for what they share.
  [[nodiscard]] std::span<ShardScratch> scratch() const { return scratch_.first(threads()); }

  // Calls body(index, worker) for every index < count: see ThreadPool::parallel_for.
  void for_each(std::size_t count, const LoopBody& body) const {
    if (pool_ != nullptr) return pool_->parallel_for(count, body);
    for (std::size_t index = 0; index < count; ++index) body(index, 0);
  }

 private:
  ThreadPool* pool_ = nullptr;
  std::span<ShardScratch> scratch_;
};

// Everything that all shards of a run share; outlives them. `sim_hash` is null without tables.
struct ShardContext {
  const ModelConfig& config;
  const ShardMap& map;
  const Kernels& kernels;
  const SimHash* sim_hash;
};

// A batch to be trained.
struct ShardBatch {
  const QueryBatch* queries = nullptr;
  const Positives* positives = nullptr;
  float rate = 0;
};

class OutputShard {
 public:
  // All rows are zero and their hash codes stale until load() and finish_loading().
  OutputShard(const ShardContext& context, ShardId shard);

  [[nodiscard]] ShardId id() const { return shard_; }

  [[nodiscard]] NeuronRange neurons() const { return neurons_; }

  [[nodiscard]] const OutputRows& rows() const { return rows_; }

  // The codes of rows that are not stale are of their weights.
  [[nodiscard]] const ShardCodes& codes() const { return codes_; }

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
  // last commit.
  void finish_loading(Team team);

  // Keeps these rows' committed values, if they are touched for the first time since the last
  // commit. Must precede train_part() where several threads train parts.
  void touch(std::span<const std::uint32_t> rows);

  // Forward, loss, backward and update of a part's rows on these batches, kFusedBatches at most,
  // whose lists are parallel to them; the bits are those of one batch after the other. Adds loss
  // and active pairs to `outcomes`, and what the rows add to the batches' gradients to the sums in
  // `scratch`. Different parts may be trained by different threads.
  void train_part(std::span<const ShardBatch> batches, std::span<const PairLists> lists,
                  std::size_t part, std::span<ShardOutcome> outcomes, ShardScratch& scratch);

  // Hashes again the rows changed since their codes were computed.
  void rehash(Team team);

  // Ends a round: rounds touched rows to what the update says, rehashes, and returns the update in
  // parts of ascending rows, at least one.
  std::vector<SparseUpdate> commit(Team team);

  // Undoes what was trained since the last commit, and the last `commits` commits with it. False
  // when it cannot go so far back (see OutputRows); nothing is changed then. finish_loading() must
  // follow before the shard is trained.
  [[nodiscard]] bool step_back(std::uint32_t commits);

  // The digest of the shard at its last commit, as a store has it. Requires that nothing is touched
  // since.
  [[nodiscard]] ShardDigest digest() const { return rows_.digest(shard_); }

  // The rows touched since the last commit as they stand, in parts, at least one.
  [[nodiscard]] std::vector<ShardRows> touched_rows() const;

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  class BlockWalk;

  // Points `work` at these rows, one at least, which are about to change.
  void take_rows(RowsTraining& work, std::span<const std::uint32_t> rows,
                 std::span<const std::size_t> pair_ends, const ActivePair* pairs,
                 ShardScratch& scratch);
  // Trains the rows of all batches, block by block.
  void train_blocks(std::span<std::optional<BlockWalk>> walks, ShardScratch& scratch);
  void hash_rows(std::span<const std::uint32_t> rows, Team team);
  // Computes the codes of some rows, kHashRowsMax at most, into scratch.hash_codes.
  void compute_codes(std::span<const std::uint32_t> rows, ShardScratch& scratch) const;

  ShardContext context_;
  ShardId shard_;
  NeuronRange neurons_;
  OutputRows rows_;
  ShardCodes codes_;
  std::vector<std::uint8_t> stale_;  // rows: changed since their codes were computed
};

// An output shard as LeasedShards wants it: loaded from rows of messages that have been checked.
// One thread at a time; loops run on the pool.
class HeldOutputShard final : public LeasedShard {
 public:
  // Requires check_grant(grant). Pool and scratch, one for each of its threads, outlive this.
  HeldOutputShard(const ShardContext& context, ThreadPool& pool, std::span<ShardScratch> scratch,
                  const LeaseGrant& grant);

  OutputShard& shard() { return shard_; }

  Result<void> load(const ShardRows& rows) override;
  Result<void> load_touched(const ShardRows& rows) override;
  void load_initial(const ChunkLedger& ledger) override;
  void finish_loading() override;

  bool step_back(std::uint32_t commits) override { return shard_.step_back(commits); }

  [[nodiscard]] std::vector<ShardRows> touched_rows() const override {
    return shard_.touched_rows();
  }

  [[nodiscard]] ShardDigest digest() const override { return shard_.digest(); }

  [[nodiscard]] std::uint64_t memory_bytes() const override { return shard_.memory_bytes(); }

 private:
  ShardContext context_;
  ThreadPool& pool_;
  std::span<ShardScratch> scratch_;
  std::size_t width_;
  std::size_t tables_;
  std::vector<std::uint32_t> label_counts_;  // until it is loaded
  OutputShard shard_;
};

}  // namespace gleaner
