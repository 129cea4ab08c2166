// A shard of an input layer as LeasedShards wants it: held by the layer as long as this exists. One
// thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "common/result.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/chunk_ledger.hpp"
#include "volunteer/train/input/input_layer.hpp"

namespace gleaner {

class HeldInputShard {
 public:
  // The layer, in which the shard is not held, outlives this.
  HeldInputShard(InputLayer& layer, ShardId shard) : layer_(layer), shard_(shard) {
    layer_.hold(shard_);
  }

  ~HeldInputShard() { layer_.drop(shard_); }

  HeldInputShard(const HeldInputShard&) = delete;
  HeldInputShard& operator=(const HeldInputShard&) = delete;

  Result<void> load(const ShardRows& rows) { return layer_.load_rows(shard_, rows); }

  Result<void> load_touched(const ShardRows& rows) {
    return layer_.load_touched_rows(shard_, rows);
  }

  // The layer begins with all of them.
  void load_initial(const ChunkLedger& /*ledger*/) {}

  void finish_loading() {}

  bool step_back(std::uint32_t commits) { return layer_.step_back(shard_, commits); }

  [[nodiscard]] std::vector<ShardRows> touched_rows() const { return layer_.touched_rows(shard_); }

  // The layer counts it.
  [[nodiscard]] std::uint64_t memory_bytes() const { return 0; }

 private:
  InputLayer& layer_;
  ShardId shard_;
};

}  // namespace gleaner
