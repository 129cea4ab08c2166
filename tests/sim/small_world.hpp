// The small run of the simulations: its data, its model, and the results of a calm run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "common/data/packed_dataset.hpp"
#include "tests/sim/cluster.hpp"
#include "tests/sim/workload/real_workload.hpp"

namespace gleaner::sim {

// The seeds of a test: 1 up to the test's number, or GLEANER_SEEDS seeds from GLEANER_SEED on.
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

  // The digests of a calm run of this model with one volunteer, made once per model. Throws on a
  // violation.
  const Expected& calm(const ModelConfig& model);

  // A run with all options drawn from `seed`, compared with the calm run.
  ClusterOptions storm(std::uint64_t seed);

  // A storm among two to eight strangers. Up to a third of them lie, some always and some seldom,
  // each in its own way.
  ClusterOptions storm_of_strangers(std::uint64_t seed);

  // A storm of strangers with a quarter of the rounds audited; liars lie in half of their rounds.
  ClusterOptions adaptive_storm(std::uint64_t seed);

  // Changes the options to such audits and lies.
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
