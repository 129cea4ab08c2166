// The rows of an output shard: weights, bias and optimizer state, and, for each row touched since
// the last commit, a copy of what was committed, so that the commit can send differences.
//
// Different rows may be trained by different threads only after touch(); touch() itself, commit and
// the rest are for one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/kernels/aligned_vector.hpp"
#include "common/kernels/kernels.hpp"

namespace gleaner {

class OutputRows {
 public:
  OutputRows(std::uint32_t rows, std::uint32_t hidden);

  [[nodiscard]] std::uint32_t rows() const { return static_cast<std::uint32_t>(biases_.size()); }

  [[nodiscard]] std::uint32_t hidden() const { return hidden_; }

  [[nodiscard]] float* weights(std::uint32_t row) {
    return weights_.data() + std::size_t{row} * hidden_;
  }

  [[nodiscard]] const float* weights(std::uint32_t row) const {
    return weights_.data() + std::size_t{row} * hidden_;
  }

  [[nodiscard]] float* biases() { return biases_.data(); }

  [[nodiscard]] const float* biases() const { return biases_.data(); }

  [[nodiscard]] float* states() { return states_.data(); }

  [[nodiscard]] float state(std::uint32_t row) const { return states_[row]; }

  // `values` is a row as stored: weights, then the bias.
  void read(std::uint32_t row, std::span<float> values) const;
  void write(std::uint32_t row, std::span<const float> values, float state);

  // Keeps the row's committed values if it is touched for the first time since the last commit.
  // Must precede any change of the row.
  void touch(std::uint32_t row);

  // Rows touched since the last commit, ascending.
  [[nodiscard]] std::vector<std::uint32_t> touched() const;

  // Rounds a touched row to its committed values plus half-precision differences, which go to
  // `halves` (weights, then the bias). Returns false if nothing changed: all differences round to
  // zero and the state is the committed one, so that the commit can leave the row out.
  bool commit_row(std::uint32_t row, std::span<std::uint16_t> halves, const Kernels& kernels);

  // Forgets the committed copies: the rows as they stand are the committed ones.
  void end_commit();

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kUntouched = ~0u;

  std::uint32_t hidden_;
  AlignedVector<float> weights_;  // rows x hidden
  std::vector<float> biases_;
  std::vector<float> states_;
  std::vector<std::uint32_t> slots_;  // row -> its place in the copies, or kUntouched
  AlignedVector<float> committed_weights_;
  std::vector<float> committed_biases_;
  std::vector<float> committed_states_;
};

}  // namespace gleaner
