#include "volunteer/example_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/limits.hpp"

namespace gleaner::volunteer {
namespace {

// Enough to keep a link busy while answers are written to disk; each is bounded by the master.
constexpr std::size_t kExamplesOut = 4096;
constexpr std::size_t kExamplesPerRequest = 512;
static_assert(kExamplesPerRequest <= kPointsPerRequestMax);

std::uint64_t bytes_of(std::size_t features) {
  return features * (sizeof(std::uint32_t) + sizeof(float));
}

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
  // Among the data of a run, the part to be trained is by far the larger.
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

void ExampleStore::begin(std::uint64_t train_fingerprint, std::uint64_t test_fingerprint,
                         std::uint64_t seed) {
  rename(PointSet::kTraining, fmt::format("train-{:016x}", train_fingerprint));
  rename(PointSet::kTestSet, fmt::format("test-{:016x}-{:016x}", test_fingerprint, seed));
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

bool ExampleStore::has(PointSet set, std::uint64_t point) {
  return cache(set).contains(point) || loose_.contains({set, point});
}

bool ExampleStore::has_all(PointSet set, std::span<const std::uint64_t> points) {
  return std::all_of(points.begin(), points.end(),
                     [&](std::uint64_t point) { return has(set, point); });
}

std::optional<PointsRequest> ExampleStore::request(PointSet set,
                                                   std::span<const std::uint64_t> points) {
  PointsRequest request{set, {}};
  for (const std::uint64_t point : points) {
    if (asked_.size() >= kExamplesOut || request.points.size() >= kExamplesPerRequest) break;
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
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    const std::uint64_t point = points.points[i];
    const std::size_t begin = points.offsets[i];
    const std::size_t count = points.offsets[i + 1] - begin;
    const auto features = std::span(points.features).subspan(begin, count);
    const auto values = std::span(points.values).subspan(begin, count);
    asked_.erase({points.set, point});
    if (cache(points.set).add(point, features, values)) continue;
    loose_[{points.set, point}] = {{features.begin(), features.end()},
                                   {values.begin(), values.end()}};
    loose_bytes_ += bytes_of(count);
  }
  return {};
}

std::optional<ExampleBatch> ExampleStore::read(PointSet set,
                                               std::span<const std::uint64_t> points) {
  ExampleBatch batch;
  ExampleFeatures& lists = batch.lists;
  std::vector<std::size_t> ends;
  for (const std::uint64_t point : points) {
    if (!cache(set).read(point, lists)) {
      const auto loose = loose_.find({set, point});
      if (loose == loose_.end()) return std::nullopt;
      const ExampleFeatures& found = loose->second;
      lists.features.insert(lists.features.end(), found.features.begin(), found.features.end());
      lists.values.insert(lists.values.end(), found.values.begin(), found.values.end());
    }
    ends.push_back(lists.features.size());
  }
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    batch.examples.push_back({{},
                              std::span(lists.features).subspan(begin, end - begin),
                              std::span(lists.values).subspan(begin, end - begin)});
    begin = end;
  }
  return batch;
}

void ExampleStore::release(PointSet set, std::span<const std::uint64_t> points) {
  for (const std::uint64_t point : points) {
    const auto loose = loose_.find({set, point});
    if (loose == loose_.end()) continue;
    loose_bytes_ -= bytes_of(loose->second.features.size());
    loose_.erase(loose);
  }
}

}  // namespace gleaner::volunteer
