#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "common/counter_random.hpp"
#include "common/model/precision.hpp"

namespace gleaner {
namespace {

using Labels = std::vector<std::uint32_t>;

struct Case {
  Labels labels;
  Labels ranked;
};

// Straight from the definitions, one example and one label at a time, in double.
struct SlowMetrics {
  double precision = 0;
  double scored = 0;
};

SlowMetrics slow_metrics(const std::vector<Case>& cases, const Labels& counts, double points,
                         double a, double b, std::size_t k) {
  const auto inverse = [&](std::uint32_t label) {
    const double count = label < counts.size() ? counts[label] : 0.0;
    const double c = (std::log(points) - 1) * std::exp(a * std::log(b + 1));
    return 1 + c * std::exp(-a * std::log(count + b));
  };
  double hits = 0;
  double examples = 0;
  double scored = 0;
  double best = 0;
  for (const Case& c : cases) {
    if (c.labels.empty()) continue;
    examples += 1;
    const std::set<std::uint32_t> truth(c.labels.begin(), c.labels.end());
    for (std::size_t i = 0; i < std::min(k, c.ranked.size()); ++i) {
      if (truth.count(c.ranked[i]) == 0) continue;
      hits += 1;
      scored += inverse(c.ranked[i]);
    }
    std::multimap<double, std::uint32_t> weights;
    for (const std::uint32_t label : truth) weights.emplace(-inverse(label), label);
    std::size_t taken = 0;
    for (const auto& [weight, label] : weights) {
      if (taken++ == k) break;
      best -= weight;
    }
  }
  return {hits / (static_cast<double>(k) * examples), scored / best};
}

std::vector<Case> random_cases(std::size_t count, std::uint32_t labels) {
  Rng rng(5, Purpose::kTest);
  std::vector<Case> cases(count);
  for (Case& c : cases) {
    std::set<std::uint32_t> truth;
    for (std::uint64_t n = rng.next_below(9); n > 0; --n) {
      truth.insert(static_cast<std::uint32_t>(rng.next_below(labels)));
    }
    c.labels.assign(truth.begin(), truth.end());
    std::set<std::uint32_t> used;
    for (std::uint64_t n = rng.next_below(8); n > 0; --n) {
      // Half of the guesses are right, so that every rank has hits.
      const std::uint32_t guess = c.labels.empty() || rng.chance(1, 2)
                                      ? static_cast<std::uint32_t>(rng.next_below(labels))
                                      : c.labels[rng.next_below(c.labels.size())];
      if (used.insert(guess).second) c.ranked.push_back(guess);
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("metrics: agree with the definitions written out slowly", "[metrics]") {
  Rng rng(6, Purpose::kTest);
  Labels counts(60);
  for (auto& count : counts) count = static_cast<std::uint32_t>(rng.next_below(900));
  const std::vector<Case> cases = random_cases(700, 64);  // four labels unknown to training
  for (const PropensityModel model : {PropensityModel{}, PropensityModel{0.5, 0.4}}) {
    const InversePropensities propensities(counts, 1000, model);
    MetricSums sums(propensities);
    for (const Case& c : cases) sums.add(c.labels, c.ranked);
    const Precision precision = sums.precision();
    REQUIRE(sums.evaluated() < 700);
    for (std::size_t d = 0; d < Precision::kDepths.size(); ++d) {
      const SlowMetrics slow =
          slow_metrics(cases, counts, 1000, model.a, model.b, Precision::kDepths[d]);
      REQUIRE(precision.p[d] == Approx(slow.precision).epsilon(1e-12));
      REQUIRE(precision.psp[d] == Approx(slow.scored).epsilon(1e-6));
      REQUIRE(precision.p[d] > 0.05);
    }
  }
}

TEST_CASE("metrics: the order of the examples leaves no trace", "[metrics]") {
  const Labels counts = {900, 30, 2, 0, 11, 400};
  const InversePropensities propensities(counts, 1000);
  std::vector<Case> cases = random_cases(300, 6);
  MetricSums forwards(propensities);
  for (const Case& c : cases) forwards.add(c.labels, c.ranked);
  std::reverse(cases.begin(), cases.end());
  MetricSums backwards(propensities);
  for (const Case& c : cases) backwards.add(c.labels, c.ranked);
  REQUIRE(forwards.precision() == backwards.precision());
}

TEST_CASE("metrics: points without labels are skipped, and nothing evaluated is negative",
          "[metrics]") {
  const Labels counts = {1, 1};
  const InversePropensities propensities(counts, 2);
  MetricSums sums(propensities);
  sums.add({}, Labels{0, 1});
  REQUIRE(sums.evaluated() == 0);
  REQUIRE(sums.precision().p[0] < 0);
  REQUIRE(sums.precision().psp[2] < 0);
  sums.add(Labels{1}, Labels{1, 0});
  REQUIRE(sums.evaluated() == 1);
  REQUIRE(sums.precision().p[0] == 1.0);
  REQUIRE(sums.precision().p[2] == Approx(0.2));
  REQUIRE(sums.precision().psp[2] == 1.0);
}

TEST_CASE("metrics: a hit on a rare label weighs more than on a frequent one", "[metrics]") {
  const Labels counts = {5000, 1};
  const InversePropensities propensities(counts, 10'000);
  REQUIRE(propensities.of(1) > 5 * propensities.of(0));
  REQUIRE(propensities.of(0) >= std::uint64_t{1} << 24);
  REQUIRE(propensities.of(7) > propensities.of(1));
}

TEST_CASE("merge top k: lists merge by descending score, then ascending neuron", "[metrics]") {
  const std::vector<ScoredNeuron> a = {{4, 2.0F}, {1, 1.0F}, {9, -3.0F}};
  const std::vector<ScoredNeuron> b = {{3, 2.0F}, {7, 1.5F}};
  const std::vector<ScoredNeuron> c;
  const std::vector<std::span<const ScoredNeuron>> lists = {a, b, c};
  const std::vector<ScoredNeuron> best = {{3, 2.0F}, {4, 2.0F}, {7, 1.5F}, {1, 1.0F}, {9, -3.0F}};
  REQUIRE(merge_top_k(lists, 9) == best);
  REQUIRE(merge_top_k(lists, 5) == best);
  REQUIRE(merge_top_k(lists, 3) == std::vector<ScoredNeuron>(best.begin(), best.begin() + 3));
  REQUIRE(merge_top_k(lists, 0).empty());
  REQUIRE(merge_top_k({}, 5).empty());
}

TEST_CASE("merge top k: merging parts gives what sorting everything gives", "[metrics]") {
  Rng rng(7, Purpose::kTest);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<ScoredNeuron>> parts(1 + rng.next_below(6));
    std::vector<ScoredNeuron> all;
    for (std::uint32_t neuron = 0; neuron < 40; ++neuron) {
      // Few distinct scores: many ties.
      const ScoredNeuron scored{neuron, static_cast<float>(rng.next_below(8))};
      parts[rng.next_below(parts.size())].push_back(scored);
      all.push_back(scored);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& x, const auto& y) { return x.score > y.score; });
    all.resize(5);
    std::vector<std::vector<ScoredNeuron>> tops;
    for (const auto& part : parts) {
      const std::vector<std::span<const ScoredNeuron>> one = {part};
      tops.push_back(merge_top_k(one, 5));
    }
    const std::vector<std::span<const ScoredNeuron>> lists(tops.begin(), tops.end());
    REQUIRE(merge_top_k(lists, 5) == all);
  }
}

TEST_CASE("metrics: the interval of a sample's precision narrows to nothing at the whole set",
          "[metrics]") {
  // 1.96 * sqrt(0.25 / 400), of a set so large that the sample takes nothing of it.
  REQUIRE(precision_halfwidth(0.5, 400, 400, std::uint64_t{1} << 40) == Approx(0.049));
  // Three quarters of the set: half as wide.
  REQUIRE(precision_halfwidth(0.5, 300, 300, 400) ==
          Approx(1.96 * std::sqrt(0.25 / 300 * 100 / 399)));
  REQUIRE(precision_halfwidth(0.5, 399, 399, 400) > 0);
  REQUIRE(precision_halfwidth(0, 10, 10, 400) == 0);
  REQUIRE(precision_halfwidth(0.5, 390, 400, 400) < 0);
  REQUIRE(precision_halfwidth(-1, 0, 10, 400) < 0);
}

}  // namespace gleaner
