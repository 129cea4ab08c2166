#include "volunteer/train/shard_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/check.hpp"
#include "common/initial_weights.hpp"
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

Result<void> check_grant(const LeaseGrant& grant, const ShardContext& context,
                         const RunPlan& plan) {
  const LeaseRef lease = grant.lease;
  if (raw(lease.shard) >= context.map.output_shards()) {
    return refuse(lease,
                  fmt::format("there are only {} output shards", context.map.output_shards()));
  }
  const std::uint32_t rows = context.map.row_count(lease.shard);
  if (grant.label_counts.size() != rows) {
    return refuse(lease, fmt::format("the grant has {} label counts for {} neurons",
                                     grant.label_counts.size(), rows));
  }
  for (const std::uint32_t count : grant.label_counts) {
    if (count > context.config.points) {
      return refuse(lease, fmt::format("a label count of {} exceeds the {} training points", count,
                                       context.config.points));
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

ShardLoader::ShardLoader(const ShardContext& context, const LeaseGrant& grant)
    : context_(context),
      grant_(grant),
      width_(context.map.row_width(grant.lease.shard)),
      tables_(context.map.codes_per_row(grant.lease.shard)),
      shard_(std::make_unique<OutputShard>(context, grant.lease.shard)),
      has_chunk_(grant.chunks, 0),
      has_base_(shard_->rows().rows(), 0),
      has_overlay_(shard_->rows().rows(), 0) {}

Result<void> ShardLoader::add(const ShardChunk& chunk) {
  if (chunk.chunk >= grant_.chunks) {
    return refuse(grant_.lease,
                  fmt::format("chunk {} of {} does not exist", chunk.chunk, grant_.chunks));
  }
  if (has_chunk_[chunk.chunk] != 0) {
    return refuse(grant_.lease, fmt::format("chunk {} came twice", chunk.chunk));
  }
  std::vector<std::uint8_t>& seen = is_base(chunk.chunk) ? has_base_ : has_overlay_;
  if (auto checked = check_rows(chunk.rows, chunk.chunk, seen); !checked) return checked;

  has_chunk_[chunk.chunk] = 1;
  const ShardRows& rows = chunk.rows;
  for (const std::uint32_t row : rows.rows) seen[row] = 1;
  if (!is_base(chunk.chunk)) {
    overlays_.push_back(rows);
    return {};
  }
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    shard_->load(rows.rows[i], std::span(rows.values).subspan(i * width_, width_), rows.states[i],
                 std::span(rows.codes).subspan(i * tables_, tables_));
  }
  return {};
}

Result<void> ShardLoader::check_rows(const ShardRows& rows, std::uint32_t chunk,
                                     const std::vector<std::uint8_t>& seen) const {
  const auto refuse_chunk = [&](const std::string& what) {
    return refuse(grant_.lease, fmt::format("chunk {}: {}", chunk, what));
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
    if ((rows.codes[i] >> context_.config.hash_bits) != 0) {
      return refuse_chunk(fmt::format("row {} has a code of {}, beyond {} bits",
                                      rows.rows[i / tables_], rows.codes[i],
                                      context_.config.hash_bits));
    }
  }
  for (const std::uint8_t flag : rows.stale_codes) {
    if (flag > 1) return refuse_chunk(fmt::format("{} is not a flag", flag));
  }
  return {};
}

Result<std::unique_ptr<OutputShard>> ShardLoader::finish(ThreadPool& pool,
                                                         std::span<ShardScratch> scratch) {
  const auto missing = std::find(has_chunk_.begin(), has_chunk_.end(), std::uint8_t{0});
  if (missing != has_chunk_.end()) {
    return refuse(grant_.lease,
                  fmt::format("chunk {} has not come yet", missing - has_chunk_.begin()));
  }
  fill_initial_rows(pool);
  for (const ShardRows& rows : overlays_) overlay(rows);
  shard_->finish_loading(pool, scratch);
  return std::move(shard_);
}

void ShardLoader::fill_initial_rows(ThreadPool& pool) {
  constexpr std::size_t kBlock = 256;
  const std::size_t blocks = (has_base_.size() + kBlock - 1) / kBlock;
  pool.parallel_for(blocks, [this](std::size_t block, unsigned /*worker*/) {
    std::vector<float> values(width_);
    const std::size_t end = std::min(has_base_.size(), (block + 1) * kBlock);
    for (std::size_t row = block * kBlock; row < end; ++row) {
      if (has_base_[row] != 0) continue;
      initial_row(context_.config, context_.map, grant_.lease.shard,
                  static_cast<std::uint32_t>(row), grant_.label_counts[row], values);
      shard_->load_initial(static_cast<std::uint32_t>(row), values);
    }
  });
}

void ShardLoader::overlay(const ShardRows& rows) {
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    shard_->load_touched(rows.rows[i], std::span(rows.values).subspan(i * width_, width_),
                         rows.states[i], std::span(rows.codes).subspan(i * tables_, tables_),
                         rows.stale_codes[i] != 0);
  }
}

std::uint64_t ShardLoader::memory_bytes() const {
  std::uint64_t bytes = shard_->memory_bytes() + has_base_.size() + has_overlay_.size();
  for (const ShardRows& rows : overlays_) {
    bytes += (rows.values.size() + rows.codes.size()) * sizeof(float);
  }
  return bytes;
}

}  // namespace gleaner
