// Which chunks of a grant have come. Chunks come from a peer, so each is checked in full before
// anything of it is used; a refused one changes nothing. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// Checks a grant against the run: a shard that exists, counts of the right size, a position that
// fits its checkpoint.
Result<void> check_grant(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map,
                         const RunPlan& plan);

class ChunkLedger {
 public:
  // Requires check_grant(grant). Borrows configuration and map.
  ChunkLedger(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map);

  // Notes the chunk. Refuses one out of range, one that came before, and rows that do not fit.
  Result<void> accept(const ShardChunk& chunk);
  // Names a chunk that has not come.
  [[nodiscard]] Result<void> check_complete() const;

  // Rows of a checkpoint, not of a hand-over on top of it.
  [[nodiscard]] bool is_base(std::uint32_t chunk) const { return chunk < base_chunks_; }

  // Whether a chunk of the checkpoint held the row.
  [[nodiscard]] bool has_base(std::size_t row) const { return has_base_[row] != 0; }

  [[nodiscard]] std::uint64_t memory_bytes() const {
    return has_chunk_.size() + has_base_.size() + has_overlay_.size();
  }

 private:
  const ModelConfig& config_;
  const ShardMap& map_;
  LeaseRef lease_;
  std::uint32_t base_chunks_;
  std::vector<std::uint8_t> has_chunk_;
  std::vector<std::uint8_t> has_base_;     // rows
  std::vector<std::uint8_t> has_overlay_;  // rows
};

}  // namespace gleaner
