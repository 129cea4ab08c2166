#include "volunteer/train/chunk_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "volunteer/train/bounds.hpp"

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
  const std::uint32_t labels = map.is_output(lease.shard) ? rows : 0;
  if (grant.label_counts.size() != labels) {
    return refuse(lease, fmt::format("the grant has {} label counts for {} neurons",
                                     grant.label_counts.size(), labels));
  }
  for (const std::uint32_t count : grant.label_counts) {
    if (count > config.points) {
      return refuse(lease, fmt::format("a label count of {} exceeds the {} training points", count,
                                       config.points));
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
    : lease_(grant.lease),
      base_chunks_(grant.base_chunks),
      hash_bits_(config.hash_bits),
      width_(map.row_width(grant.lease.shard)),
      tables_(map.codes_per_row(grant.lease.shard)),
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
  if (auto checked = check_rows(chunk.rows, chunk.chunk, seen); !checked) return checked;
  has_chunk_[chunk.chunk] = 1;
  for (const std::uint32_t row : chunk.rows.rows) seen[row] = 1;
  return {};
}

Result<void> ChunkLedger::check_complete() const {
  const auto missing = std::find(has_chunk_.begin(), has_chunk_.end(), std::uint8_t{0});
  if (missing == has_chunk_.end()) return {};
  return refuse(lease_, fmt::format("chunk {} has not come yet", missing - has_chunk_.begin()));
}

Result<void> ChunkLedger::check_rows(const ShardRows& rows, std::uint32_t chunk,
                                     const std::vector<std::uint8_t>& seen) const {
  const auto refuse_chunk = [&](const std::string& what) {
    return refuse(lease_, fmt::format("chunk {}: {}", chunk, what));
  };
  const std::size_t count = rows.rows.size();
  if (rows.values.size() != count * width_ || rows.states.size() != count ||
      rows.codes.size() != count * tables_ ||
      rows.stale_codes.size() != (is_base(chunk) ? 0 : count)) {
    return refuse_chunk(fmt::format("its lists do not fit {} rows of {} values and {} codes", count,
                                    width_, tables_));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (rows.rows[i] >= seen.size() || (i > 0 && rows.rows[i] <= rows.rows[i - 1])) {
      return refuse_chunk(fmt::format("row {} is out of range or out of order", rows.rows[i]));
    }
    if (seen[rows.rows[i]] != 0) {
      return refuse_chunk(fmt::format("row {} came in an earlier chunk", rows.rows[i]));
    }
    // Written so that a NaN fails.
    if (!(rows.states[i] >= 0.0F && rows.states[i] <= kStateMax)) {
      return refuse_chunk(
          fmt::format("row {} has an optimizer state of {}", rows.rows[i], rows.states[i]));
    }
  }
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    if (!(std::abs(rows.values[i]) <= kWeightMagnitudeMax)) {
      return refuse_chunk(
          fmt::format("row {} has a weight of {}", rows.rows[i / width_], rows.values[i]));
    }
  }
  for (std::size_t i = 0; i < rows.codes.size(); ++i) {
    if ((rows.codes[i] >> hash_bits_) != 0) {
      return refuse_chunk(fmt::format("row {} has a code of {}, beyond {} bits",
                                      rows.rows[i / tables_], rows.codes[i], hash_bits_));
    }
  }
  for (const std::uint8_t flag : rows.stale_codes) {
    if (flag > 1) return refuse_chunk(fmt::format("{} is not a flag", flag));
  }
  return {};
}

}  // namespace gleaner
