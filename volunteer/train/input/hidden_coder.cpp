#include "volunteer/train/input/hidden_coder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/check.hpp"
#include "common/counter_random.hpp"

namespace gleaner {
namespace {

// A largest value below this is no signal, and its reciprocal would overflow.
constexpr float kHiddenValueMin = 1e-30F;
constexpr float kCodeMax = 127.0F;

// Rounds to nearest, ties to even, for values within +-2^21: at 1.5 * 2^23 a float's last bit is
// worth 1, and its last byte is the value's in two's complement.
std::uint8_t round_to_code(float value) {
  constexpr float kShift = 12582912.0F;
  return static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(value + kShift) & 0xffu);
}

// Returns the scale: the value of the largest magnitude has code 127 or -127.
float quantise(std::span<const float> units, std::uint8_t* codes) {
  float largest = 0.0F;
  for (const float unit : units) largest = std::max(largest, std::abs(unit));
  if (largest < kHiddenValueMin) {
    std::fill_n(codes, units.size(), std::uint8_t{0});
    return 0.0F;
  }
  const float codes_per_unit = kCodeMax / largest;
  for (std::size_t j = 0; j < units.size(); ++j) {
    codes[j] = round_to_code(units[j] * codes_per_unit);
  }
  return largest / kCodeMax;
}

}  // namespace

HiddenCoder::HiddenCoder(const ModelConfig& config, ThreadPool& pool)
    : pool_(pool),
      hidden_(config.hidden),
      seed_(config.seed),
      threshold_(static_cast<std::uint64_t>(config.dropout * 16777216.0F)),
      keep_scale_(1.0F / (1.0F - config.dropout)) {}

void HiddenCoder::drop_units(BatchIndex batch, std::size_t position, std::span<float> units) const {
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    const std::uint64_t random =
        counter_random(seed_, Purpose::kDropout, batch, position, unit) >> 40;
    units[unit] = random < threshold_ ? 0.0F : units[unit] * keep_scale_;
  }
}

float HiddenCoder::encode(std::span<float> units, std::optional<BatchIndex> batch,
                          std::size_t position, std::uint8_t* codes) const {
  if (batch && threshold_ > 0) drop_units(*batch, position, units);
  return quantise(units, codes);
}

HiddenCodes HiddenCoder::encode(std::span<float> activations,
                                std::optional<BatchIndex> batch) const {
  GLEANER_CHECK(activations.size() % hidden_ == 0);
  HiddenCodes result;
  result.examples = static_cast<std::uint32_t>(activations.size() / hidden_);
  result.hidden = hidden_;
  result.scales.resize(result.examples);
  result.codes.resize(activations.size());
  pool_.parallel_for(result.examples, [&](std::size_t e, unsigned /*worker*/) {
    result.scales[e] = encode(activations.subspan(e * hidden_, hidden_), batch, e,
                              result.codes.data() + e * hidden_);
  });
  return result;
}

}  // namespace gleaner
