#include "master/core_settings.hpp"

#include <filesystem>

#include "common/access/key_pair.hpp"
#include "common/train/input_trainer.hpp"
#include "common/train/self_test/self_test.hpp"
#include "common/train/shard_trainer.hpp"
#include "common/train/wide/wide_trainer.hpp"

namespace gleaner {
namespace {

std::uint32_t rows_per_chunk(const ModelConfig& model) {
  const ShardMap map(model);
  const std::size_t row_bytes =
      (map.row_width(ShardId{0}) + 1 + map.codes_per_row(ShardId{0})) * sizeof(float);
  return static_cast<std::uint32_t>(rows_per_message(row_bytes));
}

}  // namespace

std::string run_title(const MasterConfig& config) {
  return std::filesystem::path(config.run.store).lexically_normal().filename().string();
}

Patience patience_of(const MasterConfig& config) {
  if (config.evaluation.patience) return {*config.evaluation.patience, 0};
  const bool is_chosen =
      config.recipe == RecipeKind::kAuto && !config.model.get(&ModelConfig::epochs);
  return is_chosen ? kPatienceAuto : Patience();
}

CoreConfig core_config(const MasterConfig& config, const RunData& data) {
  CoreConfig core;
  static_cast<CoreSettings&>(core) = config.core;
  core.audit_secret = random_bits();
  core.kernels = own_digests();
  // Another version may train the other kind of run by another rule, and this kind by the same.
  const char* const unused = is_wide(data.model) ? "training" : "wide_training";
  std::erase_if(core.kernels, [&](const KernelDigest& one) { return one.kernel == unused; });
  // Local volunteers end with the master: there is nobody to wait for.
  if (config.network.listen.empty()) core.rejoin_grace = Millis(0);
  if (is_wide(data.model)) {
    core.shard_bytes = WideTrainer::shard_bytes(data.model, data.wide_weights);
    core.holder_bytes = WideTrainer::holder_bytes(data.model, data.wide_weights);
  } else {
    core.shard_bytes = ShardTrainer::shard_bytes(data.model);
  }
  core.lends_input = !is_wide(data.model) && config.run.input_layer == InputHolder::kVolunteers;
  core.input_shard_bytes = InputTrainer::shard_bytes(data.model);
  core.test_fingerprint = data.test ? data.test->fingerprint() : 0;
  core.rows_per_chunk = rows_per_chunk(data.model);
  core.test_points = data.test ? data.test->points() : 0;
  core.evaluate_sample = config.evaluation.sample.value_or(kEvaluateAll);
  core.patience = patience_of(config);
  core.run = run_title(config);
  core.top_k = kEvaluationTopK;
  core.label_counts = data.label_counts;
  return core;
}

}  // namespace gleaner
