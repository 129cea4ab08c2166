// `gleaner evaluate`: the quality of a trained model on examples with labels.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>

#include "common/data/name_table.hpp"
#include "common/data/packed_writer.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "common/train/kernels.hpp"
#include "storage/infer/answering_model.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/predict/predict_examples.hpp"
#include "tools/predict/ranking_quality.hpp"

namespace gleaner {
namespace {

struct EvaluateFlags {
  std::string store;
  std::string data;
  ReadFlags read;
  std::uint64_t points = 0;  // 0: all
  std::uint32_t threads = 0;
  std::uint32_t candidates = TableSearch::kCandidatesUsual;
  bool tables = false;
  bool json = false;
};

// One way of asking the model, and what came of it.
struct Way {
  const char* name;
  Quality quality;
  Micros elapsed{0};
};

class ModelEvaluation {
 public:
  ModelEvaluation(const EvaluateFlags& flags, AnsweringModel& model)
      : flags_(flags),
        model_(model),
        propensities_(model.label_counts(), model.config().points),
        classes_(model.label_counts()) {
    ways_.push_back({"exact", Quality(propensities_, classes_)});
    if (model.has_tables()) ways_.push_back({"tables", Quality(propensities_, classes_)});
  }

  Result<void> read(PredictExamples& points);
  [[nodiscard]] Report report() const;

 private:
  Result<void> flush(bool normalise);
  void add(Way& way, std::span<const ScoredLabel> best);
  void compare(std::span<const ScoredLabel> exact, std::span<const ScoredLabel> proposed);

  const EvaluateFlags& flags_;
  AnsweringModel& model_;
  InversePropensities propensities_;
  FrequencyClasses classes_;
  std::vector<Way> ways_;  // the exact one, then the tables'
  std::vector<Point> batch_;
  std::uint64_t points_read_ = 0;
  std::uint64_t exact_entries_ = 0;  // of exact answers, of points with labels or without
  std::uint64_t found_entries_ = 0;  // of those, in the tables' answers
};

Result<void> ModelEvaluation::flush(bool normalise) {
  if (batch_.empty()) return {};
  std::vector<ExampleView> examples;
  for (Point& point : batch_) {
    if (normalise) normalize_row(point.values);
    examples.push_back({point.labels, point.features, point.values});
  }
  const Instant begin = monotonic_now();
  const auto exact = model_.top(examples, Quality::kDepthMax, false);
  if (!exact) return exact.error();
  ways_[0].elapsed += monotonic_now() - begin;
  add(ways_[0], *exact);
  if (model_.has_tables()) {
    const Instant start = monotonic_now();
    const auto proposed = model_.top(examples, Quality::kDepthMax, true);
    if (!proposed) return proposed.error();
    ways_[1].elapsed += monotonic_now() - start;
    add(ways_[1], *proposed);
    compare(*exact, *proposed);
  }
  points_read_ += batch_.size();
  batch_.clear();
  return {};
}

void ModelEvaluation::add(Way& way, std::span<const ScoredLabel> best) {
  const std::size_t width = best.size() / batch_.size();
  std::vector<std::uint32_t> ranked;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    ranked.clear();
    for (const ScoredLabel& scored : best.subspan(i * width, width)) {
      if (std::isfinite(scored.logit)) ranked.push_back(scored.label);
    }
    way.quality.add(batch_[i].labels, ranked);
  }
}

void ModelEvaluation::compare(std::span<const ScoredLabel> exact,
                              std::span<const ScoredLabel> proposed) {
  const std::size_t width = exact.size() / batch_.size();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const auto own = proposed.subspan(i / width * width, width);
    ++exact_entries_;
    if (std::ranges::find(own, exact[i]) != own.end()) ++found_entries_;
  }
}

Result<void> ModelEvaluation::read(PredictExamples& points) {
  const bool normalise = model_.is_normalised() && !points.is_normalised();
  ProgressLine progress("Evaluating");
  std::uint64_t total = points.announced_points().value_or(0);
  if (flags_.points != 0) total = total == 0 ? flags_.points : std::min(total, flags_.points);
  IndexedExample point;
  for (;;) {
    Result<bool> has_point = points.next(point);
    if (!has_point) return has_point.error();
    if (!*has_point || (flags_.points != 0 && point.index >= flags_.points)) break;
    batch_.push_back(std::move(point.point));
    if (batch_.size() < kExamplesAtOnce) continue;
    if (auto done = flush(normalise); !done) return done;
    progress.show(points_read_, total, "examples");
  }
  return flush(normalise);
}

Report ModelEvaluation::report() const {
  Report report;
  report.fact("checkpoint", "checkpoint", cell_count(model_.checkpoint()));
  report.fact("points", "examples", cell_count(points_read_));
  report.fact("evaluated", "with labels", cell_count(ways_[0].quality.points()));
  if (model_.has_tables()) {
    report.fact("candidates", "candidates", cell_count(flags_.candidates));
    report.fact(
        "recall_of_exact", "exact top 5 found",
        cell_share(static_cast<double>(found_entries_) / static_cast<double>(exact_entries_)));
  }
  report.section("", "");
  ReportTable& table = report.table("ways", {{"way", "scored", true}});
  add_precision_columns(table.columns);
  table.columns.insert(table.columns.end(), {{"ndcg_at_3", "nDCG@3"},
                                             {"ndcg_at_5", "nDCG@5"},
                                             {"recall_at_5", "R@5"},
                                             {"examples_per_second", "examples/s"}});
  for (const Way& way : ways_) {
    const double seconds = seconds_in(way.elapsed);
    std::vector<Cell>& row = table.rows.emplace_back();
    row.push_back(cell_text(way.name));
    add_precision_cells(row, way.quality.precision());
    for (const double value : {way.quality.ndcg(1), way.quality.ndcg(2), way.quality.recall(2)}) {
      row.push_back(cell_measured_share(value));
    }
    row.push_back(cell_number(static_cast<double>(points_read_) / seconds, 0));
  }
  constexpr const char* kNames[] = {"head", "torso", "tail"};
  for (const Way& way : ways_) {
    const std::string key = std::string("by_frequency_") + way.name;
    report.section("", fmt::format("By how frequent labels are, {}", way.name));
    ReportTable& classes = report.table(key, {{"class", "", true},
                                              {"labels", "labels"},
                                              {"points_from", "examples from"},
                                              {"points_to", "to"},
                                              {"true_labels", "true labels"},
                                              {"recall_at_1", "found at 1"},
                                              {"recall_at_3", "at 3"},
                                              {"recall_at_5", "at 5"},
                                              {"p_at_5_part", "part of P@5"}});
    for (std::size_t c = 0; c < kFrequencyClasses; ++c) {
      const Quality::ByClass& own = way.quality.by_class(c);
      const auto of_true = [&](std::size_t d) {
        return cell_share(static_cast<double>(own.hits[d]) / static_cast<double>(own.true_labels));
      };
      const FrequencyClasses::Extent& extent = classes_.extent(c);
      classes.rows.push_back({cell_text(kNames[c]), cell_count(extent.labels),
                              cell_count(extent.points_min), cell_count(extent.points_max),
                              cell_count(own.true_labels), of_true(0), of_true(1), of_true(2),
                              cell_share(static_cast<double>(own.hits[2]) /
                                         (5 * static_cast<double>(way.quality.points())))});
    }
  }
  return report;
}

Result<void> evaluate(const EvaluateFlags& flags) {
  if (auto level = simd_level_from_environment(); !level) return level.error();
  give_way_to_master(flags.store);
  auto run = open_run_to_read(flags.store);
  if (!run) return run.error();
  const std::uint32_t candidates = flags.tables ? flags.candidates : 0;
  auto model = AnsweringModel::open(std::move(*run), asking_options(flags.threads, candidates));
  if (!model) return model.error();
  const TextOptions options = limits_of((*model)->config(), flags.read, flags.store);
  if (flags.data != kStandardInput) {
    const auto folder = std::filesystem::path(flags.data).parent_path();
    auto its = check_name_files((*model)->identity().settings, folder.string());
    if (!its) return its;
  }
  auto points = PredictExamples::open(flags.data, options, [] { return Result<void>(); });
  if (!points) return points.error();
  if (auto fits = check_scaling(**points, **model, flags.data); !fits) return fits;
  ModelEvaluation evaluation(flags, **model);
  if (auto read = evaluation.read(**points); !read) return read;
  return print_report(evaluation.report(), report_form(flags.json), "evaluate", flags.store);
}

}  // namespace

void add_evaluate_command(CLI::App& app, int& exit_status) {
  CLI::App& verb =
      *app.add_subcommand("evaluate", "measure a trained model on examples with labels");
  auto flags = std::make_shared<EvaluateFlags>();
  add_store(verb, flags->store);
  verb.add_option(
          "--data", flags->data,
          "examples as XC or libsvm text (plain, gzip, zstd) or packed; - is standard input")
      ->required();
  verb.add_option("--points", flags->points, "only N examples from the front");
  verb.add_flag("--tables", flags->tables,
                "also through the hash tables, and how much of the exact answers they find");
  verb.add_option(
          "--candidates", flags->candidates,
          "with --tables: neurons to score, those that most tables propose; and as many of the "
          "labels most frequent in training")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--threads", flags->threads, "compute threads (one a core unless given)")
      ->check(CLI::Range(1, 1024));
  verb.add_flag("--json", flags->json, "one JSON object");
  add_read_flags(verb, flags->read);
  verb.footer(
      "Precision, propensity-scored precision (A = 0.55, B = 1.5), nDCG and recall of the last "
      "whole\ncheckpoint. Head: the fewest labels that hold half of all training occurrences; "
      "tail: "
      "those that hold\nthe last tenth.\n\n"
      "Examples:\n"
      "  gleaner evaluate run1 --data test.txt\n"
      "  gleaner evaluate run1 --data test.txt --tables --candidates 1000 --json\n\n"
      "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data, 4 no usable store.");
  verb.callback([flags, &exit_status] { exit_status = report_on_store(evaluate(*flags)); });
}

}  // namespace gleaner
