#include "tests/sim/small_world.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "common/counter_random.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/wide_start.hpp"
#include "tests/sim/workload/planted_data.hpp"

namespace gleaner::sim {
namespace {

// Distinct from the streams that steer the run itself and draw its faults.
constexpr std::uint64_t kStrangersStream = 2;
constexpr std::uint64_t kWideStream = 3;
constexpr std::uint64_t kBitsStream = 4;

}  // namespace

Seeds seeds_to_run(std::uint64_t count) {
  const auto number = [](const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  };
  return {number("GLEANER_SEED", 1), number("GLEANER_SEEDS", count)};
}

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
  model.divergence_factor = 2.0F;
  return model;
}

void SmallWorld::make_wide(ClusterOptions& options) const {
  ModelConfig& model = options.model;
  model.hidden = 0;
  model.wide_features = 40;
  model.wide_scale = 4.0F;
  model.output_rate = 0.5F;
  model.wide_rows = WideStart::open(model, *train_).value()->sizes().value().rows;
  options.master.lends_input = false;
}

ClusterResult SmallWorld::run(const ClusterOptions& options) {
  RealWorkload workload(options.model, *train_, *test_);
  return run_cluster(options, workload);
}

const Expected& SmallWorld::calm(const ModelConfig& model) {
  const Drawn key(model.hidden, model.staleness, model.staleness_rise, model.output_shards,
                  model.round_batches, model.epochs, model.activation_bits);
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
  // One storm in three meets a run without a hidden layer.
  if (Rng(seed, Purpose::kSimulation, kWideStream).next_below(3) == 0) make_wide(options);
  if (Rng(seed, Purpose::kSimulation, kBitsStream).chance(1, 2)) options.model.activation_bits = 5;
  options.expected = &calm(options.model);
  return options;
}

ClusterOptions SmallWorld::storm_of_strangers(std::uint64_t seed) {
  ClusterOptions options = storm(seed);
  Rng random(seed, Purpose::kSimulation, kStrangersStream);
  options.volunteers = std::max(options.volunteers, 2u);
  options.strangers.are_there = true;
  options.strangers.trusted = static_cast<std::uint32_t>(random.next_below(2));
  options.strangers.liars =
      static_cast<std::uint32_t>(random.next_below(std::max(options.volunteers / 3, 1u) + 1));
  options.strangers.one_in = std::uint64_t{1} << random.next_below(6);
  options.strangers.come_again = random.chance(1, 2);
  options.master.audit = AuditMode::kAll;
  // Strangers get no input shards: with them a trusted one must stay.
  if (options.strangers.trusted == 0) options.master.lends_input = false;
  if (options.master.lends_input) {
    options.faults[Fault::kVolunteerGone] = options.faults[Fault::kBan] = Millis(0);
  }
  // Volunteers with one key would ban each other's honest work with their own lies, and the others
  // must stay.
  options.faults[Fault::kTwin] = Millis(0);
  return options;
}

ClusterOptions SmallWorld::adaptive_storm(std::uint64_t seed) {
  ClusterOptions options = storm_of_strangers(seed);
  audit_by_lot(options);
  return options;
}

void SmallWorld::audit_by_lot(ClusterOptions& options) {
  options.strangers.rounds = 0.5;
  // A liar that comes again may lie unseen, and the checker of found liars compares names.
  options.strangers.come_again = false;
  options.master.audit = AuditMode::kAdaptive;
  options.master.newcomer_rounds = 0;
  options.master.audit_share = 0.25;
  options.master.audit_secret = options.seed;
}

}  // namespace gleaner::sim
