#include "volunteer/train/output/shard_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/check.hpp"
#include "common/model/initial_weights.hpp"
#include "common/model/row_checks.hpp"

namespace gleaner {
ShardLoader::ShardLoader(const ShardContext& context, const LeaseGrant& grant)
    : context_(context),
      grant_(grant),
      width_(context.map.row_width(grant.lease.shard)),
      tables_(context.map.codes_per_row(grant.lease.shard)),
      ledger_(grant, context.config, context.map),
      shard_(std::make_unique<OutputShard>(context, grant.lease.shard)) {}

Result<void> ShardLoader::add(const ShardChunk& chunk) {
  if (auto accepted = ledger_.accept(chunk); !accepted) return accepted;
  const ShardRows& rows = chunk.rows;
  if (!ledger_.is_base(chunk.chunk)) {
    overlays_.push_back(rows);
    return {};
  }
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    shard_->load(rows.rows[i], std::span(rows.values).subspan(i * width_, width_), rows.states[i],
                 std::span(rows.codes).subspan(i * tables_, tables_));
  }
  return {};
}

Result<std::unique_ptr<OutputShard>> ShardLoader::finish(ThreadPool& pool,
                                                         std::span<ShardScratch> scratch) {
  if (auto complete = ledger_.check_complete(); !complete) return complete.error();
  fill_initial_rows(pool);
  for (const ShardRows& rows : overlays_) overlay(rows);
  shard_->finish_loading({pool, scratch});
  return std::move(shard_);
}

void ShardLoader::fill_initial_rows(ThreadPool& pool) {
  constexpr std::size_t kBlock = 256;
  const std::size_t rows = shard_->rows().rows();
  const std::size_t blocks = (rows + kBlock - 1) / kBlock;
  pool.parallel_for(blocks, [this, rows](std::size_t block, unsigned /*worker*/) {
    std::vector<float> values(width_);
    const std::size_t end = std::min(rows, (block + 1) * kBlock);
    for (std::size_t row = block * kBlock; row < end; ++row) {
      if (ledger_.has_base(row)) continue;
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
  std::uint64_t bytes = shard_->memory_bytes() + ledger_.memory_bytes();
  for (const ShardRows& rows : overlays_) {
    bytes += (rows.values.size() + rows.codes.size()) * sizeof(float);
  }
  return bytes;
}

}  // namespace gleaner
