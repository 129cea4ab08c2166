#include "common/train/input_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/limits.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kRowsPerSweep = 256;

}  // namespace

InputShard::InputShard(const ModelConfig& config, const ShardMap& map, ShardId shard,
                       ThreadPool& pool, std::uint32_t commits_kept)
    : neurons_(map.neurons(shard)),
      width_(map.row_width(shard)),
      weights_(std::size_t{map.row_count(shard)} * width_),
      states_(map.row_count(shard), 0.0F),
      stored_(map.row_count(shard), 0),
      slots_(map.row_count(shard), kUntouched),
      commits_kept_(commits_kept),
      shard_(shard) {
  const std::size_t rows = states_.size();
  pool.parallel_for((rows + kRowsPerSweep - 1) / kRowsPerSweep, [&](std::size_t task, unsigned) {
    const std::size_t end = std::min(rows, (task + 1) * kRowsPerSweep);
    for (std::size_t r = task * kRowsPerSweep; r < end; ++r) {
      const auto index = static_cast<std::uint32_t>(r);
      initial_row(config, map, shard, index, 0, {row(index), width_});
    }
  });
}

void InputShard::touch(std::span<const std::uint32_t> rows) {
  if (open_.rows.empty() && commits_kept_ > 0 && closed_.size() == commits_kept_) {
    // A round begins: the oldest copies are no longer needed, but their memory is.
    open_ = std::move(closed_.front());
    open_.clear();
    closed_.pop_front();
  }
  kept_before_ = open_.rows.size();
  for (const std::uint32_t row : rows) {
    if (slots_[row] != kUntouched) continue;
    slots_[row] = static_cast<std::uint32_t>(open_.rows.size());
    open_.rows.push_back(row);
  }
  // Reserves the most that can be needed: unwritten pages take no memory, and growing would copy.
  if (open_.values.capacity() == 0) open_.values.reserve(weights_.size());
  open_.values.resize(open_.rows.size() * width_);
  open_.states.resize(open_.rows.size());
  open_.stored.resize(open_.rows.size());
}

void InputShard::keep_committed(std::uint32_t index) {
  const std::uint32_t slot = slots_[index];
  if (slot < kept_before_) return;
  std::copy_n(row(index), width_, committed(slot).data());
  open_.states[slot] = states_[index];
  open_.stored[slot] = stored_[index];
}

void InputShard::prefetch(std::uint32_t index) const {
  const float* begin = weights_.data() + std::size_t{index} * width_;
  for (std::size_t j = 0; j < width_; j += kLanes) __builtin_prefetch(begin + j, 1);
  __builtin_prefetch(&states_[index], 1);
}

Result<void> InputShard::check(const ShardRows& rows) const {
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
  return {};
}

Result<void> InputShard::load(const ShardRows& rows) {
  if (auto fits = check(rows); !fits) return fits;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const std::uint32_t index = rows.rows[i];
    const auto values = std::span(rows.values).subspan(i * width_, width_);
    std::copy(values.begin(), values.end(), row(index));
    states_[index] = rows.states[i];
    stored_[index] = 1;
    // Loaded rows are committed rows.
    const std::uint32_t slot = slots_[index];
    if (slot == kUntouched) continue;
    std::copy(values.begin(), values.end(), committed(slot).begin());
    open_.states[slot] = states_[index];
    open_.stored[slot] = 1;
  }
  return {};
}

Result<void> InputShard::load_touched(const ShardRows& rows) {
  if (auto fits = check(rows); !fits) return fits;
  touch(rows.rows);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const std::uint32_t index = rows.rows[i];
    keep_committed(index);
    const auto values = std::span(rows.values).subspan(i * width_, width_);
    std::copy(values.begin(), values.end(), row(index));
    states_[index] = rows.states[i];
  }
  return {};
}

std::vector<ShardRows> InputShard::touched_rows() const {
  std::vector<std::uint32_t> touched = open_.rows;
  std::sort(touched.begin(), touched.end());
  const std::size_t row_bytes = (width_ + 2) * sizeof(float);
  const std::size_t per_part = rows_per_message(row_bytes);
  std::vector<ShardRows> parts(1);
  for (const std::uint32_t index : touched) {
    if (parts.back().rows.size() == per_part) parts.emplace_back();
    ShardRows& part = parts.back();
    const float* values = weights() + index * width_;
    part.rows.push_back(index);
    part.values.insert(part.values.end(), values, values + width_);
    part.states.push_back(states_[index]);
    part.stale_codes.push_back(0);
  }
  return parts;
}

std::vector<SparseUpdate> InputShard::commit(ThreadPool& pool, const Kernels& kernels) {
  std::vector<std::uint32_t> touched = open_.rows;
  std::sort(touched.begin(), touched.end());
  const std::size_t row_bytes = width_ + 3 * sizeof(std::uint32_t);
  const std::size_t per_part = rows_per_message(row_bytes);
  std::vector<SparseUpdate> parts(
      std::max<std::size_t>(1, (touched.size() + per_part - 1) / per_part));
  pool.parallel_for(parts.size(), [&](std::size_t p, unsigned) {
    SparseUpdate& part = parts[p];
    const std::size_t begin = p * per_part;
    const std::size_t end = std::min(touched.size(), begin + per_part);
    part.rows.assign(touched.begin() + static_cast<std::ptrdiff_t>(begin),
                     touched.begin() + static_cast<std::ptrdiff_t>(end));
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
  end_round();
  return parts;
}

void InputShard::end_round() {
  for (const std::uint32_t index : open_.rows) {
    slots_[index] = kUntouched;
    stored_[index] = 1;
  }
  if (commits_kept_ > 0) closed_.push_back(std::exchange(open_, {}));
  // A round without a touched row has not made room for its copies.
  if (closed_.size() > commits_kept_) closed_.pop_front();
  open_.clear();
}

void InputShard::Copies::clear() {
  rows.clear();
  values.clear();
  states.clear();
  stored.clear();
}

void InputShard::put_back(const Copies& copies) {
  for (std::size_t i = 0; i < copies.rows.size(); ++i) {
    const std::uint32_t index = copies.rows[i];
    std::copy_n(copies.values.data() + i * width_, width_, row(index));
    states_[index] = copies.states[i];
    stored_[index] = copies.stored[i];
    slots_[index] = kUntouched;
  }
}

bool InputShard::step_back(std::uint32_t commits) {
  if (commits > closed_.size()) return false;
  put_back(open_);
  open_ = {};
  for (; commits > 0; --commits) {
    put_back(closed_.back());
    closed_.pop_back();
  }
  return true;
}

ShardDigest InputShard::digest(ThreadPool& pool) const {
  GLEANER_CHECK(open_.rows.empty());
  const std::size_t rows = states_.size();
  std::vector<ShardDigest> digests((rows + kRowsPerSweep - 1) / kRowsPerSweep);
  pool.parallel_for(digests.size(), [&](std::size_t task, unsigned) {
    Bytes bytes((width_ + 1) * sizeof(float));
    const std::size_t end = std::min(rows, (task + 1) * kRowsPerSweep);
    for (std::size_t r = task * kRowsPerSweep; r < end; ++r) {
      if (stored_[r] == 0) continue;
      std::memcpy(bytes.data(), weights() + r * width_, width_ * sizeof(float));
      std::memcpy(bytes.data() + width_ * sizeof(float), &states_[r], sizeof(float));
      ++digests[task].rows;
      digests[task].sum += row_digest(shard_, static_cast<std::uint32_t>(r), bytes);
    }
  });
  ShardDigest sum;
  for (const ShardDigest& digest : digests) {
    sum.rows += digest.rows;
    sum.sum += digest.sum;
  }
  return sum;
}

std::uint64_t InputShard::memory_bytes() const {
  const auto bytes_of = [](const Copies& copies) {
    return (copies.values.size() + copies.states.size() + copies.rows.size()) * sizeof(float) +
           copies.stored.size();
  };
  std::uint64_t bytes = (weights_.capacity() + states_.capacity()) * sizeof(float) +
                        slots_.capacity() * sizeof(std::uint32_t) + stored_.capacity() +
                        bytes_of(open_);
  for (const Copies& copies : closed_) bytes += bytes_of(copies);
  return bytes;
}

}  // namespace gleaner
