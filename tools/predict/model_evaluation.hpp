// Measures a model on examples with labels. One thread; the model's pool does the work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/time.hpp"
#include "storage/infer/answering_model.hpp"
#include "tools/cli/report.hpp"
#include "tools/predict/predict_examples.hpp"
#include "tools/predict/ranked_examples.hpp"
#include "tools/predict/ranking_quality.hpp"
#include "tools/predict/score_files.hpp"

namespace gleaner {

struct EvaluationOptions {
  PropensityModel propensities;
  std::vector<FilteredPair> filter;  // ascending
  std::uint64_t examples = 0;        // only the first; 0: all
  std::uint32_t depth = 100;         // labels kept per example
};

class ModelEvaluation {
 public:
  // `model` and `options` outlive this.
  ModelEvaluation(const EvaluationOptions& options, AnsweringModel& model);

  Result<void> read(PredictExamples& points);

  // Every example, with its best labels by exact scores, without the filtered pairs.
  [[nodiscard]] const std::vector<RankedExample>& judged() const { return judged_; }

  [[nodiscard]] const FigureSums& figures() const { return figures_; }

  // The threshold of the F1 over all pairs, chosen on every other example.
  [[nodiscard]] float threshold() const;

  // Appends sections.
  void report(Report& report) const;

 private:
  // One way of asking the model, and what came of it.
  struct Way {
    const char* name;
    Quality quality;
    Micros elapsed{0};
  };

  Result<void> flush(bool normalise);
  void judge(std::span<const ScoredLabel> best);
  void compare(std::span<const ScoredLabel> exact, std::span<const ScoredLabel> proposed);
  void report_intervals(Report& report) const;
  void report_f1(Report& report) const;
  void report_classes(Report& report, const Way& way) const;

  const EvaluationOptions& options_;
  AnsweringModel& model_;
  InversePropensities propensities_;
  FrequencyClasses classes_;
  std::uint32_t fetched_;  // labels per example: `depth` and the most filtered of an example
  std::vector<Way> ways_;  // the exact one, then the tables'
  std::vector<Point> batch_;
  std::vector<RankedExample> judged_;
  FigureSums figures_;
  std::vector<JudgedLogit> raw_answers_, answers_;  // the five best labels of examples with labels
  std::uint64_t exact_entries_ = 0;  // of exact answers, of points with labels or without
  std::uint64_t found_entries_ = 0;  // of those, in the tables' answers
};

}  // namespace gleaner
