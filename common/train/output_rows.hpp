// The rows of an output shard: weights, bias and optimizer state, and, for each row touched since
// the last commit, a copy of what was committed, so that the commit can send differences. The
// copies outlive the commit: they are the way back to the checkpoint before it.
//
// How far back: to the last commit and the one before while a round is open, to two commits before
// until the first row of the round after is touched. A master has two rounds open at most, so that
// is as far as its checkpoint can lie behind.
//
// Different rows may be trained by different threads only after touch(); touch() itself, commit and
// the rest are for one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/limits.hpp"
#include "common/model/shard_rows.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/kernels.hpp"

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

  // Rounds a touched row to its committed values plus what `update` can express, and appends it
  // there, except for its codes. A row in which nothing changed (all differences round to zero and
  // the state is the committed one) is left out.
  void commit_row(std::uint32_t row, SparseUpdate& update, const Kernels& kernels);

  // The touched rows as they stand, in parts, at least one. `append_codes(row, part)` appends a
  // row's `codes` codes and whether they are stale.
  template <typename AppendCodes>
  [[nodiscard]] std::vector<ShardRows> touched_parts(std::size_t codes,
                                                     const AppendCodes& append_codes) const {
    const std::size_t width = std::size_t{hidden_} + 1;
    const std::size_t part_rows =
        rows_per_message((width + 2) * sizeof(float) + codes * sizeof(std::uint32_t) + 1);
    std::vector<ShardRows> parts(1);
    for (const std::uint32_t row : touched()) {
      if (parts.back().rows.size() == part_rows) parts.emplace_back();
      ShardRows& part = parts.back();
      part.rows.push_back(row);
      part.values.resize(part.rows.size() * width);
      read(row, std::span(part.values).last(width));
      part.states.push_back(state(row));
      append_codes(row, part);
    }
    return parts;
  }

  // Ends a round: the rows as they stand are the committed ones.
  void end_commit();

  // Puts every row back to what it was before the last `commits` commits, and 0 undoes only what
  // was touched since. Returns the rows put back, in no order; nullopt, and nothing is changed,
  // when the way back is not known.
  std::optional<std::vector<std::uint32_t>> step_back(std::uint32_t commits);

  // Whether a store that folded the shard's commits has the row: a commit changed it.
  [[nodiscard]] bool is_stored(std::uint32_t row) const { return stored_[row] != 0; }

  void mark_stored(std::uint32_t row) { stored_[row] = 1; }

  // The digest of the shard at its last commit, as a store has it. Requires that nothing is touched
  // since.
  [[nodiscard]] ShardDigest digest(ShardId shard) const;

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kUntouched = ~0u;

  // Rows as a commit left them, in the order in which they were first touched afterwards.
  struct Copies {
    std::vector<std::uint32_t> rows;
    AlignedVector<float> weights;
    std::vector<float> biases;
    std::vector<float> states;
    std::vector<std::uint8_t> stored;

    void reserve(std::size_t count, std::size_t hidden);
    void clear();
    [[nodiscard]] std::uint64_t memory_bytes() const;
  };

  void put_back(const Copies& copies, std::vector<std::uint32_t>& rows);

  std::uint32_t hidden_;
  AlignedVector<float> weights_;  // rows x hidden
  std::vector<float> biases_;
  std::vector<float> states_;
  std::vector<std::uint8_t> stored_;
  std::vector<std::uint32_t> slots_;  // row -> its place in open_, or kUntouched
  Copies open_;                       // as of the last commit
  std::vector<Copies> closed_;        // as of the commits before, oldest first; two at most
};

}  // namespace gleaner
