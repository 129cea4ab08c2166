#include "common/train/output_rows.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/portable_math.hpp"
#include "common/result.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kClosedRoundsKept = 2;

}  // namespace

OutputRows::OutputRows(std::uint32_t rows, std::uint32_t hidden)
    : hidden_(hidden),
      weights_(std::size_t{rows} * hidden),
      biases_(rows),
      states_(rows),
      stored_(rows),
      slots_(rows, kUntouched) {}

void OutputRows::read(std::uint32_t row, std::span<float> values) const {
  GLEANER_CHECK(values.size() == hidden_ + std::size_t{1});
  std::copy_n(weights(row), hidden_, values.begin());
  values[hidden_] = biases_[row];
}

void OutputRows::write(std::uint32_t row, std::span<const float> values, float state) {
  GLEANER_CHECK(row < rows() && values.size() == hidden_ + std::size_t{1});
  std::copy_n(values.begin(), hidden_, weights(row));
  biases_[row] = values[hidden_];
  states_[row] = state;
}

void OutputRows::touch(std::uint32_t row) {
  if (slots_[row] != kUntouched) return;
  if (closed_.size() == kClosedRoundsKept) {
    // A round begins: the oldest copies are no longer needed, but their memory is.
    open_ = std::move(closed_.front());
    open_.clear();
    closed_.erase(closed_.begin());
  }
  // Reserves the most that can be needed: unwritten pages take no memory, and growing would copy.
  if (open_.weights.capacity() == 0) open_.reserve(rows(), hidden_);
  slots_[row] = static_cast<std::uint32_t>(open_.rows.size());
  const float* values = weights(row);
  open_.rows.push_back(row);
  open_.weights.insert(open_.weights.end(), values, values + hidden_);
  open_.biases.push_back(biases_[row]);
  open_.states.push_back(states_[row]);
  open_.stored.push_back(stored_[row]);
}

std::vector<std::uint32_t> OutputRows::touched() const {
  std::vector<std::uint32_t> result;
  result.reserve(open_.rows.size());
  for (std::uint32_t row = 0; row < rows(); ++row) {
    if (slots_[row] != kUntouched) result.push_back(row);
  }
  return result;
}

void OutputRows::commit_row(std::uint32_t row, SparseUpdate& update, const Kernels& kernels) {
  GLEANER_CHECK(slots_[row] != kUntouched);
  const std::size_t slot = slots_[row];
  const std::size_t before = update.levels.size();
  update.levels.resize(before + hidden_);
  const float scale = kernels.round_delta(open_.weights.data() + slot * hidden_, weights(row),
                                          update.levels.data() + before, hidden_);
  const std::uint16_t bias_half = to_half(biases_[row] - open_.biases[slot]);
  biases_[row] = open_.biases[slot] + from_half(bias_half);
  bool is_changed = scale != 0.0F || (bias_half & 0x7fffu) != 0;
  is_changed |= std::bit_cast<std::uint32_t>(states_[row]) !=
                std::bit_cast<std::uint32_t>(open_.states[slot]);
  if (is_changed) {
    stored_[row] = 1;
    update.rows.push_back(row);
    update.scales.push_back(scale);
    update.biases.push_back(bias_half);
    update.states.push_back(states_[row]);
  } else {
    update.levels.resize(before);
    // Adding a zero would turn a weight of -0 into +0, and the store would not see that change.
    std::copy_n(open_.weights.data() + slot * hidden_, hidden_, weights(row));
    biases_[row] = open_.biases[slot];
  }
}

void OutputRows::end_commit() {
  std::fill(slots_.begin(), slots_.end(), kUntouched);
  closed_.push_back(std::exchange(open_, {}));
  // A round without a touched row has not made room for its copies.
  if (closed_.size() > kClosedRoundsKept) closed_.erase(closed_.begin());
}

std::optional<std::vector<std::uint32_t>> OutputRows::step_back(std::uint32_t commits) {
  if (commits > closed_.size()) return std::nullopt;
  std::vector<std::uint32_t> rows;
  put_back(open_, rows);
  open_.clear();
  std::fill(slots_.begin(), slots_.end(), kUntouched);
  for (; commits > 0; --commits) {
    put_back(closed_.back(), rows);
    closed_.pop_back();
  }
  return rows;
}

ShardDigest OutputRows::digest(ShardId shard) const {
  ShardDigest digest;
  std::vector<float> row(hidden_ + std::size_t{2});
  for (std::uint32_t r = 0; r < rows(); ++r) {
    if (!is_stored(r)) continue;
    read(r, std::span(row).first(row.size() - 1));
    row.back() = states_[r];
    ++digest.rows;
    digest.sum += row_digest(
        shard, r, {reinterpret_cast<const std::uint8_t*>(row.data()), row.size() * sizeof(float)});
  }
  return digest;
}

void OutputRows::put_back(const Copies& copies, std::vector<std::uint32_t>& rows) {
  for (std::size_t i = 0; i < copies.rows.size(); ++i) {
    const std::uint32_t row = copies.rows[i];
    std::copy_n(copies.weights.data() + i * hidden_, hidden_, weights(row));
    biases_[row] = copies.biases[i];
    states_[row] = copies.states[i];
    stored_[row] = copies.stored[i];
  }
  rows.insert(rows.end(), copies.rows.begin(), copies.rows.end());
}

void OutputRows::Copies::reserve(std::size_t count, std::size_t hidden) {
  rows.reserve(count);
  weights.reserve(count * hidden);
  biases.reserve(count);
  states.reserve(count);
  stored.reserve(count);
}

void OutputRows::Copies::clear() {
  rows.clear();
  weights.clear();
  biases.clear();
  states.clear();
  stored.clear();
}

std::uint64_t OutputRows::Copies::memory_bytes() const {
  return (rows.size() + weights.size() + biases.size() + states.size()) * sizeof(float) +
         stored.size();
}

std::uint64_t OutputRows::memory_bytes() const {
  std::uint64_t bytes =
      (weights_.capacity() + biases_.capacity() + states_.capacity() + slots_.capacity()) *
          sizeof(float) +
      stored_.capacity() + open_.memory_bytes();
  for (const Copies& copies : closed_) bytes += copies.memory_bytes();
  return bytes;
}

}  // namespace gleaner
