// The small run that simulations train: its data, its model, and what a calm run of it gives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "common/data/packed_dataset.hpp"
#include "tests/sim/cluster.hpp"
#include "tests/sim/workload/real_workload.hpp"

namespace gleaner::sim {

// Which seeds a test runs: as many as it says from 1 on, or as GLEANER_SEEDS and GLEANER_SEED say.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 0;
};

Seeds seeds_to_run(std::uint64_t count);

class SmallWorld {
 public:
  SmallWorld();

  // 12 batches of 8 examples an epoch, in rounds of 5, 5 and 2; 2 epochs; 5 output shards; lag 2.
  [[nodiscard]] ModelConfig model() const;

  // Takes the hidden layer out of the options' model.
  void make_wide(ClusterOptions& options) const;

  ClusterResult run(const ClusterOptions& options);

  // The digests of a calm run of this model, with one volunteer; made once a model. Throws if it
  // breaks a promise.
  const Expected& calm(const ModelConfig& model);

  // A run with everything drawn from `seed`, compared with the calm one.
  ClusterOptions storm(std::uint64_t seed);

  // A storm among strangers: two to eight of them, of whom up to a third lie, some always and some
  // seldom, each in its own way.
  ClusterOptions storm_of_strangers(std::uint64_t seed);

  // Such a storm where a quarter of the rounds is audited, and liars lie in half of theirs.
  ClusterOptions adaptive_storm(std::uint64_t seed);

  // Makes the strangers of these options audited so.
  static void audit_by_lot(ClusterOptions& options);

 private:
  // The choices in which runs differ.
  using Drawn = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                           std::uint32_t, std::uint32_t, std::uint32_t>;

  std::unique_ptr<PackedDataset> train_;
  std::unique_ptr<PackedDataset> test_;
  std::map<Drawn, Expected> calm_;
};

}  // namespace gleaner::sim
