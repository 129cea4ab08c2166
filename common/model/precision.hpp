// How good predictions are: precision@k and propensity-scored precision@k (Jain, Prabhu, Varma:
// Extreme Multi-label Loss Functions, KDD 2016), as the evaluation scripts of the Extreme
// Classification Repository compute them. Sums are integers, so the result depends neither on the
// order of the examples nor on how they were divided. Plain values: one thread at a time.
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

// Fractions between 0 and 1 over the examples that were scored; negative where nothing was
// measured.
struct Precision {
  static constexpr std::array<std::uint32_t, 3> kDepths = {1, 3, 5};

  std::array<double, 3> p = {-1, -1, -1};    // precision@k for each depth k
  std::array<double, 3> psp = {-1, -1, -1};  // propensity-scored precision@k for each depth k
  double p_at_1_halfwidth = -1;  // of the 95 % interval of p[0]; negative when all were scored

  [[nodiscard]] double at_1() const { return p[0]; }

  [[nodiscard]] bool is_measured() const { return at_1() >= 0; }

  friend bool operator==(const Precision&, const Precision&) = default;
};

// Calls `visit(name, title, value)` for the figure at each depth: its name for programs, in JSON
// and in stores, and its title for people.
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

// The best `top_k` of several lists of distinct neurons: by descending score, then ascending
// neuron. Fewer when the lists hold fewer. Scores are numbers (the codec refuses NaN).
std::vector<ScoredNeuron> merge_top_k(std::span<const std::span<const ScoredNeuron>> lists,
                                      std::uint32_t top_k);

// How likely a true label is to have been recorded at all, from how often training points bear it:
// 1 / p = 1 + C (count + B)^-A with C = (ln points - 1) (B + 1)^A. The repository's A and B are
// 0.55 and 1.5 unless it states others for a data set (Wikipedia: 0.5, 0.4; Amazon: 0.6, 2.6).
// Both are positive.
struct PropensityModel {
  double a = 0.55;
  double b = 1.5;
};

// 1 / p of every label, in multiples of 2^-24. Any thread may read.
class InversePropensities {
 public:
  // `label_counts` are those of the training file, of `points` points.
  InversePropensities(std::span<const std::uint32_t> label_counts, std::uint64_t points,
                      const PropensityModel& model = {});

  // Labels that the training file does not know count as never seen.
  [[nodiscard]] std::uint64_t of(std::uint32_t label) const {
    return label < scaled_.size() ? scaled_[label] : unseen_;
  }

 private:
  std::vector<std::uint64_t> scaled_;
  std::uint64_t unseen_ = 0;
};

// Half the width of the 95 % interval of a mean precision@1 `precision` of `evaluated` examples
// that stands for `total` examples of which `scored` were drawn: the normal approximation, times
// the correction for drawing a good part of a finite set. Negative when there is nothing to doubt,
// since all were scored, or nothing was evaluated.
double precision_halfwidth(double precision, std::uint64_t evaluated, std::uint64_t scored,
                           std::uint64_t total);

// Adds up examples. Points without labels are skipped: no prediction can be right for them.
// precision@k divides by k even where an example has fewer labels; PSP@k is the sum of what was
// hit over the sum of what the best possible prediction would hit.
class MetricSums {
 public:
  // `propensities` outlives this.
  explicit MetricSums(const InversePropensities& propensities) : propensities_(propensities) {}

  // `labels`: the true ones, ascending. `ranked`: predicted labels, best first, distinct; entries
  // after the fifth do not count and missing ones are misses.
  void add(std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked);

  // Examples that count: those with a label.
  [[nodiscard]] std::uint64_t evaluated() const { return evaluated_; }

  // Not measured when no example counts. How sure it is of a sample is not said.
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
