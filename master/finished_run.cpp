#include "master/finished_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "common/data/nearest_centroids.hpp"
#include "common/machine_facts.hpp"
#include "common/model/run_plan.hpp"
#include "master/shell/resume_point.hpp"
#include "storage/engine/rocks_store.hpp"

namespace gleaner {
namespace {

// Examples per second over all timed rounds; negative if there are none.
double speed_over(const std::vector<RoundRecord>& history, const RunPlan& plan) {
  double seconds = 0;
  BatchIndex before = 0;
  std::uint64_t examples = 0;
  for (const RoundRecord& record : history) {
    // Rounds are timed; a round's number of examples follows from the plan.
    std::uint64_t in_round = 0;
    for (BatchIndex batch = before; batch < record.batches; ++batch) {
      in_round += plan.examples_in(batch);
    }
    before = record.batches;
    if (record.examples_per_second <= 0) continue;
    seconds += static_cast<double>(in_round) / record.examples_per_second;
    examples += in_round;
  }
  return seconds > 0 ? static_cast<double>(examples) / seconds : -1;
}

// A normal distribution has 95 % within this number of standard deviations of its mean.
constexpr double kDeviations95 = 1.96;
// About ten seconds. A training example of the centroids waits for memory, and takes four times as
// long as a scored example (3,000,000 examples of 44 features, 670,091 labels).
constexpr double kAdditionsMax = 8e9;
constexpr double kCentroidAddition = 4;
// With fewer examples only an obvious difference would show.
constexpr double kComparedMin = 200;

// How many of `examples` can be compared; 0: too few to show anything.
std::size_t affordable(const NearestCentroids::Work& work, std::size_t examples) {
  const double left = kAdditionsMax - kCentroidAddition * work.of_centroids;
  if (left >= work.per_example * static_cast<double>(examples)) return examples;
  const double count = left / work.per_example;
  return count < kComparedMin ? 0 : static_cast<std::size_t>(count);
}

// See nearest_centroids.hpp.
std::uint64_t bytes_needed(const PackedDataset& train) {
  const PackedSummary summary = train.summary();
  return summary.file_bytes + 4 * summary.label_entries + std::uint64_t{12} * train.features();
}

}  // namespace

Result<std::unique_ptr<RunStore>> read_whole(const RunStore& run, const HeldFolder& folder) {
  if (auto in_place = folder.check(); !in_place) return in_place.error();
  auto files = open_rocks_store(folder.path(), OpenMode::kReadOnly);
  if (!files) return files.error();
  auto found = RunStore::open(std::move(*files));
  if (!found || (*found)->checkpoint() == run.checkpoint()) return found;
  return Error{ErrorCode::kCorrupt,
               fmt::format("the store {} is at checkpoint {}, and {} was written: files of it were "
                           "removed or replaced; restore a backup (gleaner restore --help)",
                           folder.path(), (*found)->checkpoint(), run.checkpoint())};
}

Result<RunFinished> finished_run(const RunStore& written, const HeldFolder& folder) {
  const auto whole = read_whole(written, folder);
  if (!whole) return whole.error();
  RunStore& run = **whole;
  const auto history = run.history();
  if (!history) return history.error();
  auto digest = run.checkpoint_digest();
  if (!digest) return digest.error();
  const RunPlan plan(run.identity().model);
  RunFinished finished;
  finished.digest = std::move(*digest);
  finished.checkpoint = run.checkpoint();
  finished.epochs = plan.epochs_done(finished.checkpoint);
  finished.examples_per_second = speed_over(*history, plan);
  for (const RoundRecord& record : *history) {
    if (record.checkpoint != finished.checkpoint) continue;
    finished.precision = record.precision;
    finished.evaluated = record.evaluated;
    finished.evaluated_all = record.evaluated_all;
  }
  const LearningSoFar learning = learning_so_far(*history, finished.checkpoint);
  finished.best_checkpoint = learning.best_checkpoint;
  finished.best_p_at_1 = learning.best_p_at_1;
  const bool is_early = finished.checkpoint < plan.round_count();
  if (is_early) finished.evaluations_since_best = learning.evaluations_since_best;
  return finished;
}

Result<CentroidComparison> compare_with_centroids(const PackedDataset& train,
                                                  std::span<const JudgedExample> judged,
                                                  std::uint64_t memory_bytes,
                                                  const std::atomic<bool>& is_stopping) {
  // Training examples are read in random order: from a disk that would take hours.
  if (bytes_needed(train) > memory_bytes / 2) {
    return Error{ErrorCode::kResources, "the training data fills this machine's memory"};
  }
  const auto centroids = NearestCentroids::open(train);
  if (!centroids) return centroids.error();
  std::vector<ExampleView> examples;
  for (const JudgedExample& each : judged) examples.push_back(each.example);
  examples.resize(affordable(centroids->work(examples), examples.size()));
  if (examples.empty()) {
    return Error{ErrorCode::kResources, "it would take too long on data of this size"};
  }
  const auto nearest = centroids->nearest(examples, 1, is_stopping);
  if (!nearest) return nearest.error();
  std::uint64_t network = 0;
  std::uint64_t centroid = 0;
  std::uint64_t only_one = 0;  // examples that only one of the two got right
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const bool is_hit = std::ranges::binary_search(examples[i].labels, (*nearest)[i].front());
    network += judged[i].is_hit;
    centroid += is_hit;
    only_one += is_hit != judged[i].is_hit;
  }
  const auto count = static_cast<double>(examples.size());
  CentroidComparison comparison;
  comparison.examples = examples.size();
  comparison.network_p_at_1 = static_cast<double>(network) / count;
  comparison.centroid_p_at_1 = static_cast<double>(centroid) / count;
  const double difference = comparison.centroid_p_at_1 - comparison.network_p_at_1;
  const double variance = static_cast<double>(only_one) / count - difference * difference;
  comparison.halfwidth = kDeviations95 * std::sqrt(std::max(0.0, variance) / count);
  return comparison;
}

void compare_with_centroids(RunFinished& finished, const PackedDataset& train,
                            std::span<const JudgedExample> judged, const ServingLoop& aside,
                            Console& console) {
  std::atomic<bool> is_stopping = false;
  std::optional<Error> skipped;
  run_while_serving(
      aside.io, aside.signals,
      [&] {
        const auto comparison =
            compare_with_centroids(train, judged, machine_facts().memory_bytes, is_stopping);
        if (comparison) finished.centroids = *comparison;
        if (!comparison) skipped = comparison.error();
      },
      [&is_stopping] { is_stopping = true; });
  if (!skipped) return;
  console.log(LogLevel::kInfo,
              "the network is not compared with the nearest label centroids: " + skipped->message);
}

}  // namespace gleaner
