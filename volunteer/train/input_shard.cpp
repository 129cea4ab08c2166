#include "volunteer/train/input_shard.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/check.hpp"
#include "common/initial_weights.hpp"
#include "common/limits.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kRowsPerTask = 256;

}  // namespace

InputShard::InputShard(const ModelConfig& config, const ShardMap& map, ShardId shard,
                       ThreadPool& pool)
    : neurons_(map.neurons(shard)),
      width_(map.row_width(shard)),
      weights_(std::size_t{map.row_count(shard)} * width_),
      states_(map.row_count(shard), 0.0F),
      slots_(map.row_count(shard), kUntouched) {
  const std::size_t rows = states_.size();
  pool.parallel_for((rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task, unsigned) {
    const std::size_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (std::size_t r = task * kRowsPerTask; r < end; ++r) {
      const auto index = static_cast<std::uint32_t>(r);
      initial_row(config, map, shard, index, 0, {row(index), width_});
    }
  });
}

void InputShard::touch(std::span<const std::uint32_t> rows) {
  kept_before_ = touched_.size();
  for (const std::uint32_t row : rows) {
    if (slots_[row] != kUntouched) continue;
    slots_[row] = static_cast<std::uint32_t>(touched_.size());
    touched_.push_back(row);
  }
  committed_.resize(touched_.size() * width_);
}

void InputShard::keep_committed(std::uint32_t index) {
  const std::uint32_t slot = slots_[index];
  if (slot < kept_before_) return;
  std::copy_n(row(index), width_, committed(slot).data());
}

void InputShard::prefetch(std::uint32_t index) const {
  const float* begin = weights_.data() + std::size_t{index} * width_;
  for (std::size_t j = 0; j < width_; j += kLanes) __builtin_prefetch(begin + j, 1);
  __builtin_prefetch(&states_[index], 1);
}

Result<void> InputShard::load(const ShardRows& rows) {
  const std::size_t count = rows.rows.size();
  if (rows.values.size() != count * width_ || rows.states.size() != count || !rows.codes.empty()) {
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("input rows: {} rows of width {} come with {} values, {} states and "
                    "{} codes",
                    count, width_, rows.values.size(), rows.states.size(), rows.codes.size())};
  }
  for (const std::uint32_t index : rows.rows) {
    if (index < states_.size()) continue;
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("input row {} does not exist: the shard has {} rows", index, states_.size())};
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t index = rows.rows[i];
    const auto values = std::span(rows.values).subspan(i * width_, width_);
    std::copy(values.begin(), values.end(), row(index));
    states_[index] = rows.states[i];
    // What is loaded is committed.
    const std::uint32_t slot = slots_[index];
    if (slot != kUntouched) std::copy(values.begin(), values.end(), committed(slot).begin());
  }
  return {};
}

std::vector<SparseUpdate> InputShard::commit(ThreadPool& pool, const Kernels& kernels) {
  std::sort(touched_.begin(), touched_.end());
  const std::size_t row_bytes = width_ + 3 * sizeof(std::uint32_t);
  const std::size_t per_part = std::max<std::size_t>(1, kRowsPerChunkBytes / row_bytes);
  std::vector<SparseUpdate> parts(
      std::max<std::size_t>(1, (touched_.size() + per_part - 1) / per_part));
  pool.parallel_for(parts.size(), [&](std::size_t p, unsigned) {
    SparseUpdate& part = parts[p];
    const std::size_t begin = p * per_part;
    const std::size_t end = std::min(touched_.size(), begin + per_part);
    part.rows.assign(touched_.begin() + static_cast<std::ptrdiff_t>(begin),
                     touched_.begin() + static_cast<std::ptrdiff_t>(end));
    part.levels.resize(part.rows.size() * width_);
    part.scales.reserve(part.rows.size());
    part.states.reserve(part.rows.size());
    std::int8_t* levels = part.levels.data();
    for (const std::uint32_t index : part.rows) {
      part.scales.push_back(
          kernels.round_delta(committed(slots_[index]).data(), row(index), levels, width_));
      levels += width_;
      part.states.push_back(states_[index]);
    }
  });
  for (const std::uint32_t index : touched_) slots_[index] = kUntouched;
  touched_.clear();
  committed_.clear();
  return parts;
}

std::uint64_t InputShard::memory_bytes() const {
  return (weights_.capacity() + committed_.capacity() + states_.capacity()) * sizeof(float) +
         (slots_.capacity() + touched_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace gleaner
