#include "volunteer/example_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/limits.hpp"
#include "common/model/run_plan.hpp"

namespace gleaner::volunteer {
namespace {

// Keeps a link busy while answers are written to disk. The master bounds each request.
constexpr std::size_t kExamplesOut = 4096;
constexpr std::size_t kExamplesPerRequest = 512;
static_assert(kExamplesPerRequest <= kPointsPerRequestMax);

std::uint64_t bytes_of(const ExampleLists& lists) {
  return lists.features.size() * (sizeof(std::uint32_t) + sizeof(float)) +
         lists.labels.size() * sizeof(std::uint32_t);
}

template <typename T>
void append(std::vector<T>& target, std::span<const T> more) {
  target.insert(target.end(), more.begin(), more.end());
}

// Views of examples whose lists lie one after the other.
class Cutter {
 public:
  // The next example's lists end where `lists` do now.
  void cut(const ExampleLists& lists) {
    features_.push_back(lists.features.size());
    labels_.push_back(lists.labels.size());
  }

  // The views of all examples. `lists` must not move any more.
  [[nodiscard]] std::vector<ExampleView> views(const ExampleLists& lists) const {
    std::vector<ExampleView> views;
    std::size_t feature = 0;
    std::size_t label = 0;
    for (std::size_t i = 0; i < features_.size(); ++i) {
      const std::size_t features = features_[i] - feature;
      views.push_back({std::span(lists.labels).subspan(label, labels_[i] - label),
                       std::span(lists.features).subspan(feature, features),
                       std::span(lists.values).subspan(feature, features)});
      feature = features_[i];
      label = labels_[i];
    }
    return views;
  }

 private:
  std::vector<std::size_t> features_;
  std::vector<std::size_t> labels_;
};

}  // namespace

std::uint64_t ExampleStore::memory_bytes() const {
  std::uint64_t bytes = loose_bytes_;
  for (const auto& cache : caches_) {
    if (cache != nullptr && cache->is_in_memory()) bytes += cache->bytes();
  }
  return bytes;
}

ExampleCache& ExampleStore::cache(PointSet set) {
  const auto index = static_cast<std::size_t>(set);
  std::unique_ptr<ExampleCache>& cache = caches_[index];
  if (cache != nullptr) return *cache;
  // A run's training set is much larger than its test set.
  const auto share = [set](std::uint64_t bytes) {
    return set == PointSet::kTraining ? bytes / 8 * 7 : bytes / 8;
  };
  if (!options_.folder.empty()) {
    const std::string file = options_.folder + "/" + names_[index] + ".points";
    ExampleCache::make_room(file, share(options_.bytes_max), options_.bytes_max);
    cache = std::make_unique<ExampleCache>(file, share(options_.bytes_max));
    if (!cache->is_in_memory()) return *cache;
  }
  cache = std::make_unique<ExampleCache>(std::string(), share(options_.memory_bytes_max));
  return *cache;
}

void ExampleStore::rename(PointSet set, std::string name) {
  const auto index = static_cast<std::size_t>(set);
  if (names_[index] != name) caches_[index].reset();
  names_[index] = std::move(name);
}

void ExampleStore::begin(const ModelConfig& model, std::uint64_t test_fingerprint) {
  map_.reset();
  if (is_wide(model)) map_.emplace(model);
  // Neurons of labels depend on the seed; examples without labels do not.
  rename(PointSet::kTraining,
         map_ ? fmt::format("train-{:016x}-{:016x}", model.data_fingerprint, model.seed)
              : fmt::format("train-{:016x}", model.data_fingerprint));
  rename(PointSet::kTestSet, fmt::format("test-{:016x}-{:016x}", test_fingerprint, model.seed));
  if (options_.own.test != nullptr) {
    test_order_.emplace(test_order(options_.own.test->points(), model.seed));
  }
  loose_.clear();
  loose_bytes_ = 0;
  asked_.clear();
}

void ExampleStore::clear() {
  for (auto& cache : caches_) cache.reset();
  loose_.clear();
  loose_bytes_ = 0;
  asked_.clear();
}

bool ExampleStore::has_asked_enough() const {
  return asked_.size() >= kExamplesOut;
}

bool ExampleStore::has(PointSet set, std::uint64_t point) {
  return is_own(set) || cache(set).contains(point) || loose_.contains({set, point});
}

bool ExampleStore::has_all(PointSet set, std::span<const std::uint64_t> points) {
  return is_own(set) || std::all_of(points.begin(), points.end(),
                                    [&](std::uint64_t point) { return has(set, point); });
}

std::optional<PointsRequest> ExampleStore::request(PointSet set,
                                                   std::span<const std::uint64_t> points) {
  PointsRequest request{set, {}};
  for (const std::uint64_t point : points) {
    if (has_asked_enough() || request.points.size() >= kExamplesPerRequest) break;
    if (asked_.contains({set, point}) || has(set, point)) continue;
    asked_.insert({set, point});
    request.points.push_back(point);
  }
  if (request.points.empty()) return std::nullopt;
  std::sort(request.points.begin(), request.points.end());
  return request;
}

Result<void> ExampleStore::add(const Points& points) {
  for (const std::uint64_t point : points.points) {
    if (asked_.contains({points.set, point})) continue;
    return Error{ErrorCode::kProtocol, fmt::format("the master sent point {} unasked", point)};
  }
  const bool has_labels = map_.has_value() && points.set == PointSet::kTraining;
  if (!points.points.empty() && has_labels != (points.labels.offsets.size() > 1)) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("the master sent point {} {} labels", points.points.front(),
                             has_labels ? "without" : "with")};
  }
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    const std::uint64_t point = points.points[i];
    const std::size_t begin = points.offsets[i];
    const std::size_t count = points.offsets[i + 1] - begin;
    const auto features = std::span(points.features).subspan(begin, count);
    const auto values = std::span(points.values).subspan(begin, count);
    std::span<const std::uint32_t> labels;
    if (has_labels) {
      const std::size_t first = points.labels.offsets[i];
      labels =
          std::span(points.labels.neurons).subspan(first, points.labels.offsets[i + 1] - first);
    }
    asked_.erase({points.set, point});
    if (cache(points.set).add(point, features, values, labels)) continue;
    ExampleLists& lists = loose_[{points.set, point}];
    lists = {{features.begin(), features.end()},
             {values.begin(), values.end()},
             {labels.begin(), labels.end()}};
    loose_bytes_ += bytes_of(lists);
  }
  return {};
}

std::optional<ExampleBatch> ExampleStore::read_own(PointSet set,
                                                   std::span<const std::uint64_t> points) const {
  const bool is_training = set == PointSet::kTraining;
  const PackedDataset& own = is_training ? *options_.own.train : *options_.own.test;
  ExampleBatch batch;
  Cutter cutter;
  for (const std::uint64_t point : points) {
    if (point >= own.points()) return std::nullopt;
    const ExampleView example = own.example(is_training ? point : test_order_->forward(point));
    batch.examples.push_back(example);
    const std::size_t first = batch.lists.labels.size();
    for (const std::uint32_t label : example.labels) {
      if (map_ && is_training) batch.lists.labels.push_back(map_->neuron_of_label(label));
    }
    std::sort(batch.lists.labels.begin() + static_cast<std::ptrdiff_t>(first),
              batch.lists.labels.end());
    cutter.cut(batch.lists);
  }
  const std::vector<ExampleView> labels = cutter.views(batch.lists);
  for (std::size_t i = 0; i < labels.size(); ++i) batch.examples[i].labels = labels[i].labels;
  return batch;
}

std::optional<ExampleBatch> ExampleStore::read(PointSet set,
                                               std::span<const std::uint64_t> points) {
  if (is_own(set)) return read_own(set, points);
  ExampleBatch batch;
  ExampleLists& lists = batch.lists;
  Cutter cutter;
  for (const std::uint64_t point : points) {
    if (!cache(set).read(point, lists)) {
      const auto loose = loose_.find({set, point});
      if (loose == loose_.end()) return std::nullopt;
      append<std::uint32_t>(lists.features, loose->second.features);
      append<float>(lists.values, loose->second.values);
      append<std::uint32_t>(lists.labels, loose->second.labels);
    }
    cutter.cut(lists);
  }
  batch.examples = cutter.views(lists);
  return batch;
}

void ExampleStore::release(PointSet set, std::span<const std::uint64_t> points) {
  for (const std::uint64_t point : points) {
    const auto loose = loose_.find({set, point});
    if (loose == loose_.end()) continue;
    loose_bytes_ -= bytes_of(loose->second);
    loose_.erase(loose);
  }
}

}  // namespace gleaner::volunteer
