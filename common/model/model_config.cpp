#include "common/model/model_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/limits.hpp"

namespace gleaner {
namespace {

// Rounds differ by a few percent, and more while the rates warm up.
constexpr float kDivergenceFactorMin = 1.2F;

template <typename T>
Result<void> in_range(const char* field, T value, T low, T high) {
  // Written so that a NaN fails.
  if (value >= low && value <= high) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is {}: it must be between {} and {}", field, value, low, high)};
}

Result<void> validate_shape(const ModelConfig& c) {
  if (auto r = in_range<std::uint64_t>("points", c.points, 1, std::uint64_t{1} << 40); !r) return r;
  if (auto r = in_range<std::uint32_t>("features", c.features, 1, kFeaturesMax); !r) return r;
  if (auto r = in_range<std::uint32_t>("labels", c.labels, 1, kLabelsMax); !r) return r;
  if (auto r = in_range<std::uint32_t>("hidden", c.hidden, kLanes, kHiddenMax); !r) return r;
  if (c.hidden % kLanes != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("hidden is {}: it must be a multiple of {}", c.hidden, kLanes)};
  }
  if (auto r = in_range<std::uint32_t>("output_shards", c.output_shards, 1, kOutputShardsMax); !r) {
    return r;
  }
  if (c.output_shards > c.labels) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("output_shards is {}: there are only {} labels to cut into shards",
                             c.output_shards, c.labels)};
  }
  if (auto r = in_range<std::uint32_t>("input_shards", c.input_shards, 1, kInputShardsMax); !r) {
    return r;
  }
  if (c.hidden % (c.input_shards * kLanes) != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("input_shards is {}: hidden ({}) must divide into shards that are "
                             "multiples of {}",
                             c.input_shards, c.hidden, kLanes)};
  }
  return {};
}

Result<void> validate_schedule(const ModelConfig& c) {
  if (auto r = in_range<std::uint32_t>("epochs", c.epochs, 1, 100'000); !r) return r;
  if (auto r = in_range<std::uint32_t>("batch_examples", c.batch_examples, 1, kBatchExamplesMax);
      !r) {
    return r;
  }
  if (c.batch_examples > kBatchCellsMax / c.hidden) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("batch_examples is {}: with {} hidden units it can be {} at most",
                             c.batch_examples, c.hidden, kBatchCellsMax / c.hidden)};
  }
  if (auto r = in_range<std::uint32_t>("round_batches", c.round_batches, 1, 1'000'000); !r)
    return r;
  if (const std::uint32_t whole = epochs_per_round(c); c.epochs % whole != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("epochs is {}: rounds of {} batches (round_batches) hold {} epochs of "
                             "{}, and epochs must be a multiple of that",
                             c.epochs, c.round_batches, whole, batches_per_epoch(c))};
  }
  if (auto r = in_range<std::uint32_t>("staleness", c.staleness, 0, kStalenessMax); !r) return r;
  if (auto r = in_range<std::uint32_t>("staleness_rise", c.staleness_rise, 0, 1'000'000); !r)
    return r;
  return in_range<std::uint32_t>("rehash_batches", c.rehash_batches, 1, 1'000'000);
}

Result<void> validate_sampling(const ModelConfig& c) {
  if (auto r = in_range<std::uint32_t>("hash_bits", c.hash_bits, 1, kHashBitsMax); !r) return r;
  if (auto r = in_range<std::uint32_t>("tables", c.tables, 1, kTablesMax); !r) return r;
  if (auto r = in_range<std::uint32_t>("active_cap", c.active_cap, 1, kLabelsMax); !r) return r;
  return in_range<std::uint32_t>("random_negatives", c.random_negatives, 0, kLabelsMax);
}

Result<void> validate_optimizer(const ModelConfig& c) {
  if (auto r = in_range("output_rate", c.output_rate, 0.0F, kRateMax); !r) return r;
  if (auto r = in_range("input_rate", c.input_rate, 0.0F, kRateMax); !r) return r;
  if (auto r = in_range("rate_decay", c.rate_decay, 1e-6F, 1.0F); !r) return r;
  if (auto r = in_range("second_moment_decay", c.second_moment_decay, 0.0F, 0.9999999F); !r)
    return r;
  if (auto r = in_range("epsilon", c.epsilon, 1e-30F, 1.0F); !r) return r;
  if (auto r = in_range("dropout", c.dropout, 0.0F, 0.95F); !r) return r;
  if (auto r = in_range("feature_dropout", c.feature_dropout, 0.0F, 0.95F); !r) return r;
  if (auto r = in_range("input_scale", c.input_scale, 0.0F, 100.0F); !r) return r;
  if (auto r = in_range("output_scale", c.output_scale, 0.0F, 100.0F); !r) return r;
  if (auto r = in_range("divergence_factor", c.divergence_factor, 0.0F, 1e6F); !r) return r;
  if (c.divergence_factor > 0.0F && c.divergence_factor < kDivergenceFactorMin) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("divergence_factor is {}: it must be 0, or {} and more, since the loss "
                    "of rounds that do not diverge differs too",
                    c.divergence_factor, kDivergenceFactorMin)};
  }
  return in_range<std::int32_t>("gradient_step_log2", c.gradient_step_log2, -13, 0);
}

}  // namespace

std::uint64_t batches_per_epoch(const ModelConfig& config) {
  return (config.points + config.batch_examples - 1) / config.batch_examples;
}

std::uint32_t epochs_per_round(const ModelConfig& config) {
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, config.round_batches / batches_per_epoch(config)));
}

Result<void> validate(const ModelConfig& config) {
  if (auto r = validate_shape(config); !r) return r;
  if (auto r = validate_schedule(config); !r) return r;
  if (auto r = validate_sampling(config); !r) return r;
  return validate_optimizer(config);
}

}  // namespace gleaner
