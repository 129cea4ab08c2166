#include "tools/predict/model_evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/data/packed_writer.hpp"

namespace gleaner {
namespace {

std::uint32_t most_of_an_example(const std::vector<FilteredPair>& filter) {
  std::uint32_t most = 0;
  std::uint32_t own = 0;
  for (std::size_t i = 0; i < filter.size(); ++i) {
    own = i > 0 && filter[i - 1].example == filter[i].example ? own + 1 : 1;
    most = std::max(most, own);
  }
  return most;
}

// Every other example: on the first ones thresholds are chosen, on the second ones F1 is measured.
std::vector<RankedExample> half_of(const std::vector<RankedExample>& examples, std::size_t first) {
  std::vector<RankedExample> half;
  for (std::size_t i = first; i < examples.size(); i += 2) half.push_back(examples[i]);
  return half;
}

std::vector<std::uint32_t> first_labels(std::span<const ScoredLabel> best) {
  std::vector<std::uint32_t> ranked;
  for (const ScoredLabel& scored : best) {
    if (ranked.size() == Quality::kDepthMax) break;
    if (std::isfinite(scored.logit)) ranked.push_back(scored.label);
  }
  return ranked;
}

}  // namespace

ModelEvaluation::ModelEvaluation(const EvaluationOptions& options, AnsweringModel& model)
    : options_(options),
      model_(model),
      propensities_(model.label_counts(), model.config().points, options.propensities),
      classes_(model.label_counts()),
      fetched_(std::max(options.depth, Quality::kDepthMax) + most_of_an_example(options.filter)) {
  ways_.push_back({"exact", Quality(propensities_, classes_)});
  if (model.has_tables()) ways_.push_back({"tables", Quality(propensities_, classes_)});
}

Result<void> ModelEvaluation::flush(bool normalise) {
  if (batch_.empty()) return {};
  std::vector<ExampleView> examples;
  for (Point& point : batch_) {
    if (normalise) normalize_row(point.values);
    examples.push_back({point.labels, point.features, point.values});
  }
  const Instant begin = monotonic_now();
  const auto exact = model_.top(examples, fetched_, false);
  if (!exact) return exact.error();
  ways_[0].elapsed += monotonic_now() - begin;
  judge(*exact);
  if (model_.has_tables()) {
    const Instant start = monotonic_now();
    const auto proposed = model_.top(examples, Quality::kDepthMax, true);
    if (!proposed) return proposed.error();
    ways_[1].elapsed += monotonic_now() - start;
    const std::size_t width = proposed->size() / batch_.size();
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      const auto own = std::span(*proposed).subspan(i * width, width);
      ways_[1].quality.add(batch_[i].labels, first_labels(own));
      compare(std::span(*exact).subspan(i * (exact->size() / batch_.size()), width), own);
    }
  }
  batch_.clear();
  return {};
}

void ModelEvaluation::judge(std::span<const ScoredLabel> best) {
  const std::size_t width = best.size() / batch_.size();
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    RankedExample& judged = judged_.emplace_back();
    judged.labels = batch_[i].labels;
    for (const ScoredLabel& scored : best.subspan(i * width, width)) {
      if (judged.ranked.size() == options_.depth) break;
      if (std::ranges::binary_search(options_.filter,
                                     FilteredPair{judged_.size() - 1, scored.label})) {
        continue;
      }
      judged.ranked.push_back({scored.label, model_.calibration().apply(scored.logit)});
      if (judged.ranked.size() <= Quality::kDepthMax && !judged.labels.empty()) {
        const bool is_true = std::ranges::binary_search(judged.labels, scored.label);
        raw_answers_.push_back({scored.logit, is_true});
        answers_.push_back({judged.ranked.back().logit, is_true});
      }
    }
    if (judged.labels.empty()) continue;
    const auto ranked = first_labels(judged.ranked);
    ways_[0].quality.add(judged.labels, ranked);
    figures_.add(propensities_, classes_, judged.labels, ranked);
  }
}

void ModelEvaluation::compare(std::span<const ScoredLabel> exact,
                              std::span<const ScoredLabel> proposed) {
  for (const ScoredLabel& scored : exact) {
    ++exact_entries_;
    if (std::ranges::find(proposed, scored) != proposed.end()) ++found_entries_;
  }
}

Result<void> ModelEvaluation::read(PredictExamples& points) {
  const bool normalise = model_.is_normalised() && !points.is_normalised();
  ProgressLine progress("Evaluating");
  std::uint64_t total = points.announced_points().value_or(0);
  if (options_.examples != 0) {
    total = total == 0 ? options_.examples : std::min(total, options_.examples);
  }
  IndexedExample point;
  for (;;) {
    Result<bool> has_point = points.next(point);
    if (!has_point) return has_point.error();
    if (!*has_point || (options_.examples != 0 && point.index >= options_.examples)) break;
    batch_.push_back(std::move(point.point));
    if (batch_.size() < kExamplesAtOnce) continue;
    if (auto done = flush(normalise); !done) return done;
    progress.show(judged_.size(), total, "examples");
  }
  return flush(normalise);
}

float ModelEvaluation::threshold() const {
  return best_threshold(half_of(judged_, 0), Averaging::kMicro);
}

void ModelEvaluation::report_intervals(Report& report) const {
  report.section("", "95 % bootstrap intervals");
  ReportTable& table = report.table(
      "intervals", {{"figure", "", true}, {"value", "exact"}, {"low", "from"}, {"high", "to"}});
  const auto values = figures_.values();
  const auto intervals = figures_.intervals(nullptr);
  for (std::size_t f = 0; f < values.size(); ++f) {
    table.rows.push_back({{FigureSums::kNames[f], std::string(FigureSums::kTitles[f])},
                          cell_share(values[f]),
                          cell_share(intervals[f].low),
                          cell_share(intervals[f].high)});
  }
}

void ModelEvaluation::report_f1(Report& report) const {
  report.section("", "F1 at a threshold chosen on every other example, measured on the rest");
  ReportTable& table = report.table(
      "f1", {{"mean_over", "mean over", true}, {"threshold", "probability from"}, {"f1", "F1"}});
  const std::vector<RankedExample> chooses = half_of(judged_, 0), measures = half_of(judged_, 1);
  for (const auto& [averaging, name] : {std::pair(Averaging::kMicro, "pairs (micro)"),
                                        std::pair(Averaging::kMacro, "labels (macro)"),
                                        std::pair(Averaging::kExamples, "examples")}) {
    const float threshold = best_threshold(chooses, averaging);
    table.rows.push_back({cell_text(name), cell_share(probability_of(threshold)),
                          cell_share(f1_of(measures, averaging, threshold))});
  }
}

void ModelEvaluation::report_classes(Report& report, const Way& way) const {
  constexpr const char* kNames[] = {"head", "torso", "tail"};
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

void ModelEvaluation::report(Report& report) const {
  report.fact("checkpoint", "checkpoint", cell_count(model_.checkpoint()));
  report.fact("points", "examples", cell_count(judged_.size()));
  report.fact("evaluated", "with labels", cell_count(ways_[0].quality.points()));
  report.fact("calibration_error", "calibration error",
              cell_number(calibration_error(answers_), 4));
  report.fact("calibration_error_of_logits", "without calibration",
              cell_number(calibration_error(raw_answers_), 4));
  if (model_.has_tables()) {
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
    std::vector<Cell>& row = table.rows.emplace_back();
    row.push_back(cell_text(way.name));
    add_precision_cells(row, way.quality.precision());
    for (const double value : {way.quality.ndcg(1), way.quality.ndcg(2), way.quality.recall(2)}) {
      row.push_back(cell_measured_share(value));
    }
    row.push_back(cell_number(static_cast<double>(judged_.size()) / seconds_in(way.elapsed), 0));
  }
  if (figures_.examples() > 0) {
    report_intervals(report);
    report_f1(report);
  }
  for (const Way& way : ways_) report_classes(report, way);
}

}  // namespace gleaner
