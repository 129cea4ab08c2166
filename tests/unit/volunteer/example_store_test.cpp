#include "volunteer/example_store.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "common/limits.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner::volunteer {
namespace {

namespace fs = std::filesystem;
using gleaner::test::TemporaryFolder;

constexpr std::uint64_t kTrain = 0xabc;
constexpr std::uint64_t kTest = 0xdef;
constexpr std::uint64_t kSeed = 3;
constexpr PointSet kTraining = PointSet::kTraining;

// Points without a place to be kept.
ExampleStoreOptions no_room() {
  return {"", 0, 0, {}};
}

// A run with a hidden layer, whose points have no labels.
ModelConfig model_of(std::uint64_t train, std::uint64_t seed) {
  ModelConfig model;
  model.data_fingerprint = train;
  model.seed = seed;
  model.labels = 100;
  return model;
}

ExampleStore store_of(ExampleStoreOptions options = {}) {
  ExampleStore store(std::move(options));
  store.begin(model_of(kTrain, kSeed), kTest);
  return store;
}

std::vector<std::uint64_t> first(std::uint64_t count, std::uint64_t begin = 0) {
  std::vector<std::uint64_t> points(count);
  std::iota(points.begin(), points.end(), begin);
  return points;
}

// Two features that tell one point of a set from another; point 7 has none.
Points answer(PointSet set, const std::vector<std::uint64_t>& points) {
  Points answer{set, points, {0}, {}, {}, {{0}, {}}};
  for (const std::uint64_t point : points) {
    if (point != 7) {
      const auto feature = static_cast<std::uint32_t>(10 * point + static_cast<unsigned>(set));
      answer.features.insert(answer.features.end(), {feature, feature + 5});
      answer.values.insert(answer.values.end(), {0.5F, static_cast<float>(point)});
    }
    answer.offsets.push_back(static_cast<std::uint32_t>(answer.features.size()));
  }
  return answer;
}

// Asks for and takes all that is missing; returns how many points that were.
std::size_t fetch(ExampleStore& store, PointSet set, const std::vector<std::uint64_t>& points) {
  std::size_t count = 0;
  while (const auto request = store.request(set, points)) {
    REQUIRE(request->set == set);
    REQUIRE(store.add(answer(set, request->points)).ok());
    count += request->points.size();
  }
  return count;
}

void require_read(ExampleStore& store, PointSet set, const std::vector<std::uint64_t>& points) {
  REQUIRE(store.has_all(set, points));
  const std::optional<ExampleBatch> batch = store.read(set, points);
  REQUIRE(batch);
  REQUIRE(batch->examples.size() == points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Points expected = answer(set, {points[i]});
    const ExampleView& example = batch->examples[i];
    REQUIRE(example.labels.empty());
    REQUIRE(std::equal(example.features.begin(), example.features.end(), expected.features.begin(),
                       expected.features.end()));
    REQUIRE(std::equal(example.values.begin(), example.values.end(), expected.values.begin(),
                       expected.values.end()));
  }
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

}  // namespace

TEST_CASE("example store: what is missing is asked for once, ascending, in bounded requests",
          "[example_store]") {
  ExampleStore store = store_of();
  std::vector<std::uint64_t> wanted = first(6000);
  std::reverse(wanted.begin(), wanted.end());
  std::set<std::uint64_t> asked;
  std::vector<PointsRequest> requests;
  while (const auto request = store.request(kTraining, wanted)) {
    REQUIRE(request->points.size() <= kPointsPerRequestMax);
    REQUIRE(std::is_sorted(request->points.begin(), request->points.end()));
    for (const std::uint64_t point : request->points) REQUIRE(asked.insert(point).second);
    requests.push_back(*request);
  }
  REQUIRE(requests.size() > 1);
  REQUIRE(asked.size() == 4096);  // the rest when these are here
  REQUIRE_FALSE(store.request(PointSet::kTestSet, first(1)));
  REQUIRE_FALSE(store.has_all(kTraining, wanted));
  REQUIRE_FALSE(store.read(kTraining, wanted));
  REQUIRE(store.add(answer(kTraining, requests[0].points)).ok());
  const auto next = store.request(kTraining, wanted);
  REQUIRE(next);
  REQUIRE(next->points.size() == requests[0].points.size());
  for (std::size_t i = 1; i < requests.size(); ++i) {
    REQUIRE(store.add(answer(kTraining, requests[i].points)).ok());
  }
  REQUIRE(store.add(answer(kTraining, next->points)).ok());
  fetch(store, kTraining, wanted);
  require_read(store, kTraining, wanted);
  REQUIRE_FALSE(store.request(kTraining, wanted));
}

TEST_CASE("example store: an answer may come in several parts", "[example_store]") {
  ExampleStore store = store_of();
  const auto request = store.request(kTraining, first(10));
  REQUIRE(request->points == first(10));
  REQUIRE(store.add(answer(kTraining, {0, 3, 4})).ok());
  require_read(store, kTraining, {4, 0});
  REQUIRE_FALSE(store.has_all(kTraining, {{3, 5}}));
  REQUIRE(store.add(answer(kTraining, {1, 2, 5, 6, 7, 8, 9})).ok());
  require_read(store, kTraining, {9, 7, 0, 5});
}

TEST_CASE("example store: points that were not asked for are refused, and none of them is kept",
          "[example_store]") {
  ExampleStore store = store_of();
  REQUIRE(store.request(kTraining, first(3)));
  const auto refused = [&](PointSet set, const std::vector<std::uint64_t>& points) {
    const Result<void> added = store.add(answer(set, points));
    REQUIRE_FALSE(added.ok());
    REQUIRE(added.error().code == ErrorCode::kProtocol);
    REQUIRE_THAT(added.error().message, Catch::Matchers::Contains("unasked"));
  };
  refused(kTraining, {5});
  refused(kTraining, {0, 5});
  refused(PointSet::kTestSet, {1});  // of the other set
  REQUIRE_FALSE(store.has_all(kTraining, first(1)));
  REQUIRE(store.add(answer(kTraining, first(3))).ok());
  refused(kTraining, {1});  // a second time
  store.begin(model_of(kTrain, kSeed), kTest);
  REQUIRE(store.request(kTraining, {{4}}));
  store.begin(model_of(kTrain, kSeed), kTest);
  refused(kTraining, {4});  // asked for on an earlier connection
}

TEST_CASE("example store: the sets do not mix", "[example_store]") {
  ExampleStore store = store_of();
  REQUIRE(fetch(store, kTraining, first(5)) == 5);
  REQUIRE(fetch(store, PointSet::kTestSet, first(5)) == 5);
  require_read(store, kTraining, first(5));
  require_read(store, PointSet::kTestSet, first(5));
}

TEST_CASE("example store: points for which there is no room stay until they are released",
          "[example_store]") {
  ExampleStore store = store_of(no_room());
  REQUIRE(fetch(store, kTraining, first(20)) == 20);
  require_read(store, kTraining, first(20));
  const std::uint64_t held = store.memory_bytes();
  REQUIRE(held == 19 * 2 * 8);
  store.release(PointSet::kTestSet, first(20));
  store.release(kTraining, first(5));
  store.release(kTraining, first(5));
  REQUIRE(store.memory_bytes() == held - 5 * 2 * 8);
  REQUIRE_FALSE(store.has_all(kTraining, first(1)));
  require_read(store, kTraining, first(15, 5));
  // Examples that are needed again are requested again.
  REQUIRE(fetch(store, kTraining, first(20)) == 5);
  store.release(kTraining, first(20));
  REQUIRE(store.memory_bytes() == 0);
}

TEST_CASE("example store: what fits is kept, and memory is bounded by it", "[example_store]") {
  // Room for 7/8 of it: 43 points of 40 bytes behind a header of 16.
  constexpr std::uint64_t kBytes = 1984;
  ExampleStore store = store_of({"", kBytes, kBytes, {}});
  REQUIRE(store.memory_bytes() == 0);  // nothing has been needed
  REQUIRE(fetch(store, kTraining, first(60, 100)) == 60);
  require_read(store, kTraining, first(60, 100));
  REQUIRE(store.memory_bytes() == 16 + 43 * 40 + 17 * 16);
  store.release(kTraining, first(60, 100));
  REQUIRE(store.memory_bytes() == 16 + 43 * 40);
  require_read(store, kTraining, first(43, 100));
  REQUIRE(fetch(store, kTraining, first(60, 100)) == 17);
}

TEST_CASE("example store: after a restart nothing is fetched again", "[example_store]") {
  const TemporaryFolder folder;
  const ExampleStoreOptions options{folder.path() + "/cache", 1 << 20, 1 << 20, {}};
  {
    ExampleStore store = store_of(options);
    REQUIRE_FALSE(fs::exists(options.folder));  // it may never need any
    fetch(store, kTraining, first(50));
    fetch(store, PointSet::kTestSet, first(20));
    REQUIRE(store.memory_bytes() == 0);
  }
  REQUIRE(files_in(options.folder) ==
          std::set<std::string>{"train-0000000000000abc.points",
                                "test-0000000000000def-0000000000000003.points"});
  ExampleStore store = store_of(options);
  REQUIRE_FALSE(store.request(kTraining, first(50)));
  REQUIRE_FALSE(store.request(PointSet::kTestSet, first(20)));
  require_read(store, kTraining, first(50));
  require_read(store, PointSet::kTestSet, first(20));
  REQUIRE(store.request(kTraining, first(51))->points == first(1, 50));
}

TEST_CASE("example store: a reconnect to the same run keeps what is here, another run does not",
          "[example_store]") {
  const TemporaryFolder folder;
  for (const std::string& path : {std::string(), folder.path()}) {
    ExampleStore store = store_of({path, 1 << 20, 1 << 20, {}});
    fetch(store, kTraining, first(5));
    fetch(store, PointSet::kTestSet, first(5));
    REQUIRE(store.request(kTraining, first(6)));
    store.begin(model_of(kTrain, kSeed), kTest);
    REQUIRE(store.request(kTraining, first(6))->points == first(1, 5));  // not answered before
    require_read(store, kTraining, first(5));
    // Other held-out points, or another order of them.
    store.begin(model_of(kTrain, kSeed + 1), kTest);
    require_read(store, kTraining, first(5));
    REQUIRE(store.request(PointSet::kTestSet, first(5))->points.size() == 5);
    store.begin(model_of(kTrain, kSeed), kTest + 1);
    REQUIRE(store.request(PointSet::kTestSet, first(5))->points.size() == 5);
    store.begin(model_of(kTrain + 1, kSeed), kTest);
    REQUIRE(store.request(kTraining, first(5))->points.size() == 5);
    REQUIRE_FALSE(store.read(kTraining, first(1)));
    // Back again: files are still there, memory is not.
    store.begin(model_of(kTrain, kSeed), kTest);
    REQUIRE(store.has_all(kTraining, first(5)) == !path.empty());
  }
}

TEST_CASE("example store: a damaged point is missing, and is fetched again", "[example_store]") {
  const TemporaryFolder folder;
  ExampleStore store = store_of({folder.path(), 1 << 20, 1 << 20, {}});
  fetch(store, kTraining, first(3));
  std::fstream file(folder.path() + "/train-0000000000000abc.points",
                    std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(16 + 40 + 24);  // within the second record
  file.put('?');
  file.close();
  REQUIRE_FALSE(store.read(kTraining, first(3)));
  REQUIRE_FALSE(store.has_all(kTraining, first(3)));
  REQUIRE(fetch(store, kTraining, first(3)) == 1);
  require_read(store, kTraining, first(3));
}

TEST_CASE("example store: a file that another has leaves memory, within what may be taken of it",
          "[example_store]") {
  const TemporaryFolder folder;
  ExampleStore owner = store_of({folder.path(), 1 << 20, 1 << 20, {}});
  fetch(owner, kTraining, first(5));
  constexpr std::uint64_t kBytes = 1984;  // as above
  ExampleStore other = store_of({folder.path(), 1 << 20, kBytes, {}});
  REQUIRE(fetch(other, kTraining, first(60, 100)) == 60);
  other.release(kTraining, first(60, 100));
  REQUIRE(other.memory_bytes() == 16 + 43 * 40);
  require_read(owner, kTraining, first(5));
}

TEST_CASE("example store: what is in memory can be forgotten", "[example_store]") {
  const TemporaryFolder folder;
  for (const std::string& path : {std::string(), folder.path()}) {
    ExampleStore store = store_of({path, 1 << 20, 1 << 20, {}});
    fetch(store, kTraining, first(5));
    store.clear();
    REQUIRE(store.memory_bytes() == 0);
    REQUIRE(store.has_all(kTraining, first(5)) == !path.empty());
  }
  ExampleStore loose = store_of(no_room());
  fetch(loose, kTraining, first(5));
  REQUIRE(loose.request(kTraining, first(6)));
  loose.clear();
  REQUIRE(loose.memory_bytes() == 0);
  REQUIRE(loose.request(kTraining, first(6))->points == first(6));
}

TEST_CASE("example store: without a hidden layer points have labels, in a file of a seed",
          "[example_store]") {
  const TemporaryFolder folder;
  const ExampleStoreOptions options{folder.path(), 1 << 20, 1 << 20, {}};
  {
    // The data set was used for a run with a hidden layer before.
    ExampleStore store = store_of(options);
    fetch(store, kTraining, first(5));
  }
  ModelConfig wide = model_of(kTrain, kSeed);
  wide.hidden = 0;
  for (const ExampleStoreOptions& some : {options, no_room()}) {
    ExampleStore store(some);
    store.begin(wide, kTest);
    REQUIRE(store.request(kTraining, first(2))->points == first(2));
    REQUIRE_THAT(store.add(answer(kTraining, first(2))).error().message,
                 Catch::Matchers::Contains("without labels"));
    Points labelled = answer(kTraining, first(2));
    labelled.labels = {{0, 2, 3}, {4, 9, 7}};
    REQUIRE(store.add(labelled).ok());
    const auto batch = store.read(kTraining, first(2));
    REQUIRE(batch);
    REQUIRE(std::ranges::equal(batch->examples[0].labels, std::vector<std::uint32_t>{4, 9}));
    REQUIRE(std::ranges::equal(batch->examples[1].labels, std::vector<std::uint32_t>{7}));
    REQUIRE(fetch(store, PointSet::kTestSet, first(3)) == 3);
    require_read(store, PointSet::kTestSet, first(3));
    // Other neurons.
    ++wide.seed;
    store.begin(wide, kTest);
    REQUIRE(store.request(kTraining, first(2))->points == first(2));
    --wide.seed;
  }
  ExampleStore store = store_of(options);
  require_read(store, kTraining, first(5));
  REQUIRE(store.request(kTraining, first(6))->points == first(1, 5));
}

}  // namespace gleaner::volunteer
