// The rows of an output shard: weights, bias and optimizer state. For each row touched since the
// last commit there is a copy of its committed values, so that the commit can send differences. The
// copies outlive the commit and allow a step back to the checkpoint before it.
//
// While a round is open, the shard can step back to the last commit and the one before. Until the
// first touch after a commit, it can go two commits back. A master has at most two rounds open, so
// its checkpoint is never farther behind.
//
// Different threads may train different rows after touch(). All member functions, touch() among
// them, are for one thread.
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

  // Copies the row's committed values if this is its first touch since the last commit. Must
  // precede any change of the row.
  void touch(std::uint32_t row);

  // Rows touched since the last commit, ascending.
  [[nodiscard]] std::vector<std::uint32_t> touched() const;

  // Rounds a touched row to its committed values plus a difference that `update` can express, and
  // appends the difference to `update`. Hash codes are not appended. An unchanged row (all
  // differences round to zero and the state is the committed one) is left out.
  void commit_row(std::uint32_t row, SparseUpdate& update, const Kernels& kernels);

  // The touched rows, in at least one part. `append_codes(row, part)` appends a row's `codes` hash
  // codes and whether they are stale.
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

  // Ends a round: the present rows become the committed ones.
  void end_commit();

  // Undoes the changes since the last commit, and the last `commits` commits. Returns the rows that
  // was touched since. Returns the rows put back, in no order; nullopt, and nothing is changed,
  // back so far.
  std::optional<std::vector<std::uint32_t>> step_back(std::uint32_t commits);

  // Whether the store has the row: a commit has changed it.
  [[nodiscard]] bool is_stored(std::uint32_t row) const { return stored_[row] != 0; }

  void mark_stored(std::uint32_t row) { stored_[row] = 1; }

  // The digest of the shard at its last commit, equal to the store's. Requires no touched row.
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
  std::vector<std::uint32_t> slots_;  // index of each row in open_, or kUntouched
  Copies open_;                       // values at the last commit
  std::vector<Copies> closed_;        // values at earlier commits, oldest first; at most two
};

}  // namespace gleaner
