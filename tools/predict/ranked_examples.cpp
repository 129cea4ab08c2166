#include "tools/predict/ranked_examples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "common/counter_random.hpp"
#include "common/result.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kBins = 15;
constexpr std::size_t kDraws = 1000;
constexpr std::size_t kTail = kDraws / 40;  // 2.5 %

// The pairs of one label, of one example, or all.
struct Group {
  std::uint64_t right = 0, predicted = 0, truths = 0;

  // A group without truths has no F1; it does not count.
  [[nodiscard]] double f1() const {
    return truths == 0 ? 0
                       : 2 * static_cast<double>(right) / static_cast<double>(predicted + truths);
  }
};

class Groups {
 public:
  Groups(std::span<const RankedExample> examples, Averaging averaging) : averaging_(averaging) {
    for (std::size_t i = 0; i < examples.size(); ++i) {
      for (const std::uint32_t label : examples[i].labels) {
        Group& group = of(i, label);
        counted_ += group.truths == 0 ? 1 : 0;
        ++group.truths;
      }
    }
  }

  void add(std::size_t example, std::uint32_t label, bool is_right) {
    Group& group = of(example, label);
    sum_ -= group.f1();
    ++group.predicted;
    group.right += is_right ? 1 : 0;
    sum_ += group.f1();
  }

  // Counts the pairs so far.
  [[nodiscard]] double f1() const { return sum_ / counted_; }

 private:
  Group& of(std::size_t example, std::uint32_t label) {
    return groups_[averaging_ == Averaging::kMicro   ? 0
                   : averaging_ == Averaging::kMacro ? label
                                                     : example];
  }

  const Averaging averaging_;
  std::unordered_map<std::uint64_t, Group> groups_;
  double sum_ = 0;
  double counted_ = 0;
};

}  // namespace

double f1_of(std::span<const RankedExample> examples, Averaging averaging, float logit_min) {
  Groups groups(examples, averaging);
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const auto& [labels, ranked] = examples[i];
    if (labels.empty()) continue;
    for (std::size_t k = 0; k < ranked.size() && ranked[k].logit >= logit_min; ++k) {
      groups.add(i, ranked[k].label, std::ranges::binary_search(labels, ranked[k].label));
    }
  }
  return groups.f1();
}

double probability_of(double logit) {
  return 1 / (1 + std::exp(-logit));
}

double calibration_error(std::span<const JudgedLogit> answers) {
  std::array<double, kBins> distance{};  // probabilities minus truths
  for (const auto& [logit, is_true] : answers) {
    const double probability = probability_of(logit);
    const auto bin = std::min(static_cast<std::size_t>(probability * kBins), kBins - 1);
    distance[bin] += probability - (is_true ? 1 : 0);
  }
  double sum = 0;
  for (const double one : distance) sum += std::abs(one);
  return sum / static_cast<double>(answers.size());
}

float best_threshold(std::span<const RankedExample> examples, Averaging averaging) {
  struct Pair {
    ScoredLabel scored;
    std::size_t example;
  };

  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (examples[i].labels.empty()) continue;
    for (const ScoredLabel& scored : examples[i].ranked) pairs.push_back({scored, i});
  }
  std::ranges::stable_sort(pairs, std::ranges::greater(),
                           [](const Pair& pair) { return pair.scored.logit; });
  Groups groups(examples, averaging);
  float best = std::numeric_limits<float>::infinity();
  double highest = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [scored, example] = pairs[i];
    groups.add(example, scored.label,
               std::ranges::binary_search(examples[example].labels, scored.label));
    const float next = i + 1 < pairs.size() ? pairs[i + 1].scored.logit : scored.logit;
    const bool is_last_of_logit = next != scored.logit || i + 1 == pairs.size();
    if (!is_last_of_logit || groups.f1() <= highest) continue;
    highest = groups.f1();
    best = next + (scored.logit - next) / 2;
    if (best <= next) best = scored.logit;  // nothing lies between
  }
  return best;
}

void FigureSums::add(const InversePropensities& propensities, const FrequencyClasses& classes,
                     std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked) {
  Quality one(propensities, classes);
  one.add(labels, ranked);
  std::vector<double> weights;
  for (const std::uint32_t label : labels) {
    weights.push_back(static_cast<double>(propensities.of(label)));
  }
  std::ranges::sort(weights, std::ranges::greater());
  Row& row = rows_.emplace_back();
  row.wholes.fill(1);
  for (std::size_t d = 0; d < Quality::kDepths.size(); ++d) {
    const auto best = std::min<std::size_t>(Quality::kDepths[d], weights.size());
    const double whole =
        std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(best), 0.0);
    row.parts[d] = one.precision().p[d];
    row.parts[3 + d] = one.precision().psp[d] * whole;
    row.wholes[3 + d] = whole;
  }
  row.parts[6] = one.ndcg(1);
  row.parts[7] = one.ndcg(2);
  row.parts[8] = one.recall(2);
}

void FigureSums::add_to(Row& sum, const Row& row) {
  for (std::size_t f = 0; f < kNames.size(); ++f) {
    sum.parts[f] += row.parts[f];
    sum.wholes[f] += row.wholes[f];
  }
}

FigureSums::Values FigureSums::quotients(const Row& sum) {
  Values values{};
  for (std::size_t f = 0; f < kNames.size(); ++f) values[f] = sum.parts[f] / sum.wholes[f];
  return values;
}

FigureSums::Values FigureSums::values() const {
  Row sum;
  for (const Row& row : rows_) add_to(sum, row);
  return quotients(sum);
}

std::array<FigureSums::Interval, FigureSums::kNames.size()> FigureSums::intervals(
    const FigureSums* other) const {
  GLEANER_CHECK(other == nullptr || other->examples() == examples());
  std::array<std::vector<double>, kNames.size()> drawn;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    Rng rng(1, Purpose::kSplit, draw);
    Row sum, others;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::size_t row = rng.next_below(rows_.size());
      add_to(sum, rows_[row]);
      if (other != nullptr) add_to(others, other->rows_[row]);
    }
    const Values values = quotients(sum);
    const Values of_other = other != nullptr ? quotients(others) : Values{};
    for (std::size_t f = 0; f < kNames.size(); ++f) drawn[f].push_back(values[f] - of_other[f]);
  }
  std::array<Interval, kNames.size()> intervals;
  for (std::size_t f = 0; f < kNames.size(); ++f) {
    std::ranges::sort(drawn[f]);
    intervals[f] = {drawn[f][kTail], drawn[f][kDraws - 1 - kTail]};
  }
  return intervals;
}

}  // namespace gleaner
