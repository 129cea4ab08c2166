#include <catch2/catch.hpp>

#include "common/model/run_plan.hpp"
#include "tools/cli/charts.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;

ModelConfig some_model() {
  ModelConfig model;
  model.points = 1000;
  model.features = 10;
  model.labels = 5;
  model.epochs = 2;
  model.round_batches = 8;
  model.staleness = 2;
  return model;
}

std::vector<RoundRecord> some_history() {
  const RunPlan plan(some_model());
  std::vector<RoundRecord> history;
  for (RoundIndex round = 0; round < plan.round_count(); ++round) {
    RoundRecord record;
    record.checkpoint = round + 1;
    record.batches = plan.round_end(round);
    record.loss = 9.0 / static_cast<double>(round + 1);
    record.volunteers = 3;
    record.wall_seconds = 1'700'000'000 + 600 * static_cast<std::int64_t>(round);
    if (plan.ends_epoch(round)) record.precision.p[0] = 0.25;
    history.push_back(record);
  }
  return history;
}

const Plot& named(const std::vector<Plot>& plots, const std::string& name) {
  for (const Plot& plot : plots) {
    if (plot.name == name) return plot;
  }
  FAIL("no plot " << name);
  return plots.front();
}

}  // namespace

TEST_CASE("plot: each measure stands where it was taken, what was not measured nowhere", "[plot]") {
  const auto history = some_history();
  const auto plots = plots_of(history, some_model());
  const Plot& loss = named(plots, "loss");
  REQUIRE(loss.series.size() == 1);
  CHECK(loss.series[0].points.size() == history.size());
  CHECK(loss.series[0].points.back().first == 2);
  CHECK(loss.series[0].points.front().second == 9);
  const Plot& precision = named(plots, "precision");
  REQUIRE(precision.series.size() == 1);
  CHECK(precision.series[0].name == "P@1");
  CHECK(precision.series[0].points == std::vector<std::pair<double, double>>{{1, 25}, {2, 25}});
  CHECK(named(plots, "bytes").series.empty());
  CHECK(named(plots, "throughput").series.empty());
  CHECK(named(plots, "volunteers").series[0].points.back().second == 3);
  for (const auto& [epoch, batches] : named(plots, "staleness").series.at(0).points) {
    CHECK(batches >= 0);
    CHECK(batches <= 2);
  }
  CHECK(plots_of({}, some_model()).size() == plots.size());
}

TEST_CASE("plot: time is in the largest unit of which the run took more than two", "[plot]") {
  auto history = some_history();
  const auto title = [&](std::int64_t seconds) {
    history.back().wall_seconds = history.front().wall_seconds + seconds;
    return named(plots_of(history, some_model()), "volunteers").x_title;
  };
  CHECK(title(100) == "seconds since the first checkpoint");
  CHECK(title(150) == "minutes since the first checkpoint");
  CHECK(title(3 * 3600) == "hours since the first checkpoint");
  CHECK(title(3 * 86400) == "days since the first checkpoint");
}

TEST_CASE("plot: names cannot command gnuplot", "[plot]") {
  CHECK(gnuplot_quoted("it's\n'; system \"x\"") == "'it''s ''; system \"x\"'");
  Plot plot{"loss", "Loss", "epochs", "nats", {{"it's", {{1, 2}, {2, 1}}}}, true, false};
  const std::string commands = gnuplot_commands(plot, "run'1");
  CHECK_THAT(commands, Contains("set title 'Loss (run''1)'"));
  CHECK_THAT(commands, Contains("title 'it''s'"));
  CHECK_THAT(commands, Contains("$series0 << EOD\n1 2\n2 1\nEOD\n"));
  CHECK_THAT(commands, Contains("set xrange [0:2]"));
  CHECK_THAT(commands, Contains("set yrange [0:*]"));
  // A range of one point would be none.
  plot.series[0].points = {{1, 50}};
  plot.is_from_zero = false;
  CHECK_THAT(gnuplot_commands(plot, ""), Contains("set xrange [0:1]\nset yrange [49:51]"));
}

}  // namespace gleaner
