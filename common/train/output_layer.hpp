// The output shards that a volunteer holds, trained together. One set of hash tables covers all of
// them, so an example's neurons are looked up once; lists of pairs run through all shards. A
// shard's result does not depend on which other shards are held.
//
// A step first divides the examples among threads to choose active sets, then makes the pair lists.
// Then each thread trains whole shards and ends their gradients, as long as there are shards for
// threads; the shards left over are trained one by one by all threads.
//
// One caller at a time; loops run on the pool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/thread_pool.hpp"
#include "common/train/active_set.hpp"
#include "common/train/hash_table.hpp"
#include "common/train/output_shard.hpp"
#include "common/work/units.hpp"

namespace gleaner {

class OutputLayer {
 public:
  // `scratch` has one entry per thread of the pool. All arguments outlive the layer.
  OutputLayer(const ShardContext& context, ThreadPool& pool, std::span<ShardScratch> scratch);

  // Holds these loaded shards, ascending. They must outlive the layer or live until the next call.
  void hold(std::span<OutputShard* const> shards);

  // Notes that hash codes have changed: the tables are rebuilt before the next step.
  void mark_codes_changed() { are_tables_stale_ = true; }

  // Rebuilds the tables now if hash codes have changed.
  void rebuild_tables();

  // Trains some of the shards that are held, ascending, on these batches, kFusedBatches at most,
  // to the bits of one batch after the other. Writes `outcomes`, shards x batches. The gradient of
  // batch i is the sum over the workers' scratch (ShardScratch::add_gradient_to). Does not rehash.
  void train(std::span<const ShardBatch> batches, std::span<OutputShard* const> shards,
             std::span<ShardOutcome> outcomes);

  // Calls body(index, team) for each of `count` shards. One thread takes a whole shard, as long as
  // every thread gets the same number of them; all threads together take each of the last shards.
  template <typename Body>
  void for_each_shard(std::size_t count, const Body& body) {
    const std::size_t whole_shards = count - count % pool_.threads();
    pool_.parallel_for(whole_shards, [&](std::size_t index, unsigned worker) {
      body(index, Team(scratch_[worker]));
    });
    for (std::size_t index = whole_shards; index < count; ++index)
      body(index, Team(pool_, scratch_));
  }

  [[nodiscard]] const HashTables& tables() const { return tables_; }

  // For tests and benches: the rows that examples of fused batch `index` chose in the last step, in
  // a shard that the step trained. Requires a pool of one thread.
  [[nodiscard]] std::span<const std::uint32_t> rows(std::size_t index, std::size_t shard) const {
    return lists_[index].rows(parts_begin_[shard]);
  }

  // The last batch's active sets.
  [[nodiscard]] const ActiveSets& sets() const { return sets_[0]; }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  // Notes which shards the step trains, and divides their rows among threads.
  void divide(std::span<OutputShard* const> shards);
  // Chooses the rows of fused batch `index` and makes its pair lists.
  void choose(const ShardBatch& batch, std::size_t index);
  void train_shard(std::span<const ShardBatch> batches, OutputShard& shard, std::size_t index,
                   std::span<ShardOutcome> outcomes, Team team);
  // Ends the shard's part of the gradients, which all threads of the team have summed.
  void round_gradients(std::span<const ShardBatch> batches, std::size_t place,
                       std::span<ShardOutcome> outcomes, Team team);
  void round_some_gradients(std::size_t batch, ExampleRange examples, std::size_t place, Team team,
                            ShardScratch& mine);

  ShardContext context_;
  ThreadPool& pool_;
  std::span<ShardScratch> scratch_;
  std::vector<OutputShard*> shards_;  // the held shards
  std::vector<HeldShard> held_;       // the same shards, as the chooser takes them
  HashTables tables_;
  bool are_tables_stale_ = true;
  // For the shards that the step trains, in order: where their parts begin, and the end of the
  // last.
  std::vector<std::size_t> parts_begin_;
  std::vector<RowPart> parts_;
  std::vector<ActiveSets> sets_;     // of the batch whose lists are being made
  std::vector<PairLists> lists_;     // one per fused batch
  std::vector<ShardCounts> counts_;  // one per fused batch
  std::vector<ShardOutcome> part_outcomes_;
};

}  // namespace gleaner
