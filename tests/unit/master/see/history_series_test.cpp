#include "master/see/history_series.hpp"

#include <catch2/catch.hpp>

namespace gleaner {
namespace {

RoundRecord record(RoundIndex checkpoint, double loss, double p_at_1 = -1) {
  RoundRecord made;
  made.checkpoint = checkpoint;
  made.batches = 10 * checkpoint;
  made.loss = loss;
  made.precision.p[0] = p_at_1;
  return made;
}

constexpr std::size_t kLoss = 0;
constexpr std::size_t kPrecision = 6;

}  // namespace

TEST_CASE("history series: no spike is lost, however few pieces are asked for", "[http]") {
  std::vector<RoundRecord> records;
  for (RoundIndex i = 1; i <= 1000; ++i) records.push_back(record(i, i == 500 ? 99 : 1));
  HistorySeries series;
  series.replace(records);
  for (const std::size_t pieces : {1U, 2U, 7U, 999U, 1000U, 4000U}) {
    const auto all = series.pieces(0, 5000, pieces);
    REQUIRE(all.size() <= pieces);
    REQUIRE(all.back().last.checkpoint == 1000);
    double high = 0;
    for (const auto& piece : all) high = std::max(high, piece.high[kLoss]);
    REQUIRE(high == 99);
  }
}

TEST_CASE("history series: a range has its own checkpoints and finer pieces", "[http]") {
  HistorySeries series;
  for (RoundIndex i = 1; i <= 100; ++i) series.add(record(i, i));
  const auto part = series.pieces(20, 29, 10);
  REQUIRE(part.size() == 10);
  REQUIRE(part.front().last.checkpoint == 20);
  REQUIRE(part.back().last.checkpoint == 29);
  REQUIRE(part.front().low[kLoss] == 20);
  REQUIRE(series.pieces(200, 300, 10).empty());
  REQUIRE(HistorySeries().pieces(0, 10, 5).empty());
}

TEST_CASE("history series: what was not measured is no number, and the last that was stands",
          "[http]") {
  HistorySeries series;
  series.add(record(1, 1, 0.5));
  series.add(record(2, 2));
  const auto all = series.pieces(0, 10, 1);
  REQUIRE(all.size() == 1);
  REQUIRE(all[0].last.values[kPrecision] == 0.5);
  REQUIRE(all[0].low[kPrecision] == 0.5);
  REQUIRE(all[0].high[kLoss] == 2);
  REQUIRE(series.pieces(2, 2, 1)[0].low[kPrecision] < 0);
}

TEST_CASE("history series: an evaluation replaces its checkpoint's record", "[http]") {
  HistorySeries series;
  series.replace({record(1, 1), record(2, 2), record(3, 3)});
  const std::uint64_t version = series.version();
  series.add(record(3, 3, 0.9));
  REQUIRE(series.records().size() == 3);
  REQUIRE(series.records().back().values[kPrecision] == 0.9);
  REQUIRE(series.version() > version);
  REQUIRE(series.csv().starts_with("checkpoint,batches,epoch,wall_seconds,loss,"));
  REQUIRE(series.csv().find("\n3,30,0,0,3,,") != std::string::npos);
}

}  // namespace gleaner
