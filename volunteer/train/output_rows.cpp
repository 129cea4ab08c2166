#include "volunteer/train/output_rows.hpp"

#include <algorithm>
#include <bit>

#include "common/check.hpp"
#include "common/half.hpp"

namespace gleaner {

OutputRows::OutputRows(std::uint32_t rows, std::uint32_t hidden)
    : hidden_(hidden),
      weights_(std::size_t{rows} * hidden),
      biases_(rows),
      states_(rows),
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
  slots_[row] = static_cast<std::uint32_t>(committed_biases_.size());
  const float* values = weights(row);
  committed_weights_.insert(committed_weights_.end(), values, values + hidden_);
  committed_biases_.push_back(biases_[row]);
  committed_states_.push_back(states_[row]);
}

std::vector<std::uint32_t> OutputRows::touched() const {
  std::vector<std::uint32_t> result;
  result.reserve(committed_biases_.size());
  for (std::uint32_t row = 0; row < rows(); ++row) {
    if (slots_[row] != kUntouched) result.push_back(row);
  }
  return result;
}

bool OutputRows::commit_row(std::uint32_t row, std::span<std::uint16_t> halves,
                            const Kernels& kernels) {
  GLEANER_CHECK(slots_[row] != kUntouched && halves.size() == hidden_ + std::size_t{1});
  const std::size_t slot = slots_[row];
  bool is_changed = kernels.round_delta(committed_weights_.data() + slot * hidden_, weights(row),
                                        halves.data(), hidden_);
  const std::uint16_t bias_half = to_half(biases_[row] - committed_biases_[slot]);
  halves[hidden_] = bias_half;
  biases_[row] = committed_biases_[slot] + from_half(bias_half);
  is_changed |= (bias_half & 0x7fffu) != 0;
  is_changed |= std::bit_cast<std::uint32_t>(states_[row]) !=
                std::bit_cast<std::uint32_t>(committed_states_[slot]);
  if (!is_changed) {
    // Adding a zero would turn a weight of -0 into +0, which the store will not see.
    std::copy_n(committed_weights_.data() + slot * hidden_, hidden_, weights(row));
    biases_[row] = committed_biases_[slot];
  }
  return is_changed;
}

void OutputRows::end_commit() {
  std::fill(slots_.begin(), slots_.end(), kUntouched);
  committed_weights_.clear();
  committed_biases_.clear();
  committed_states_.clear();
}

std::uint64_t OutputRows::memory_bytes() const {
  return (weights_.capacity() + committed_weights_.capacity() + biases_.capacity() +
          committed_biases_.capacity() + states_.capacity() + committed_states_.capacity() +
          slots_.capacity()) *
         sizeof(float);
}

}  // namespace gleaner
