#include "volunteer/train/output_shard.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "common/check.hpp"
#include "common/limits.hpp"
#include "volunteer/train/gradient_digest.hpp"

namespace gleaner {
namespace {

RmsRule rule_of(const ModelConfig& config, float rate) {
  return {rate, config.second_moment_decay, 1.0F - config.second_moment_decay, kFirstShare,
          config.epsilon};
}

// Rows that fit a message of about kRowsPerChunkBytes.
std::size_t rows_per_part(std::size_t row_bytes) {
  return std::max<std::size_t>(1, kRowsPerChunkBytes / row_bytes);
}

// Rows trained together: few enough that their weights are still in the first cache level when they
// go backward, enough that their pairs fill vectors.
constexpr std::size_t kBlockRows = 32;
constexpr std::size_t kBlockPairs = 1024;

}  // namespace

std::int32_t gradient_limit(const ModelConfig& config) {
  constexpr std::int32_t kLimit = std::int32_t{1} << 24;
  return std::min(kLimit, INT32_MAX / static_cast<std::int32_t>(config.output_shards));
}

OutputShard::OutputShard(const ShardContext& context, ShardId shard)
    : context_(context),
      shard_(shard),
      neurons_(context.map.neurons(shard)),
      rows_(neurons_.size(), context.config.hidden),
      tables_(context.map.codes_per_row(shard), context.config.hash_bits, neurons_.size()),
      stale_(neurons_.size(), 1) {
  GLEANER_CHECK((context.sim_hash != nullptr) == (tables_.tables() > 0));
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
  if (!codes.empty()) tables_.write_codes({&row, 1}, codes);
}

void OutputShard::load_touched(std::uint32_t row, std::span<const float> values, float state,
                               std::span<const std::uint32_t> codes, bool codes_are_stale) {
  rows_.touch(row);
  rows_.write(row, values, state);
  stale_[row] = codes_are_stale ? 1 : 0;
  if (!codes.empty()) tables_.write_codes({&row, 1}, codes);
}

void OutputShard::finish_loading(ThreadPool& pool, std::span<ShardScratch> scratch) {
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
  if (tables_.tables() > 0) {
    const std::size_t blocks = (missing.size() + kHashRowsMax - 1) / kHashRowsMax;
    pool.parallel_for(blocks, [&](std::size_t block, unsigned worker) {
      const auto rows = std::span<const std::uint32_t>(missing).subspan(block * kHashRowsMax);
      const auto mine = rows.first(std::min(rows.size(), kHashRowsMax));
      compute_codes(mine, scratch[worker]);
      const std::span<const std::uint32_t> codes(scratch[worker].hash_codes);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        tables_.write_codes_unmarked(mine[i],
                                     codes.subspan(i * tables_.tables(), tables_.tables()));
      }
    });
    tables_.mark_all_changed();
    tables_.rebuild();
  }
  for (const std::uint32_t row : missing) stale_[row] = 0;
}

// A batch's rows in blocks, of which each is trained before the next.
class OutputShard::BlockWalk {
 public:
  BlockWalk(const RowsTraining& work, const RmsRule& rule, BatchScratch& own)
      : work_(work), rule_(rule), own_(&own) {
    measure();
  }

  [[nodiscard]] bool is_done() const { return rows_done_ == own_->active.rows().size(); }

  // Of the next block; not when it is done.
  [[nodiscard]] std::uint32_t first_row() const { return own_->active.rows()[rows_done_]; }

  [[nodiscard]] std::uint32_t last_row() const {
    return own_->active.rows()[rows_done_ + own_->block_ends.size() - 1];
  }

  [[nodiscard]] std::int64_t loss() const { return loss_; }

  void train_next(OutputShard& shard, ShardScratch& scratch) {
    const std::span<const std::uint32_t> rows = own_->active.rows();
    const std::size_t count = own_->block_ends.size();
    shard.take_rows(work_, rows.subspan(rows_done_, count), own_->block_ends,
                    own_->active.pairs() + pairs_done_, scratch);
    work_.rows_after = rows.size() - rows_done_ - count;
    loss_ += shard.context_.kernels.train_rows(work_, rule_);
    rows_done_ += count;
    pairs_done_ += own_->block_ends.back();
    measure();
  }

 private:
  // The next block: where the pairs of each of its rows end.
  void measure() {
    const std::span<const std::size_t> ends = own_->active.pair_ends().subspan(rows_done_);
    std::vector<std::size_t>& block = own_->block_ends;
    block.clear();
    while (block.size() < std::min(ends.size(), kBlockRows) &&
           (block.empty() || block.back() < kBlockPairs)) {
      block.push_back(ends[block.size()] - pairs_done_);
    }
  }

  RowsTraining work_;
  RmsRule rule_;
  BatchScratch* own_;
  std::size_t rows_done_ = 0;
  std::size_t pairs_done_ = 0;
  std::int64_t loss_ = 0;
};

ShardOutcome OutputShard::train(const QueryBatch& batch, const Positives& positives, float rate,
                                ShardScratch& scratch) {
  const ShardBatch only{&batch, &positives, rate};
  ShardOutcome outcome;
  train({&only, 1}, {&outcome, 1}, scratch);
  return outcome;
}

void OutputShard::train(std::span<const ShardBatch> batches, std::span<ShardOutcome> outcomes,
                        ShardScratch& scratch) {
  GLEANER_CHECK(batches.size() <= kBatchesTogether && outcomes.size() == batches.size());
  const ModelConfig& config = context_.config;
  scratch.row_gradients.resize(kRowsPerStep * config.hidden);
  std::array<std::optional<BlockWalk>, kBatchesTogether> walks;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    BatchScratch& own = scratch.batches[i];
    const RmsRule rule = rule_of(config, batches[i].rate);
    const RowsTraining work = begin_batch(batches[i], own, scratch);
    outcomes[i] = {.shard = shard_, .active = own.active.active()};
    walks[i].emplace(work, rule, own);
  }
  train_blocks(std::span(walks).first(batches.size()), scratch);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    outcomes[i].loss = walks[i]->loss();
    end_batch(batches[i], scratch.batches[i], outcomes[i]);
  }
}

RowsTraining OutputShard::begin_batch(const ShardBatch& batch, BatchScratch& own,
                                      ShardScratch& scratch) {
  const HiddenCodes& codes = batch.queries->codes();
  own.active.build(*batch.queries, *batch.positives, shard_, neurons_, tables_);
  own.hidden_gradient.assign(codes.codes.size(), 0.0F);
  own.steps.resize(codes.codes.size());
  return {.width = context_.config.hidden,
          .weights = rows_.weights(0),
          .biases = rows_.biases(),
          .states = rows_.states(),
          .codes = codes.codes.data(),
          .scales = codes.scales.data(),
          .hidden_gradient = own.hidden_gradient.data(),
          .gradients = scratch.row_gradients.data()};
}

void OutputShard::end_batch(const ShardBatch& batch, BatchScratch& own,
                            ShardOutcome& outcome) const {
  const ModelConfig& config = context_.config;
  // A power of two, so that scaling by it is exact.
  const float steps_per_unit = std::ldexp(1.0F, -config.gradient_step_log2);
  context_.kernels.quantise_gradient(
      own.hidden_gradient.data(), batch.queries->codes().codes.data(), steps_per_unit,
      static_cast<float>(gradient_limit(config)), own.steps.data(), own.steps.size());
  outcome.gradient_digest = gradient_digest(own.steps);
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
    // The latest batch whose next rows all batches before it have behind them: their weights have
    // just been used.
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
  scratch.hash_codes.resize(rows.size() * tables_.tables());
  context_.sim_hash->hash_rows(scratch.hash_rows, scratch.hash_codes, scratch.hash);
}

void OutputShard::rehash(ShardScratch& scratch) {
  if (tables_.tables() == 0) {
    std::fill(stale_.begin(), stale_.end(), std::uint8_t{0});
    return;
  }
  std::uint32_t block[kHashRowsMax];
  std::size_t count = 0;
  const auto flush = [&] {
    compute_codes({block, count}, scratch);
    tables_.write_codes({block, count}, scratch.hash_codes);
    count = 0;
  };
  for (std::uint32_t row = 0; row < rows_.rows(); ++row) {
    if (stale_[row] == 0) continue;
    stale_[row] = 0;
    block[count++] = row;
    if (count == kHashRowsMax) flush();
  }
  if (count > 0) flush();
  tables_.rebuild();
}

std::vector<SparseUpdate> OutputShard::commit(ShardScratch& scratch) {
  const std::size_t part_rows =
      rows_per_part(3 * sizeof(std::uint32_t) + sizeof(std::uint16_t) + context_.config.hidden);
  std::vector<SparseUpdate> parts(1);
  for (const std::uint32_t row : rows_.touched()) {
    // Rounding changes the row even if the commit leaves it out.
    stale_[row] = 1;
    if (parts.back().rows.size() == part_rows) parts.emplace_back();
    rows_.commit_row(row, parts.back(), context_.kernels);
  }
  if (parts.size() > 1 && parts.back().rows.empty()) parts.pop_back();
  rows_.end_commit();
  rehash(scratch);
  return parts;
}

bool OutputShard::step_back(std::uint32_t commits) {
  const auto rows = rows_.step_back(commits);
  if (!rows) return false;
  // A committed row's codes are a function of its weights, so they need no copies.
  for (const std::uint32_t row : *rows) stale_[row] = 1;
  return true;
}

ShardDigest OutputShard::digest() const {
  ShardDigest digest;
  std::vector<float> row(context_.config.hidden + std::size_t{2});
  for (std::uint32_t r = 0; r < rows_.rows(); ++r) {
    if (!rows_.is_stored(r)) continue;
    rows_.read(r, std::span(row).first(row.size() - 1));
    row.back() = rows_.state(r);
    ++digest.rows;
    digest.sum += row_digest(
        shard_, r, {reinterpret_cast<const std::uint8_t*>(row.data()), row.size() * sizeof(float)});
  }
  return digest;
}

std::vector<ShardRows> OutputShard::touched_rows() const {
  const std::size_t width = context_.config.hidden + std::size_t{1};
  const std::size_t tables = tables_.tables();
  const std::size_t part_rows =
      rows_per_part(sizeof(std::uint32_t) + width * sizeof(float) + sizeof(float) +
                    tables * sizeof(std::uint32_t) + sizeof(std::uint8_t));
  std::vector<ShardRows> parts(1);
  for (const std::uint32_t row : rows_.touched()) {
    if (parts.back().rows.size() == part_rows) parts.emplace_back();
    ShardRows& part = parts.back();
    part.rows.push_back(row);
    part.values.resize(part.rows.size() * width);
    rows_.read(row, std::span(part.values).last(width));
    part.states.push_back(rows_.state(row));
    part.codes.resize(part.rows.size() * tables);
    tables_.read_codes(row, std::span(part.codes).last(tables));
    part.stale_codes.push_back(stale_[row]);
  }
  return parts;
}

std::uint64_t OutputShard::memory_bytes() const {
  return rows_.memory_bytes() + tables_.memory_bytes() + stale_.capacity();
}

}  // namespace gleaner
