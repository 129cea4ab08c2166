// The views of a run as a whole: its summary and its configuration.
#include <fmt/format.h>

#include <string>

#include "common/limits.hpp"
#include "common/model/model_fields.hpp"
#include "common/model/recipe.hpp"
#include "common/model/run_plan.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/charts.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

// Counts the places of wide rows, a few of which are free at the end of a label's last row.
std::uint64_t parameter_count(const ModelConfig& model) {
  if (is_wide(model)) {
    return std::uint64_t{model.wide_rows} * model.output_shards * kWideWeights + model.labels;
  }
  return (std::uint64_t{model.features} + 1) * model.hidden +
         (std::uint64_t{model.hidden} + 1) * model.labels;
}

std::string sampling_text(const ModelConfig& model) {
  if (model.sampling == Sampling::kAll) return "every neuron";
  if (model.sampling == Sampling::kRandom) {
    return fmt::format("{} random negatives", grouped(model.active_cap));
  }
  if (is_wide(model)) {
    return fmt::format("neurons listed for the example's features, with scores above {}",
                       model.wide_score_min);
  }
  return fmt::format("{} tables of 2^{} buckets, at most {} neurons an example", model.tables,
                     model.hash_bits, grouped(model.active_cap));
}

void add_progress(Report& report, const RunStore& run, const std::vector<RoundRecord>& history) {
  const ModelConfig& model = run.identity().model;
  const RunPlan plan(model);
  const RoundIndex checkpoint = run.checkpoint();
  const double share =
      plan.round_count() == 0 ? 0 : static_cast<double>(checkpoint) / double(plan.round_count());
  report.section("progress", "Progress");
  const std::uint64_t batches = plan.round_begin(checkpoint);
  Cell shown = cell_count(checkpoint);
  shown.text = fmt::format("{} of {} ({:.0f} %), epoch {} of {}", grouped(checkpoint),
                           grouped(plan.round_count()), 100 * share,
                           checkpoint == plan.round_count()
                               ? model.epochs
                               : plan.epoch_of(plan.round_begin(checkpoint)) + 1,
                           model.epochs);
  report.fact("checkpoint", "checkpoint", std::move(shown));
  report.fact("batches", "batches", cell_count(batches));
  if (!run.rate_cuts().empty()) {
    Cell cuts = cell_count(run.rate_cuts().size());
    cuts.text += fmt::format(", the last from batch {} on: rounds diverged",
                             grouped(run.rate_cuts().back()));
    report.fact("rate_cuts", "rates halved", std::move(cuts));
  }
  if (history.empty()) return;
  const RoundRecord& last = history.back();
  report.fact("wall_seconds", "written (UTC)", cell_time(last.wall_seconds));
  report.fact("loss", "loss", cell_measured(last.loss, 4));
  report.fact("active", "active neurons", cell_measured(last.active, 1));
  report.fact("examples_per_second", "examples/s", cell_measured(last.examples_per_second, 0));
  report.fact("volunteers", "volunteers", cell_count(last.volunteers));
}

void add_metrics(Report& report, const std::vector<RoundRecord>& history, const RunPlan& plan,
                 TextStyle style) {
  std::vector<Curve> curves = {{'1', Colour::kGreen, "P@1", {}},
                               {'3', Colour::kYellow, "P@3", {}},
                               {'5', Colour::kCyan, "P@5", {}}};
  const RoundRecord* best = nullptr;
  const RoundRecord* last = nullptr;
  for (const RoundRecord& record : history) {
    if (record.evaluated == 0 || !record.precision.is_measured()) continue;
    const double epoch = plan.epochs_in(plan.round_begin(record.checkpoint));
    for (std::size_t d = 0; d < curves.size(); ++d) {
      if (record.precision.p[d] >= 0) curves[d].points.emplace_back(epoch, record.precision.p[d]);
    }
    last = &record;
    if (best == nullptr || record.precision.at_1() > best->precision.at_1()) best = &record;
  }
  report.section("precision", "Precision on test examples");
  if (last == nullptr) {
    report.text("  not evaluated yet\n");
    return;
  }
  auto& table = report.table(
      "evaluations", {{"which", "", true}, {"checkpoint", "checkpoint"}, {"evaluated", "points"}});
  add_precision_columns(table.columns);
  for (const auto& [which, record] : {std::pair("last", last), std::pair("best", best)}) {
    std::vector<Cell>& row = table.rows.emplace_back(std::vector<Cell>{
        cell_text(which), cell_count(record->checkpoint), cell_count(record->evaluated)});
    add_precision_cells(row, record->precision);
  }
  const std::string chart = curve_chart(curves, "epoch", {.style = style});
  if (!chart.empty()) report.text("\n" + chart);
}

}  // namespace

Result<Report> inspect_summary(RunStore& run, const InspectRequest& request) {
  const auto history = run.history();
  if (!history) return history.error();
  const auto digests = run.shard_digests();
  if (!digests) return digests.error();
  const auto space = run.space();
  if (!space) return space.error();
  const ModelConfig& model = run.identity().model;
  Report report;
  report.section("model", "Model");
  Cell shape = cell_text(fmt::format("{} -> {} -> {}", grouped(model.features),
                                     grouped(model.hidden), grouped(model.labels)));
  report.fact("shape", "features to labels", std::move(shape));
  report.fact("parameters", "parameters", cell_count(parameter_count(model)));
  report.fact("output_shards", "output shards", cell_count(model.output_shards));
  report.fact("sampling", "sampling", cell_text(sampling_text(model)));
  std::uint64_t trained = 0;
  // The digests of input shards come after.
  for (std::size_t shard = 0; shard < model.output_shards; ++shard) {
    trained += digests->at(shard).rows;
  }
  Cell rows = cell_count(trained);
  if (is_wide(model)) {
    report.fact("wide_rows", "stored wide rows", std::move(rows));
  } else {
    rows.text += fmt::format(" of {}", grouped(model.labels));
    report.fact("labels_trained", "labels trained", std::move(rows));
  }
  report.section("data", "Data");
  report.fact("points", "training examples", cell_count(model.points));
  report.fact("fingerprint", "fingerprint",
              cell_text(fmt::format("{:016x}", model.data_fingerprint)));
  report.fact("seed", "seed", cell_count(model.seed));
  add_progress(report, run, *history);
  add_metrics(report, *history, RunPlan(model), request.style);
  report.section("space", "");
  std::uint64_t files = 0;
  for (const TableSpace& table : *space) files += table.file_bytes + table.newest_bytes;
  report.fact("bytes", "on disk", cell_bytes(files));
  return report;
}

Result<Report> inspect_config(RunStore& run, const InspectRequest&) {
  Report report;
  report.section("", "Model: what a checkpoint is a function of");
  auto& model = report.table("model", {{"key", "key", true}, {"value", "value", true}});
  for (const auto& [name, text] : model_fields(run.identity().model)) {
    model.rows.push_back({cell_text(name), cell_text(text)});
  }
  report.section("", "Settings of the master");
  auto& settings = report.table("settings", {{"key", "key", true}, {"value", "value", true}});
  for (const auto& [name, text] : run.identity().settings) {
    settings.rows.push_back({cell_text(name), cell_text(text)});
  }
  return report;
}

Result<Report> inspect_recipe(RunStore& run, const InspectRequest&) {
  const std::vector<RecipeTrial> trials = stored_trials(run.identity().settings);
  Report report;
  report.section("", trials.empty() ? "No candidate was tried before this run"
                                    : "Configurations that were tried before this run");
  const ModelConfig& model = run.identity().model;
  auto& table = report.table("trials", {{"hidden", "hidden units", false},
                                        {"wide_scale", "start rows' length", false},
                                        {"output_rate", "rate", false},
                                        {"epochs", "epochs", true},
                                        {"quality", "P@1 and nDCG@5, mean", false},
                                        {"is_chosen", "chosen", true}});
  for (const RecipeTrial& trial : trials) {
    const bool has_scale = trial.hidden == 0;
    const bool is_chosen = trial.hidden == model.hidden && trial.output_rate == model.output_rate &&
                           (!has_scale || trial.wide_scale == model.wide_scale);
    table.rows.push_back(
        {cell_count(trial.hidden),
         has_scale ? cell_number(trial.wide_scale, 3) : cell_text(""),
         cell_number(trial.output_rate, 4),
         {trial.epochs, trial.epochs == 0 ? "as a run" : std::to_string(trial.epochs)},
         cell_number(trial.quality, 4),
         {is_chosen, is_chosen ? "yes" : ""}});
  }
  return report;
}

}  // namespace gleaner
