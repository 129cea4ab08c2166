#include "common/initial_weights.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/check.hpp"
#include "common/counter_random.hpp"

namespace gleaner {
namespace {

constexpr double kLn2 = 0.693147180559945309417;
constexpr double kSqrt2 = 1.41421356237309504880;
constexpr float kSqrt3 = 1.7320508F;
// Below, a rare label starts too slowly; above, a frequent one unsettles the first batches, of
// which citeulike-t has few (RECIPES.md).
constexpr float kBiasMin = -8.0F;
constexpr float kBiasMax = -7.5F;

// Natural logarithm of a positive, normal x, to about 1e-15. The C library's logarithm may differ
// in its last bit from one machine to the next; these steps are IEEE 754 operations in a written
// order. With x = m * 2^e, m in [1/sqrt(2), sqrt(2)), and s = (m - 1) / (m + 1), |s| < 0.172:
// ln m = 2 (s + s^3/3 + s^5/5 + ...), whose terms beyond s^21 are below 1e-18.
double natural_log(double x) {
  constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << 52) - 1;
  constexpr std::uint64_t kExponentOfOne = std::uint64_t{1023} << 52;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & kMantissaMask) | kExponentOfOne);
  if (mantissa >= kSqrt2) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = s * s;
  double sum = 0.0;
  for (int power = 21; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
  return exponent * kLn2 + 2.0 * s * sum;
}

float prior_log_odds(std::uint64_t points, std::uint32_t label_count) {
  // A label never counts more points than there are; min() keeps a wrong count finite.
  const std::uint64_t positives = std::min<std::uint64_t>(label_count, points);
  const double odds =
      (static_cast<double>(positives) + 0.5) / (static_cast<double>(points - positives) + 0.5);
  return std::clamp(static_cast<float>(natural_log(odds)), kBiasMin, kBiasMax);
}

}  // namespace

void initial_row(const ModelConfig& config, const ShardMap& map, ShardId shard, std::uint32_t row,
                 std::uint32_t label_count, std::span<float> values) {
  GLEANER_CHECK(row < map.row_count(shard) && values.size() == map.row_width(shard));
  const NeuronRange neurons = map.neurons(shard);
  if (map.is_output(shard)) {
    // Centroids are summed up from zero.
    const float scale = config.centroid_scale > 0 ? 0.0F : config.output_scale;
    const float bound = scale / std::sqrt(static_cast<float>(config.hidden));
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
