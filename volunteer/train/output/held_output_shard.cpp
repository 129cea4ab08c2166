#include "volunteer/train/output/held_output_shard.hpp"

#include <algorithm>

#include "common/model/initial_weights.hpp"

namespace gleaner {

HeldOutputShard::HeldOutputShard(const ShardContext& context, ThreadPool& pool,
                                 std::span<ShardScratch> scratch, const LeaseGrant& grant)
    : context_(context),
      pool_(pool),
      scratch_(scratch),
      width_(context.map.row_width(grant.lease.shard)),
      tables_(context.map.codes_per_row(grant.lease.shard)),
      label_counts_(grant.label_counts),
      shard_(context, grant.lease.shard) {}

Result<void> HeldOutputShard::load(const ShardRows& rows) {
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    shard_.load(rows.rows[i], std::span(rows.values).subspan(i * width_, width_), rows.states[i],
                std::span(rows.codes).subspan(i * tables_, tables_));
  }
  return {};
}

Result<void> HeldOutputShard::load_touched(const ShardRows& rows) {
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    shard_.load_touched(rows.rows[i], std::span(rows.values).subspan(i * width_, width_),
                        rows.states[i], std::span(rows.codes).subspan(i * tables_, tables_),
                        rows.stale_codes[i] != 0);
  }
  return {};
}

void HeldOutputShard::load_initial(const ChunkLedger& ledger) {
  constexpr std::size_t kBlock = 256;
  const std::size_t rows = shard_.rows().rows();
  const std::size_t blocks = (rows + kBlock - 1) / kBlock;
  pool_.parallel_for(blocks, [&](std::size_t block, unsigned /*worker*/) {
    std::vector<float> values(width_);
    const std::size_t end = std::min(rows, (block + 1) * kBlock);
    for (std::size_t row = block * kBlock; row < end; ++row) {
      if (ledger.has_base(row)) continue;
      initial_row(context_.config, context_.map, shard_.id(), static_cast<std::uint32_t>(row),
                  label_counts_[row], values);
      shard_.load_initial(static_cast<std::uint32_t>(row), values);
    }
  });
  label_counts_ = {};
}

void HeldOutputShard::finish_loading() {
  shard_.finish_loading({pool_, scratch_});
}

}  // namespace gleaner
