// The examples that a volunteer needs: which are here, and which to request from the master.
// Arriving examples are kept on disk while there is room (example_cache.hpp), otherwise in memory
// until they have been used. A volunteer inside the master's process has the data sets and requests
// nothing. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/counter_random.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"
#include "volunteer/example_cache.hpp"

namespace gleaner::volunteer {

// Data sets of this process, which outlive the store; null if there are none.
struct OwnDatasets {
  const PackedDataset* train = nullptr;
  const PackedDataset* test = nullptr;
};

struct ExampleStoreOptions {
  std::string folder;                                // of the caches; empty: memory only
  std::uint64_t bytes_max = std::uint64_t{1} << 30;  // of all that is kept there
  // Bounds the memory for examples when there is no folder or its files cannot be used.
  std::uint64_t memory_bytes_max = std::uint64_t{1} << 28;
  OwnDatasets own{};
};

// Examples of a batch or of an evaluation, in its order.
struct WantedPoints {
  PointSet set = PointSet::kTraining;
  std::vector<std::uint64_t> points;
};

// Examples in the order in which they were asked for. Without a hidden layer training examples have
// labels, as output neurons.
struct ExampleBatch {
  ExampleLists
      lists;  // of all, one behind the other, unless they are in a data set of this process
  std::vector<ExampleView> examples;
};

class ExampleStore {
 public:
  explicit ExampleStore(ExampleStoreOptions options) : options_(std::move(options)) {}

  // Prepares for a connection to a run of this model: no request is open. The model's seed gives
  // the order of the test set and the neurons of labels. Files are opened when they are first
  // needed.
  void begin(const ModelConfig& model, std::uint64_t test_fingerprint);

  // The next request for examples of `points` that are missing. Nullopt when all are here or
  // requested, or when enough are on their way.
  std::optional<PointsRequest> request(PointSet set, std::span<const std::uint64_t> points);

  // Forgets examples in memory.
  void clear();

  // Whether this process has the data set.
  [[nodiscard]] bool is_own(PointSet set) const {
    return (set == PointSet::kTraining ? options_.own.train : options_.own.test) != nullptr;
  }

  // Whether all arriving examples can be kept. If not, there is no use in requests far ahead.
  [[nodiscard]] bool keeps_all(PointSet set) { return is_own(set) || !cache(set).is_full(); }

  // Whether no more can be requested at present.
  [[nodiscard]] bool has_asked_enough() const;

  // Takes examples. kProtocol when they were not requested or lack their labels.
  Result<void> add(const Points& points);

  // Whether all of them are here. A damaged one shows only when it is read.
  bool has_all(PointSet set, std::span<const std::uint64_t> points);

  // Nullopt when some are missing. A damaged example is missing from then on.
  std::optional<ExampleBatch> read(PointSet set, std::span<const std::uint64_t> points);

  // Bytes of examples in memory.
  [[nodiscard]] std::uint64_t memory_bytes() const;

  // The examples are not needed soon: those in memory for lack of room are dropped.
  void release(PointSet set, std::span<const std::uint64_t> points);

 private:
  using Key = std::pair<PointSet, std::uint64_t>;

  // Reads from this process's data set.
  std::optional<ExampleBatch> read_own(PointSet set, std::span<const std::uint64_t> points) const;
  bool has(PointSet set, std::uint64_t point);
  ExampleCache& cache(PointSet set);
  void rename(PointSet set, std::string name);

  ExampleStoreOptions options_;
  std::unique_ptr<ExampleCache> caches_[2];  // one a PointSet; null until it is needed
  std::string names_[2];
  std::optional<ShardMap> map_;  // where points have labels
  std::optional<Permutation> test_order_;
  std::map<Key, ExampleLists> loose_;  // examples that the cache did not take
  std::uint64_t loose_bytes_ = 0;
  std::set<Key> asked_;
};

}  // namespace gleaner::volunteer
