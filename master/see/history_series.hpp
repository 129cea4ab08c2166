// The run's history for the charts: any range of checkpoints, in at most a given number of pieces.
// A chart draws a week's run as fast as an hour's, and gets finer numbers for a shorter range. One
// thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schema/records.hpp"

namespace gleaner {

// The most pieces of an answer.
inline constexpr std::size_t kHistoryPiecesMax = 4000;

class HistorySeries {
 public:
  // Columns of a record that can be charted, in this order. Unmeasured values are negative.
  static constexpr std::array<std::string_view, 10> kColumns = {
      "loss",   "active", "examples_per_second", "volunteers", "bytes_down", "bytes_up", "p_at_1",
      "p_at_3", "p_at_5", "p_at_1_halfwidth"};

  struct Record {
    RoundIndex checkpoint = 0;
    BatchIndex batches = 0;
    std::uint32_t epoch = 0;
    std::int64_t wall_seconds = 0;
    std::array<double, kColumns.size()> values{};
  };

  // Consecutive records. The last one gives their place in the run.
  struct Piece {
    Record last;
    // Over the measured values; negative if there are none.
    std::array<double, kColumns.size()> low{}, high{};
  };

  // Replaces the series by the store's history, ascending.
  void replace(const std::vector<RoundRecord>& records);
  // Adds the next checkpoint, or the last one again with its evaluation.
  void add(const RoundRecord& record);

  [[nodiscard]] const std::vector<Record>& records() const { return records_; }

  // Increases with every change.
  [[nodiscard]] std::uint64_t version() const { return version_; }

  // The records of checkpoints [from, to] in at most `pieces` (1 to kHistoryPiecesMax) pieces.
  [[nodiscard]] std::vector<Piece> pieces(RoundIndex from, RoundIndex to, std::size_t pieces) const;

  // The whole history: a line of names, then a line per checkpoint.
  [[nodiscard]] std::string csv() const;

 private:
  std::vector<Record> records_;
  std::uint64_t version_ = 0;
};

// The history of one of several runs.
struct RunHistory {
  std::string name;
  std::uint64_t batches_per_epoch = 1;
  HistorySeries series;
};

}  // namespace gleaner
