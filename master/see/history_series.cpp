#include "master/see/history_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "master/see/json_values.hpp"
#include "master/see/view_json.hpp"

namespace gleaner {
namespace {

constexpr auto& kColumns = HistorySeries::kColumns;

// The column of each field in the table of records; fields that are no columns come after the last.
std::vector<std::size_t> columns_of_fields() {
  std::vector<std::size_t> places;
  RoundRecord record;
  visit_fields(record, [&](std::string_view name, const auto&) {
    places.push_back(
        static_cast<std::size_t>(std::ranges::find(kColumns, name) - kColumns.begin()));
  });
  return places;
}

HistorySeries::Record record_of(RoundRecord r) {
  static const std::vector<std::size_t> columns = columns_of_fields();
  HistorySeries::Record record{r.checkpoint, r.batches, r.epoch, r.wall_seconds, {}};
  auto column = columns.begin();
  visit_fields(r, [&](std::string_view, const auto& value) {
    const std::size_t at = *column++;
    if (at < kColumns.size()) record.values[at] = static_cast<double>(value);
  });
  return record;
}

bool is_before(const HistorySeries::Record& record, RoundIndex checkpoint) {
  return record.checkpoint < checkpoint;
}

Json history_of(const HistorySeries& history, RoundIndex from, RoundIndex to, std::size_t pieces) {
  const std::vector<HistorySeries::Piece> all = history.pieces(from, to, pieces);
  const auto& records = history.records();
  Json checkpoints = Json::array(), batches = Json::array(), epochs = Json::array(),
       walls = Json::array();
  for (const HistorySeries::Piece& piece : all) {
    checkpoints.push_back(piece.last.checkpoint);
    batches.push_back(piece.last.batches);
    epochs.push_back(piece.last.epoch);
    walls.push_back(piece.last.wall_seconds);
  }
  Json series = Json::object();
  for (std::size_t c = 0; c < HistorySeries::kColumns.size(); ++c) {
    Json last = Json::array(), low = Json::array(), high = Json::array();
    for (const HistorySeries::Piece& piece : all) {
      last.push_back(known(piece.last.values[c]));
      low.push_back(known(piece.low[c]));
      high.push_back(known(piece.high[c]));
    }
    series[std::string(HistorySeries::kColumns[c])] = {
        {"last", std::move(last)}, {"low", std::move(low)}, {"high", std::move(high)}};
  }
  return {{"version", history.version()},
          {"first", records.empty() ? 0 : records.front().checkpoint},
          {"last", records.empty() ? 0 : records.back().checkpoint},
          {"checkpoint", std::move(checkpoints)},
          {"batches", std::move(batches)},
          {"epoch", std::move(epochs)},
          {"wall_seconds", std::move(walls)},
          {"series", std::move(series)}};
}

}  // namespace

void HistorySeries::replace(const std::vector<RoundRecord>& records) {
  records_.clear();
  std::ranges::transform(records, std::back_inserter(records_), record_of);
  ++version_;
}

void HistorySeries::add(const RoundRecord& record) {
  records_.erase(std::lower_bound(records_.begin(), records_.end(), record.checkpoint, is_before),
                 records_.end());
  records_.push_back(record_of(record));
  ++version_;
}

std::vector<HistorySeries::Piece> HistorySeries::pieces(RoundIndex from, RoundIndex to,
                                                        std::size_t pieces) const {
  const auto begin = std::lower_bound(records_.begin(), records_.end(), from, is_before);
  auto end = std::lower_bound(begin, records_.end(), to, is_before);
  if (end != records_.end() && end->checkpoint == to) ++end;
  const auto count = static_cast<std::size_t>(end - begin);
  const std::size_t length = std::max<std::size_t>(1, (count + pieces - 1) / pieces);
  std::vector<Piece> all;
  all.reserve(count / length + 1);
  for (std::size_t i = 0; i < count; i += length) {
    const std::size_t stop = std::min(count, i + length);
    Piece piece{begin[static_cast<std::ptrdiff_t>(stop - 1)], {}, {}};
    piece.low.fill(-1);
    piece.high.fill(-1);
    for (std::size_t j = i; j < stop; ++j) {
      const Record& record = begin[static_cast<std::ptrdiff_t>(j)];
      for (std::size_t c = 0; c < kColumns.size(); ++c) {
        const double value = record.values[c];
        if (value < 0) continue;
        piece.low[c] = piece.low[c] < 0 ? value : std::min(piece.low[c], value);
        piece.high[c] = std::max(piece.high[c], value);
        piece.last.values[c] = value;  // the last measured value
      }
    }
    all.push_back(piece);
  }
  return all;
}

std::string HistorySeries::csv() const {
  std::string text = "checkpoint,batches,epoch,wall_seconds";
  for (const std::string_view column : kColumns) text += fmt::format(",{}", column);
  text += '\n';
  for (const Record& r : records_) {
    text += fmt::format("{},{},{},{}", r.checkpoint, r.batches, r.epoch, r.wall_seconds);
    for (const double value : r.values) text += value < 0 ? "," : fmt::format(",{}", value);
    text += '\n';
  }
  return text;
}

std::string history_json(const HistorySeries& history, RoundIndex from, RoundIndex to,
                         std::size_t pieces) {
  return dump(history_of(history, from, to, pieces));
}

std::string histories_json(const std::vector<RunHistory>& runs, std::size_t pieces) {
  Json all = Json::array();
  for (const RunHistory& run : runs) {
    Json one = {{"name", printable(run.name)}, {"batches_per_epoch", run.batches_per_epoch}};
    one.update(history_of(run.series, 0, std::numeric_limits<RoundIndex>::max(), pieces));
    all.push_back(std::move(one));
  }
  return dump({{"runs", std::move(all)}});
}

}  // namespace gleaner
