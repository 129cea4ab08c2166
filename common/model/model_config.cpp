#include "common/model/model_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "common/limits.hpp"
#include "common/model/model_fields.hpp"

namespace gleaner {
namespace {

// Losses of rounds differ by a few percent, and more while the learning rates warm up.
constexpr float kDivergenceFactorMin = 1.2F;

Error wrong(std::string sentence) {
  return Error{ErrorCode::kInvalidArgument, std::move(sentence)};
}

// Every field against its own range.
Result<void> check_ranges(const ModelConfig& config) {
  Result<void> outcome;
  for_each_model_field([&](const auto& field) {
    const auto value = config.*field.member;
    // Written so that a NaN fails.
    if ((value >= field.low && value <= field.high) || !outcome) return;
    if constexpr (std::is_enum_v<decltype(value)>) {
      outcome = wrong(fmt::format("{} has no value {}", field.name, static_cast<int>(value)));
    } else {
      outcome = wrong(fmt::format("{} is {}: it must be between {} and {}", field.name, value,
                                  field.low, field.high));
    }
  });
  return outcome;
}

// Refuses fields that only a model without a hidden layer has.
Result<void> check_wide(const ModelConfig& c) {
  if (!is_wide(c) && c.wide_rows != 0) {
    return wrong(
        fmt::format("wide_rows is {}, but there are {} hidden units", c.wide_rows, c.hidden));
  }
  if (is_wide(c) && c.sampling == Sampling::kRandom) {
    return wrong("sampling is random: without a hidden layer it must be lsh or all");
  }
  return {};
}

Result<void> check_shape(const ModelConfig& c) {
  if (auto checked = check_wide(c); !checked) return checked;
  if (c.hidden % kLanes != 0) {
    return wrong(fmt::format("hidden is {}: it must be a multiple of {}", c.hidden, kLanes));
  }
  if (c.output_shards > c.labels) {
    return wrong(fmt::format("output_shards is {}: there are only {} labels to cut into shards",
                             c.output_shards, c.labels));
  }
  if (c.hidden % (c.input_shards * kLanes) != 0) {
    return wrong(
        fmt::format("input_shards is {}: hidden ({}) must divide into shards that are "
                    "multiples of {}",
                    c.input_shards, c.hidden, kLanes));
  }
  return {};
}

Result<void> check_schedule(const ModelConfig& c) {
  if (c.hidden > 0 && c.batch_examples > kBatchCellsMax / c.hidden) {
    return wrong(fmt::format("batch_examples is {}: with {} hidden units it can be {} at most",
                             c.batch_examples, c.hidden, kBatchCellsMax / c.hidden));
  }
  if (const std::uint32_t whole = epochs_per_round(c); c.epochs % whole != 0) {
    return wrong(
        fmt::format("epochs is {}: rounds of {} batches (round_batches) hold {} epochs of "
                    "{}, and epochs must be a multiple of that",
                    c.epochs, c.round_batches, whole, batches_per_epoch(c)));
  }
  if (c.divergence_factor > 0.0F && c.divergence_factor < kDivergenceFactorMin) {
    return wrong(
        fmt::format("divergence_factor is {}: it must be 0, or {} and more, since the loss "
                    "of rounds that do not diverge differs too",
                    c.divergence_factor, kDivergenceFactorMin));
  }
  return {};
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
  if (auto checked = check_ranges(config); !checked) return checked;
  if (auto checked = check_shape(config); !checked) return checked;
  return check_schedule(config);
}

}  // namespace gleaner
