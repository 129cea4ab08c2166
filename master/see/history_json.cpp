#include <limits>
#include <utility>

#include "master/see/json_values.hpp"
#include "master/see/view_json.hpp"

namespace gleaner {
namespace {

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
