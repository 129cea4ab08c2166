// Quality of predictions: precision@k and propensity-scored precision@k (Jain, Prabhu, Varma:
// Extreme Multi-label Loss Functions, KDD 2016), as the scripts of the Extreme Classification
// Repository compute them. Sums are integers, so the result does not depend on the order or
// division of the examples. Plain values: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gleaner {

struct ScoredNeuron {
  std::uint32_t neuron = 0;  // in the output layer
  float score = 0;           // logit
  friend bool operator==(const ScoredNeuron&, const ScoredNeuron&) = default;
};

// Fractions between 0 and 1 over the scored examples; negative if not measured.
struct Precision {
  static constexpr std::array<std::uint32_t, 3> kDepths = {1, 3, 5};

  std::array<double, 3> p = {-1, -1, -1};    // precision@k for each depth k
  std::array<double, 3> psp = {-1, -1, -1};  // propensity-scored precision@k for each depth k
  double p_at_1_halfwidth = -1;  // half the 95 % interval of p[0]; negative when all were scored

  [[nodiscard]] double at_1() const { return p[0]; }

  [[nodiscard]] bool is_measured() const { return at_1() >= 0; }

  friend bool operator==(const Precision&, const Precision&) = default;
};

// Calls `visit(name, title, value)` for the figure at each depth. Programs, JSON and stores use
// `name`; people see `title`.
template <typename P, typename Visit>
void visit_depths(P& precision, const Visit& visit) {
  visit("p_at_1", "P@1", precision.p[0]);
  visit("p_at_3", "P@3", precision.p[1]);
  visit("p_at_5", "P@5", precision.p[2]);
  visit("psp_at_1", "PSP@1", precision.psp[0]);
  visit("psp_at_3", "PSP@3", precision.psp[1]);
  visit("psp_at_5", "PSP@5", precision.psp[2]);
}

// Calls `visit(name, value)` for every figure.
template <typename P, typename Visit>
void visit_precision(P& precision, const Visit& visit) {
  visit_depths(precision, [&](const char* name, const char*, auto& value) { visit(name, value); });
  visit("p_at_1_halfwidth", precision.p_at_1_halfwidth);
}

// "P@1 0.5941 ± 0.0100  P@3 ...  PSP@5 ...", or "not evaluated".
std::string to_text(const Precision& precision, const char* plus_minus = "±");

// The best `top_k` of several lists of distinct neurons, by descending score, then ascending
// neuron; fewer when the lists hold fewer. Scores must not be NaN (the codec refuses NaN).
std::vector<ScoredNeuron> merge_top_k(std::span<const std::span<const ScoredNeuron>> lists,
                                      std::uint32_t top_k);

// Propensity: the probability p that a true label was recorded at all, from the label's count in
// the training data: 1 / p = 1 + C (count + B)^-A with C = (ln points - 1) (B + 1)^A. A and B are
// 0.55 and 1.5 unless the repository states others for a data set (Wikipedia: 0.5, 0.4; Amazon:
// 0.6, 2.6). Both are positive.
struct PropensityModel {
  double a = 0.55;
  double b = 1.5;
};

// 1 / p of every label, in multiples of 2^-24. Any thread may read.
class InversePropensities {
 public:
  // `label_counts` belong to the training file, which has `points` examples.
  InversePropensities(std::span<const std::uint32_t> label_counts, std::uint64_t points,
                      const PropensityModel& model = {});

  // A label beyond the training file's labels counts as never seen.
  [[nodiscard]] std::uint64_t of(std::uint32_t label) const {
    return label < scaled_.size() ? scaled_[label] : unseen_;
  }

 private:
  std::vector<std::uint64_t> scaled_;
  std::uint64_t unseen_ = 0;
};

// Half the width of the 95 % interval of precision@1, whose mean over `evaluated` examples is
// `precision`; `scored` of `total` examples were drawn. Normal approximation, corrected for drawing
// from a finite set. Negative when all examples were scored, or none was evaluated.
double precision_halfwidth(double precision, std::uint64_t evaluated, std::uint64_t scored,
                           std::uint64_t total);

// Adds up examples. Examples without labels are skipped, since no prediction can be right.
// precision@k divides by k even if an example has fewer labels. PSP@k is the sum over hits divided
// by the sum over the best possible predictions.
class MetricSums {
 public:
  // `propensities` outlives this.
  explicit MetricSums(const InversePropensities& propensities) : propensities_(propensities) {}

  // `labels`: true labels, ascending. `ranked`: distinct predicted labels, best first. Entries
  // after the fifth do not count, and missing entries are misses.
  void add(std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked);

  // Number of examples that count: those with a label.
  [[nodiscard]] std::uint64_t evaluated() const { return evaluated_; }

  // Not measured when no example counts. Without p_at_1_halfwidth.
  [[nodiscard]] Precision precision() const;

 private:
  static constexpr auto kDepths = Precision::kDepths;
  static constexpr std::uint32_t kDepthMax = kDepths.back();

  const InversePropensities& propensities_;
  std::uint64_t evaluated_ = 0;
  std::array<std::uint64_t, 3> hits_{};
  std::array<std::uint64_t, 3> weighted_hits_{};
  std::array<std::uint64_t, 3> weighted_best_{};
  std::vector<std::uint64_t> weights_;  // scratch
};

}  // namespace gleaner
