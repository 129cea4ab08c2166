// The examples that a volunteer's input shards need: which are here, which to ask the master for.
// Examples that arrive are kept on disk while there is room (example_cache.hpp), otherwise in
// memory until they have been used. One thread at a time.
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

#include "common/data/packed_dataset.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"
#include "volunteer/example_cache.hpp"

namespace gleaner::volunteer {

struct ExampleStoreOptions {
  std::string folder;                                // of the caches; empty: memory only
  std::uint64_t bytes_max = std::uint64_t{1} << 30;  // of all that is kept there
  // A bound on all that is kept in memory, where there is no folder or its files cannot be used.
  std::uint64_t memory_bytes_max = std::uint64_t{1} << 28;
};

// Some points, without labels, in the order in which they were asked for.
struct ExampleBatch {
  ExampleFeatures lists;  // of all, one behind the other
  std::vector<ExampleView> examples;
};

class ExampleStore {
 public:
  explicit ExampleStore(ExampleStoreOptions options) : options_(std::move(options)) {}

  // Makes ready for a connection to a run with these data: nothing has been asked for. The held-out
  // points' order follows from the seed. Files are opened when they are first needed.
  void begin(std::uint64_t train_fingerprint, std::uint64_t test_fingerprint, std::uint64_t seed);

  // The request that is next so that all of `points` will be here; nullopt when nothing is missing
  // that has not been asked for, or enough is on its way.
  std::optional<PointsRequest> request(PointSet set, std::span<const std::uint64_t> points);

  // Forgets what is in memory.
  void clear();

  // Takes points. Refuses (kProtocol) those that were not asked for.
  Result<void> add(const Points& points);

  // Whether all of them are here, unless the disk has damaged one.
  bool has_all(PointSet set, std::span<const std::uint64_t> points);

  // Nullopt when some are missing. A damaged one is missing from then on.
  std::optional<ExampleBatch> read(PointSet set, std::span<const std::uint64_t> points);

  // The bytes of memory: what is kept there for want of a folder or of room.
  [[nodiscard]] std::uint64_t memory_bytes() const;

  // They have been used for the last time in a while: those in memory for want of room may go.
  void release(PointSet set, std::span<const std::uint64_t> points);

 private:
  using Key = std::pair<PointSet, std::uint64_t>;

  bool has(PointSet set, std::uint64_t point);
  ExampleCache& cache(PointSet set);
  void rename(PointSet set, std::string name);

  ExampleStoreOptions options_;
  std::unique_ptr<ExampleCache> caches_[2];  // one a PointSet; null until it is needed
  std::string names_[2];
  std::map<Key, ExampleFeatures> loose_;  // that the cache did not take
  std::uint64_t loose_bytes_ = 0;
  std::set<Key> asked_;
};

}  // namespace gleaner::volunteer
