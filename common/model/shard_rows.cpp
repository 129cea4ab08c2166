#include "common/model/shard_rows.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "common/counter_random.hpp"
#include "common/result.hpp"

namespace gleaner {
namespace {

constexpr float kSqrt3 = 1.7320508F;
// A lower bias makes a rare label start too slowly. A higher one lets a frequent label unsettle the
// first batches, which are few in citeulike-t (RECIPES.md, "Rates").
constexpr float kBiasMin = -8.0F;
constexpr float kBiasMax = -7.5F;

}  // namespace

static_assert(std::endian::native == std::endian::little,
              "floats and counts are hashed as they lie in memory");

std::uint64_t row_digest(ShardId shard, std::uint32_t row, ByteView values_and_state) {
  const std::uint64_t seed = std::uint64_t{raw(shard)} << 32 | row;
  return XXH3_64bits_withSeed(values_and_state.data(), values_and_state.size(), seed);
}

std::uint64_t rows_digest(std::span<const ShardDigest> shards) {
  static_assert(sizeof(ShardDigest) == 2 * sizeof(std::uint64_t));
  return std::max<std::uint64_t>(1, XXH3_64bits(shards.data(), shards.size_bytes()));
}

float prior_log_odds(std::uint64_t points, std::uint32_t label_count) {
  // A label's count cannot exceed the points; min() keeps a wrong count finite.
  const std::uint64_t positives = std::min<std::uint64_t>(label_count, points);
  const double odds =
      (static_cast<double>(positives) + 0.5) / (static_cast<double>(points - positives) + 0.5);
  return std::clamp(static_cast<float>(natural_log(odds)), kBiasMin, kBiasMax);
}

void initial_row(const ModelConfig& config, const ShardMap& map, ShardId shard, std::uint32_t row,
                 std::uint32_t label_count, std::span<float> values) {
  GLEANER_CHECK(row < map.row_count(shard) && values.size() == map.row_width(shard));
  const NeuronRange neurons = map.neurons(shard);
  if (map.is_wide()) {
    std::fill(values.begin(), values.end(), 0.0F);
    return;
  }
  if (map.is_output(shard)) {
    const float bound = config.output_scale / std::sqrt(static_cast<float>(config.hidden));
    for (std::uint32_t unit = 0; unit < config.hidden; ++unit) {
      values[unit] = bound * signed_unit(counter_random(config.seed, Purpose::kOutputWeight,
                                                        neurons.begin + row, unit));
    }
    values[config.hidden] = prior_log_odds(config.points, label_count);
    return;
  }
  if (row == config.features) {
    std::fill(values.begin(), values.end(), 0.0F);
    return;
  }
  // A uniform variable within +-1 has standard deviation 1 / sqrt(3).
  const float bound = config.input_scale * kSqrt3;
  for (std::uint32_t unit = 0; unit < neurons.size(); ++unit) {
    values[unit] = bound * signed_unit(counter_random(config.seed, Purpose::kInputWeight, row,
                                                      neurons.begin + unit));
  }
}

}  // namespace gleaner
