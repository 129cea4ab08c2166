// One output shard: its rows, their hash codes, and the training step on some of its neurons.
//
// A step is neuron-major: each touched neuron in ascending order computes its logits, losses and
// gradients over its examples and is updated once. A step reads the shard, the QueryBatch and the
// PairLists, and writes to the shard and the scratch of a thread.
//
// No neuron reads another, and gradients are summed in integers. So threads may divide the neurons,
// and a neuron may take several fused batches in sequence while its row is in the cache: all bits
// stay the same.
//
// One caller at a time, except train_part().
#pragma once

#include <cstdint>
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

// The most batches that are fused.
inline constexpr std::size_t kFusedBatches = 4;

// Words of a checksum (GradientRounding::check).
inline constexpr std::size_t kCheckWords = 16;

// The memory of one thread for a batch.
struct BatchScratch {
  std::vector<std::size_t> block_ends;  // where the pairs of a block's rows end
  // examples x H: the gradient of the shards that this thread ended. In the unit of
  // kGradientGuardBits during a shard, in whole steps between two shards.
  AlignedVector<std::uint32_t> sums;
  std::vector<std::uint32_t> checks;        // examples x kCheckWords: of `sums` between two shards
  std::vector<std::uint32_t> shard_checks;  // of the shard that is being ended
};

// Working memory of one thread for training, reused over shards and batches, so that a steady state
// allocates nothing.
struct alignas(kCacheLine) ShardScratch {
  explicit ShardScratch(const ModelConfig& config) : chooser(config), batches(kFusedBatches) {}

  // Zeroes the gradient of fused batch `index`, before its first shard.
  void clear_gradient(std::size_t index, std::uint32_t examples, std::uint32_t hidden);

  // Adds the gradient of fused batch `index` (examples x H), from entry `begin` on, in whole steps.
  void add_gradient_to(std::size_t index, std::size_t begin, std::span<std::int32_t> sum) const;

  [[nodiscard]] std::uint64_t memory_bytes() const;

  ActiveSetChooser chooser;
  std::vector<BatchScratch> batches;  // of fused batches
  std::vector<std::uint32_t*> sums;   // of one example, one entry per thread
  std::vector<std::uint32_t> stale_rows;
  AlignedVector<float> row_gradients;  // kRowsPerStep x H
  std::vector<float> logits;
  std::vector<float> deltas;
  std::vector<const float*> hash_rows;
  std::vector<std::uint32_t> hash_codes;
  HashScratch hash;
};

// The threads that work on one shard: one thread alone, or all threads of a pool where there are
// fewer shards than threads. The results are the same.
class Team {
 public:
  // The calling thread alone, with its working memory.
  Team(ShardScratch& alone) : scratch_(&alone, 1) {}  // NOLINT: implicit; the usual case

  // All threads of the pool. `scratch` has one entry per thread.
  Team(ThreadPool& pool, std::span<ShardScratch> scratch) : pool_(&pool), scratch_(scratch) {
    GLEANER_CHECK(scratch.size() >= pool.threads());
  }

  [[nodiscard]] std::size_t threads() const { return pool_ == nullptr ? 1 : pool_->threads(); }

  // The memory of all threads; the first entry also serves what the threads share.
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

// The facts that all shards of a run share; outlives the shards. `sim_hash` is null without tables.
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

  // Hash codes of rows; a row's codes belong to its weights unless they are stale.
  [[nodiscard]] const ShardCodes& codes() const { return codes_; }

  // Sets a row that no commit has changed yet; its hash codes become stale. Different threads may
  // set different rows.
  void load_initial(std::uint32_t row, std::span<const float> values);
  // Sets a row as commits left it. `codes` are its hash codes; if empty, they become stale.
  void load(std::uint32_t row, std::span<const float> values, float state,
            std::span<const std::uint32_t> codes);
  // Sets a row that has changed since the committed row loaded before.
  void load_touched(std::uint32_t row, std::span<const float> values, float state,
                    std::span<const std::uint32_t> codes, bool codes_are_stale);
  // Ends loading, or a step back: computes the stale hash codes of rows that have not been touched
  // since the last commit.
  void finish_loading(Team team);

  // Copies the committed values of rows that are touched for the first time since the last commit.
  // Must precede train_part() where several threads train parts.
  void touch(std::span<const std::uint32_t> rows);

  // Forward, loss, backward and update of a part's rows on at most kFusedBatches batches; `lists`
  // is parallel to them. The bits are as for one batch after the other. Adds loss and active
  // pairs to `outcomes`, and the rows' gradients of activations to the sums in `scratch`. Different
  // threads may train different parts.
  void train_part(std::span<const ShardBatch> batches, std::span<const PairLists> lists,
                  std::size_t part, std::span<ShardOutcome> outcomes, ShardScratch& scratch);

  // Hashes the rows that have changed since their hash codes were computed.
  void rehash(Team team);

  // Ends a round: rounds touched rows to the values that the update expresses, rehashes, and
  // returns the update in at least one part of ascending rows.
  std::vector<SparseUpdate> commit(Team team);

  // Undoes the changes since the last commit, and the last `commits` commits. Returns false and
  // changes nothing when it cannot go so far back (see OutputRows). finish_loading() must follow
  // before the shard is trained.
  [[nodiscard]] bool step_back(std::uint32_t commits);

  // The digest of the shard at its last commit, equal to the store's. Requires no touched row.
  [[nodiscard]] ShardDigest digest() const { return rows_.digest(shard_); }

  // The rows touched since the last commit, in at least one part.
  [[nodiscard]] std::vector<ShardRows> touched_rows() const;

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  class BlockWalk;

  // Points `work` at these rows, at least one, which are about to change.
  void take_rows(RowsTraining& work, std::span<const std::uint32_t> rows,
                 std::span<const std::size_t> pair_ends, const ActivePair* pairs,
                 ShardScratch& scratch);
  // Trains the rows of all batches, block by block.
  void train_blocks(std::span<std::optional<BlockWalk>> walks, ShardScratch& scratch);
  void hash_rows(std::span<const std::uint32_t> rows, Team team);
  // Computes the hash codes of at most kHashRowsMax rows into scratch.hash_codes.
  void compute_codes(std::span<const std::uint32_t> rows, ShardScratch& scratch) const;

  ShardContext context_;
  ShardId shard_;
  NeuronRange neurons_;
  OutputRows rows_;
  ShardCodes codes_;
  std::vector<std::uint8_t> stale_;  // by row: changed since its hash codes were computed
};

// An output shard that LeasedShards loads from checked messages. One thread at a time; loops run on
// the pool.
class HeldOutputShard final : public LeasedShard {
 public:
  // Requires check_grant(grant). Pool and scratch (one entry per thread) outlive this object.
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
  std::vector<std::uint32_t> label_counts_;  // until the shard is loaded
  OutputShard shard_;
};

}  // namespace gleaner
