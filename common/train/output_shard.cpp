#include "common/train/output_shard.hpp"

#include <algorithm>
#include <array>

#include "common/limits.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"

namespace gleaner {
namespace {

RmsRule rule_of(const ModelConfig& config, float rate) {
  return {rate, config.second_moment_decay, 1.0F - config.second_moment_decay, kFirstFraction,
          config.epsilon};
}

// Rows trained together: few enough that their weights stay in the first cache level until they go
// backward, and enough that their pairs fill vectors.
constexpr std::size_t kBlockRows = 32;
constexpr std::size_t kBlockPairs = 1024;

}  // namespace

static_assert(kGradientBits + kGradientGuardBits == 32, "sums of units hold sums of gradients");

void ShardScratch::clear_gradient(std::size_t index, std::uint32_t examples, std::uint32_t hidden) {
  batches[index].sums.assign(std::size_t{examples} * hidden, 0);
  batches[index].checks.assign(examples * kCheckWords, 0);
}

void ShardScratch::add_gradient_to(std::size_t index, std::size_t begin,
                                   std::span<std::int32_t> sum) const {
  const std::uint32_t* const own = batches[index].sums.data() + begin;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const std::uint32_t units = (static_cast<std::uint32_t>(sum[i]) << kGradientGuardBits) + own[i];
    sum[i] = static_cast<std::int32_t>(units) >> kGradientGuardBits;
  }
}

std::uint64_t ShardScratch::memory_bytes() const {
  std::uint64_t bytes = chooser.memory_bytes();
  for (const BatchScratch& batch : batches) {
    bytes += (batch.sums.capacity() + batch.checks.capacity() + batch.shard_checks.capacity()) *
             sizeof(std::uint32_t);
  }
  return bytes;
}

OutputShard::OutputShard(const ShardContext& context, ShardId shard)
    : context_(context),
      shard_(shard),
      neurons_(context.map.neurons(shard)),
      rows_(neurons_.size(), context.config.hidden),
      codes_(context.map.codes_per_row(shard), context.config.hash_bits, neurons_.size()),
      stale_(neurons_.size(), 1) {
  GLEANER_CHECK((context.sim_hash != nullptr) == (codes_.tables() > 0));
}

void OutputShard::load_initial(std::uint32_t row, std::span<const float> values) {
  rows_.write(row, values, 0.0F);
  stale_[row] = 1;
}

void OutputShard::load(std::uint32_t row, std::span<const float> values, float state,
                       std::span<const std::uint32_t> codes) {
  rows_.write(row, values, state);
  rows_.mark_stored(row);
  stale_[row] = codes.empty() ? 1 : 0;
  if (!codes.empty()) codes_.write({&row, 1}, codes);
}

void OutputShard::load_touched(std::uint32_t row, std::span<const float> values, float state,
                               std::span<const std::uint32_t> codes, bool codes_are_stale) {
  rows_.touch(row);
  rows_.write(row, values, state);
  stale_[row] = codes_are_stale ? 1 : 0;
  if (!codes.empty()) codes_.write({&row, 1}, codes);
}

void OutputShard::finish_loading(Team team) {
  std::vector<std::uint32_t> missing;
  const std::vector<std::uint32_t> touched = rows_.touched();
  auto next_touched = touched.begin();
  for (std::uint32_t row = 0; row < rows_.rows(); ++row) {
    if (next_touched != touched.end() && *next_touched == row) {
      ++next_touched;
    } else if (stale_[row] != 0) {
      missing.push_back(row);
    }
  }
  hash_rows(missing, team);
}

// Walks through a part's rows of one batch in blocks. Each block is trained before the next one.
class OutputShard::BlockWalk {
 public:
  BlockWalk(const RowsTraining& work, const RmsRule& rule, const LossKernels& loss,
            const PairLists& lists, std::size_t part, std::vector<std::size_t>& block_ends)
      : work_(work),
        rule_(rule),
        loss_kernels_(loss),
        rows_(lists.rows(part)),
        pair_ends_(lists.pair_ends(part)),
        pairs_(lists.pairs(part)),
        block_ends_(&block_ends) {
    measure();
  }

  [[nodiscard]] bool is_done() const { return rows_done_ == rows_.size(); }

  // The first row of the next block. Requires that a block is left.
  [[nodiscard]] std::uint32_t first_row() const { return rows_[rows_done_]; }

  [[nodiscard]] std::uint32_t last_row() const {
    return rows_[rows_done_ + block_ends_->size() - 1];
  }

  [[nodiscard]] std::int64_t loss() const { return loss_; }

  void train_next(OutputShard& shard, ShardScratch& scratch) {
    const std::size_t count = block_ends_->size();
    shard.take_rows(work_, rows_.subspan(rows_done_, count), *block_ends_, pairs_ + pairs_done_,
                    scratch);
    work_.rows_after = rows_.size() - rows_done_ - count;
    loss_ += loss_kernels_.train_rows(work_, rule_);
    rows_done_ += count;
    pairs_done_ += block_ends_->back();
    measure();
  }

 private:
  // Measures the next block: where the pairs of each of its rows end.
  void measure() {
    const std::span<const std::uint32_t> ends = pair_ends_.subspan(rows_done_);
    block_ends_->clear();
    while (block_ends_->size() < std::min(ends.size(), kBlockRows) &&
           (block_ends_->empty() || block_ends_->back() < kBlockPairs)) {
      block_ends_->push_back(ends[block_ends_->size()] - pairs_done_);
    }
  }

  RowsTraining work_;
  RmsRule rule_;
  const LossKernels& loss_kernels_;
  std::span<const std::uint32_t> rows_;
  std::span<const std::uint32_t> pair_ends_;
  const ActivePair* pairs_;
  std::vector<std::size_t>* block_ends_;
  std::size_t rows_done_ = 0;
  std::size_t pairs_done_ = 0;
  std::int64_t loss_ = 0;
};

void OutputShard::touch(std::span<const std::uint32_t> rows) {
  for (const std::uint32_t row : rows) rows_.touch(row);
}

void OutputShard::train_part(std::span<const ShardBatch> batches, std::span<const PairLists> lists,
                             std::size_t part, std::span<ShardOutcome> outcomes,
                             ShardScratch& scratch) {
  GLEANER_CHECK(batches.size() <= kFusedBatches && outcomes.size() == batches.size());
  const ModelConfig& config = context_.config;
  scratch.row_gradients.resize(kRowsPerStep * config.hidden);
  std::array<std::optional<BlockWalk>, kFusedBatches> walks;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const QuantizedActivations& codes = batches[i].queries->codes();
    BatchScratch& own = scratch.batches[i];
    GLEANER_CHECK(own.sums.size() == codes.codes.size());
    const RowsTraining work{.width = config.hidden,
                            .weights = rows_.weights(0),
                            .biases = rows_.biases(),
                            .states = rows_.states(),
                            .codes = codes.codes.data(),
                            .scales = codes.scales.data(),
                            .gradient_sums = own.sums.data(),
                            .gradient_magic = gradient_magic(config.gradient_step_log2),
                            .gradients = scratch.row_gradients.data()};
    walks[i].emplace(work, rule_of(config, batches[i].rate), loss_kernels(context_.kernels, config),
                     lists[i], part, own.block_ends);
  }
  train_blocks(std::span(walks).first(batches.size()), scratch);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    outcomes[i].loss += walks[i]->loss();
    outcomes[i].active += lists[i].active(part);
  }
}

void OutputShard::take_rows(RowsTraining& work, std::span<const std::uint32_t> rows,
                            std::span<const std::size_t> pair_ends, const ActivePair* pairs,
                            ShardScratch& scratch) {
  for (const std::uint32_t row : rows) {
    rows_.touch(row);
    stale_[row] = 1;
  }
  scratch.logits.resize(std::max(scratch.logits.size(), pair_ends.back() + kLanes));
  scratch.deltas.resize(scratch.logits.size());
  work.rows = rows.data();
  work.row_count = rows.size();
  work.pair_ends = pair_ends.data();
  work.pairs = pairs;
  work.logits = scratch.logits.data();
  work.deltas = scratch.deltas.data();
}

void OutputShard::train_blocks(std::span<std::optional<BlockWalk>> walks, ShardScratch& scratch) {
  while (true) {
    // Choose the latest batch whose next rows every earlier batch has finished: the weights of
    // these rows have just been used.
    std::optional<BlockWalk>* next = nullptr;
    std::uint32_t ready_before = UINT32_MAX;
    for (std::optional<BlockWalk>& walk : walks) {
      if (walk->is_done()) continue;
      if (walk->last_row() < ready_before) next = &walk;
      ready_before = std::min(ready_before, walk->first_row());
    }
    if (next == nullptr) return;
    (*next)->train_next(*this, scratch);
  }
}

void OutputShard::compute_codes(std::span<const std::uint32_t> rows, ShardScratch& scratch) const {
  scratch.hash_rows.clear();
  for (const std::uint32_t row : rows) scratch.hash_rows.push_back(rows_.weights(row));
  scratch.hash_codes.resize(rows.size() * codes_.tables());
  context_.sim_hash->hash_rows(scratch.hash_rows, scratch.hash_codes, scratch.hash);
}

void OutputShard::hash_rows(std::span<const std::uint32_t> rows, Team team) {
  for (const std::uint32_t row : rows) stale_[row] = 0;
  if (codes_.tables() == 0) return;
  const std::size_t blocks = (rows.size() + kHashRowsMax - 1) / kHashRowsMax;
  team.for_each(blocks, [&](std::size_t block, unsigned worker) {
    const auto from_block = rows.subspan(block * kHashRowsMax);
    const auto mine = from_block.first(std::min(from_block.size(), kHashRowsMax));
    compute_codes(mine, team.scratch()[worker]);
    codes_.write(mine, team.scratch()[worker].hash_codes);
  });
}

void OutputShard::rehash(Team team) {
  std::vector<std::uint32_t>& stale = team.scratch()[0].stale_rows;
  stale.clear();
  for (std::uint32_t row = 0; row < rows_.rows(); ++row) {
    if (stale_[row] != 0) stale.push_back(row);
  }
  hash_rows(stale, team);
}

std::vector<SparseUpdate> OutputShard::commit(Team team) {
  const std::vector<std::uint32_t> touched = rows_.touched();
  const std::size_t part_rows =
      rows_per_message(3 * sizeof(std::uint32_t) + sizeof(std::uint16_t) + context_.config.hidden);
  std::vector<SparseUpdate> parts((touched.size() + part_rows - 1) / part_rows);
  team.for_each(parts.size(), [&](std::size_t part, unsigned /*worker*/) {
    const auto from_part = std::span(touched).subspan(part * part_rows);
    for (const std::uint32_t row : from_part.first(std::min(from_part.size(), part_rows))) {
      // Rounding changes the row even if the commit leaves it out.
      stale_[row] = 1;
      rows_.commit_row(row, parts[part], context_.kernels);
    }
  });
  std::erase_if(parts, [](const SparseUpdate& part) { return part.rows.empty(); });
  if (parts.empty()) parts.emplace_back();
  rows_.end_commit();
  rehash(team);
  return parts;
}

bool OutputShard::step_back(std::uint32_t commits) {
  const auto rows = rows_.step_back(commits);
  if (!rows) return false;
  // Hash codes of a committed row follow from its weights, so they need no copies.
  for (const std::uint32_t row : *rows) stale_[row] = 1;
  return true;
}

std::vector<ShardRows> OutputShard::touched_rows() const {
  const std::size_t tables = codes_.tables();
  return rows_.touched_parts(tables, [&](std::uint32_t row, ShardRows& part) {
    part.codes.resize(part.rows.size() * tables);
    codes_.read(row, std::span(part.codes).last(tables));
    part.stale_codes.push_back(stale_[row]);
  });
}

std::uint64_t OutputShard::memory_bytes() const {
  return rows_.memory_bytes() + codes_.memory_bytes() + stale_.capacity();
}

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
