#include "tests/bench/evaluation.hpp"

#include <algorithm>
#include <vector>

namespace gleaner {
namespace {

constexpr std::uint64_t kEvaluatedAtOnce = 256;
constexpr std::uint32_t kTopK = 5;

}  // namespace

Result<HeldOutPrecision> evaluate(OneProcessRun& run, std::uint64_t train_points,
                                  const PackedDataset& test, std::uint64_t points_max) {
  const InversePropensities propensities(run.label_counts(), train_points);
  MetricSums sums(propensities);
  BucketSums buckets(run.label_counts(), propensities);
  const std::uint64_t points = std::min(points_max, test.points());
  for (std::uint64_t begin = 0; begin < points; begin += kEvaluatedAtOnce) {
    std::vector<ExampleView> examples;
    for (std::uint64_t p = begin; p < std::min(begin + kEvaluatedAtOnce, points); ++p) {
      examples.push_back(test.example(p));
    }
    const Result<EvalResult> result = run.score(examples, kTopK);
    if (!result) return result.error();
    for (std::size_t e = 0; e < examples.size(); ++e) {
      std::vector<std::uint32_t> ranked;
      for (std::uint32_t k = 0; k < result->top_k; ++k) {
        ranked.push_back(run.map().label_of_neuron(result->best[e * result->top_k + k].neuron));
      }
      sums.add(examples[e].labels, ranked);
      buckets.add(examples[e].labels, ranked);
    }
  }
  return HeldOutPrecision{sums.evaluated(), sums.precision(), buckets.precision()};
}

OneProcessRun run_on(const ModelConfig& config, const PackedDataset& train, ThreadPool& pool) {
  return {config, [&train](std::uint64_t point) { return train.example(point); },
          count_labels(train), pool};
}

}  // namespace gleaner
