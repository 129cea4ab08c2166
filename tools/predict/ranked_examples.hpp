// Answers of a model for examples whose labels are known, and the quality that follows: F1 at a
// threshold, and intervals by drawing the examples again. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "storage/infer/prediction.hpp"
#include "tools/predict/ranking_quality.hpp"

namespace gleaner {

struct RankedExample {
  std::vector<std::uint32_t> labels;  // true ones, ascending
  std::vector<ScoredLabel> ranked;    // best first
};

// F1 is 2 x right / (predicted + true): over all pairs of example and label, or the mean over
// labels that are true for some example, or the mean over examples. Examples without labels do not
// count.
enum class Averaging : std::uint8_t { kMicro, kMacro, kExamples };

// The F1 of predicting every label with a logit of at least `logit_min`. NaN without examples.
double f1_of(std::span<const RankedExample> examples, Averaging averaging, float logit_min);

// The threshold, between two logits of the examples, with the highest F1; the highest such.
float best_threshold(std::span<const RankedExample> examples, Averaging averaging);

// Expected calibration error: the mean distance, over answers, between the mean probability and the
// fraction of true answers of their bin, in 15 bins of equal width. NaN without answers.
double calibration_error(std::span<const JudgedLogit> answers);

// The logistic function.
double probability_of(double logit);

// Figures that are sums over examples, or quotients of two sums.
class FigureSums {
 public:
  static constexpr std::array<std::string_view, 9> kNames = {
      "p_at_1",   "p_at_3",    "p_at_5",    "psp_at_1",   "psp_at_3",
      "psp_at_5", "ndcg_at_3", "ndcg_at_5", "recall_at_5"};
  static constexpr std::array<std::string_view, 9> kTitles = {
      "P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "nDCG@3", "nDCG@5", "R@5"};
  using Values = std::array<double, kNames.size()>;

  // Adds an example with labels; `ranked` are its best labels.
  void add(const InversePropensities& propensities, const FrequencyClasses& classes,
           std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked);

  [[nodiscard]] std::size_t examples() const { return rows_.size(); }

  [[nodiscard]] Values values() const;

  struct Interval {
    double low = 0, high = 0;
  };

  // The 95 % bootstrap intervals (percentiles of 1,000 draws with replacement) of the figures, or
  // of the differences to `other`, which has the same examples. The draws depend on the number of
  // examples alone.
  [[nodiscard]] std::array<Interval, kNames.size()> intervals(const FigureSums* other) const;

 private:
  struct Row {
    Values parts{}, wholes{};
  };

  static void add_to(Row& sum, const Row& row);
  static Values quotients(const Row& sum);

  std::vector<Row> rows_;
};

}  // namespace gleaner
