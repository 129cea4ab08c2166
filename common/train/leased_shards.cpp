#include "common/train/leased_shards.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/model/row_checks.hpp"

namespace gleaner {
namespace {

// Chunks are about kRowsPerChunkBytes of rows; a grant that promises more chunks than the shard has
// rows, twice over, is not one of ours.
std::uint64_t chunks_max(std::uint64_t rows) {
  return 2 * rows + 2;
}

Error refuse(const LeaseRef& lease, const std::string& what) {
  return {ErrorCode::kProtocol,
          fmt::format("shard {} (lease {}): {}", raw(lease.shard), raw(lease.epoch), what)};
}

}  // namespace

Result<void> check_grant(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map,
                         const RunPlan& plan) {
  const LeaseRef lease = grant.lease;
  if (raw(lease.shard) >= map.shard_count()) {
    return refuse(lease, fmt::format("there are only {} shards", map.shard_count()));
  }
  const std::uint32_t rows = map.row_count(lease.shard);
  const std::uint32_t labels = map.is_output(lease.shard) ? map.neurons(lease.shard).size() : 0;
  if (grant.label_counts.size() != labels) {
    return refuse(lease, fmt::format("the grant has {} label counts for {} neurons",
                                     grant.label_counts.size(), labels));
  }
  for (const std::uint32_t count : grant.label_counts) {
    if (count > config.points) {
      return refuse(lease, fmt::format("a label count of {} exceeds the {} training examples",
                                       count, config.points));
    }
  }
  if (grant.base_round > plan.round_count()) {
    return refuse(lease, fmt::format("checkpoint {} is beyond the run's {} rounds",
                                     grant.base_round, plan.round_count()));
  }
  const BatchIndex begin = plan.round_begin(grant.base_round);
  const bool is_last = grant.base_round == plan.round_count();
  if (grant.next_batch < begin ||
      grant.next_batch >= (is_last ? begin + 1 : plan.round_end(grant.base_round))) {
    return refuse(lease, fmt::format("batch {} does not lie in the round after checkpoint {}",
                                     grant.next_batch, grant.base_round));
  }
  if (grant.base_chunks > grant.chunks || grant.chunks > chunks_max(rows)) {
    return refuse(lease, fmt::format("{} base chunks of {} chunks for {} rows cannot be",
                                     grant.base_chunks, grant.chunks, rows));
  }
  if (grant.next_batch > begin && grant.base_chunks == grant.chunks) {
    return refuse(lease, "the grant stands within a round but has no handed-over chunk");
  }
  return {};
}

ChunkLedger::ChunkLedger(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map)
    : config_(config),
      map_(map),
      lease_(grant.lease),
      base_chunks_(grant.base_chunks),
      has_chunk_(grant.chunks, 0),
      has_base_(map.row_count(grant.lease.shard), 0),
      has_overlay_(has_base_.size(), 0) {}

Result<void> ChunkLedger::accept(const ShardChunk& chunk) {
  if (chunk.chunk >= has_chunk_.size()) {
    return refuse(lease_,
                  fmt::format("chunk {} of {} does not exist", chunk.chunk, has_chunk_.size()));
  }
  if (has_chunk_[chunk.chunk] != 0) {
    return refuse(lease_, fmt::format("chunk {} came twice", chunk.chunk));
  }
  std::vector<std::uint8_t>& seen = is_base(chunk.chunk) ? has_base_ : has_overlay_;
  const RowsOf source = is_base(chunk.chunk) ? RowsOf::kCheckpoint : RowsOf::kHandOver;
  if (auto checked = check_rows(config_, map_, lease_.shard, chunk.rows, source); !checked) {
    return refuse(lease_, fmt::format("chunk {}: {}", chunk.chunk, checked.error().message));
  }
  for (const std::uint32_t row : chunk.rows.rows) {
    if (seen[row] == 0) continue;
    return refuse(lease_,
                  fmt::format("chunk {}: row {} came in an earlier chunk", chunk.chunk, row));
  }
  has_chunk_[chunk.chunk] = 1;
  for (const std::uint32_t row : chunk.rows.rows) seen[row] = 1;
  return {};
}

Result<void> ChunkLedger::check_complete() const {
  const auto missing = std::find(has_chunk_.begin(), has_chunk_.end(), std::uint8_t{0});
  if (missing == has_chunk_.end()) return {};
  return refuse(lease_, fmt::format("chunk {} has not come yet", missing - has_chunk_.begin()));
}

}  // namespace gleaner
