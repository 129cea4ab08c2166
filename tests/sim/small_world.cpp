#include "tests/sim/small_world.hpp"

#include <stdexcept>

#include "tests/sim/workload/planted_data.hpp"

namespace gleaner::sim {

SmallWorld::SmallWorld()
    : train_(planted_data({}, 7, 0)), test_(planted_data({40, 48, 40}, 7, 1)) {}

ModelConfig SmallWorld::model() const {
  ModelConfig model;
  model.data_fingerprint = train_->fingerprint();
  model.points = train_->points();
  model.features = train_->features();
  model.labels = train_->labels();
  model.hidden = 32;
  model.input_shards = 2;
  model.output_shards = 5;
  model.epochs = 2;
  model.batch_examples = 8;
  model.round_batches = 5;
  model.staleness = 2;
  model.hash_bits = 3;
  model.tables = 4;
  model.active_cap = 20;
  model.rehash_batches = 3;
  model.output_rate = 0.05F;
  model.input_rate = 0.02F;
  return model;
}

ClusterResult SmallWorld::run(const ClusterOptions& options) {
  RealWorkload workload(options.model, *train_, *test_);
  return run_cluster(options, workload);
}

const Expected& SmallWorld::calm(const ModelConfig& model) {
  const Drawn key(model.staleness, model.staleness_rise, model.output_shards, model.round_batches);
  const auto known = calm_.find(key);
  if (known != calm_.end()) return known->second;
  ClusterOptions options;
  options.model = model;
  options.volunteers = 1;
  const ClusterResult result = run(options);
  if (!result.violations.empty()) {
    throw std::runtime_error("the calm run broke: " + result.violations.front());
  }
  return calm_.emplace(key, result.reached).first->second;
}

ClusterOptions SmallWorld::storm(std::uint64_t seed) {
  ClusterOptions options;
  options.model = model();
  draw(options, seed);
  options.expected = &calm(options.model);
  return options;
}

}  // namespace gleaner::sim
