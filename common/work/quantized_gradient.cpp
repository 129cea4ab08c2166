#include "common/work/quantized_gradient.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "common/work/bit_stream.hpp"

namespace gleaner {
namespace {

constexpr unsigned kWidthMax = kGradientBits;

// Zig-zag: small magnitudes of either sign become small numbers.
std::uint32_t fold_sign(std::int32_t value) {
  return (static_cast<std::uint32_t>(value) << 1) ^ static_cast<std::uint32_t>(value >> 31);
}

std::int32_t unfold_sign(std::uint32_t folded) {
  return static_cast<std::int32_t>((folded >> 1) ^ (0u - (folded & 1u)));
}

// The sum modulo 2^kGradientBits as a signed number.
std::int32_t add(std::int32_t a, std::int32_t b) {
  constexpr int kUnused = 32 - kGradientBits;
  const std::uint32_t sum = static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b);
  return static_cast<std::int32_t>(sum << kUnused) >> kUnused;
}

Error broken_gradient(std::string what) {
  return Error{ErrorCode::kProtocol, fmt::format("gradient: {}", what)};
}

// The units of a batch whose code is not zero.
class UnitsOn {
 public:
  explicit UnitsOn(const QuantizedActivations& codes)
      : hidden_(codes.hidden), words_per_example_((codes.hidden + 63) / 64) {
    words_.reserve(codes.examples * words_per_example_);
    for (std::size_t i = 0; i < codes.codes.size(); i += hidden_) {
      for (std::size_t j = 0; j < hidden_; j += 64) {
        const std::size_t count = std::min<std::size_t>(64, hidden_ - j);
        words_.push_back(mask_of(codes.codes.data() + i + j, count));
      }
    }
  }

  // By example.
  [[nodiscard]] std::vector<std::uint32_t> counts() const {
    if (hidden_ == 0) return {};
    std::vector<std::uint32_t> counts(words_.size() / words_per_example_);
    for (std::size_t i = 0; i < words_.size(); ++i) {
      counts[i / words_per_example_] += static_cast<std::uint32_t>(std::popcount(words_[i]));
    }
    return counts;
  }

  // Calls visit(index) for the entries of `example` whose code is not zero, ascending.
  template <typename Visit>
  void for_each(std::size_t example, Visit&& visit) const {
    for (std::size_t i = 0; i < words_per_example_; ++i) {
      for_each_bit(words_[example * words_per_example_ + i], example * hidden_ + i * 64, visit);
    }
  }

 private:
  std::size_t hidden_;
  std::size_t words_per_example_;
  std::vector<std::uint64_t> words_;
};

bool is_well_shaped(const QuantizedActivations& codes, std::size_t entries) {
  const std::size_t cells = std::size_t{codes.examples} * codes.hidden;
  return codes.hidden % 16 == 0 && codes.codes.size() == cells && entries == cells;
}

}  // namespace

Bytes pack_gradient(const QuantizedActivations& codes, std::span<const std::int32_t> gradient) {
  GLEANER_CHECK(is_well_shaped(codes, gradient.size()));
  if (codes.hidden == 0) return {};
  const UnitsOn units(codes);
  Bytes packed(codes.examples + gradient.size() * sizeof(std::int32_t));
  BitWriter writer(packed.data() + codes.examples);
  std::vector<std::uint32_t> entries(codes.hidden);
  for (std::size_t i = 0; i < codes.examples; ++i) {
    std::size_t count = 0;
    std::uint32_t bits = 0;
    units.for_each(i, [&](std::size_t unit) {
      const std::uint32_t folded = fold_sign(gradient[unit]);
      entries[count++] = folded;
      bits |= folded;
    });
    const auto width = static_cast<unsigned>(std::bit_width(bits));
    GLEANER_CHECK(width <= kWidthMax);
    packed[i] = static_cast<std::uint8_t>(width);
    if (width == 0) continue;
    for (std::size_t k = 0; k < count; ++k) writer.put(entries[k], width);
  }
  packed.resize(static_cast<std::size_t>(writer.finish() - packed.data()));
  return packed;
}

std::vector<std::uint32_t> count_units_on(const QuantizedActivations& codes) {
  return UnitsOn(codes).counts();
}

Result<void> check_gradient_size(std::span<const std::uint32_t> units_on, ByteView packed) {
  if (packed.size() < units_on.size()) return broken_gradient("cut off in the widths");
  std::size_t bits = 0;
  for (std::size_t i = 0; i < units_on.size(); ++i) {
    if (packed[i] > kWidthMax) {
      return broken_gradient(
          fmt::format("width {} of example {}, at most {}", packed[i], i, kWidthMax));
    }
    bits += std::size_t{units_on[i]} * packed[i];
  }
  if (packed.size() - units_on.size() != (bits + 7) / 8) {
    return broken_gradient(fmt::format("{} bytes of entries, expected {}",
                                       packed.size() - units_on.size(), (bits + 7) / 8));
  }
  return {};
}

Result<void> add_gradient(const QuantizedActivations& codes, ByteView packed,
                          std::span<std::int32_t> sum) {
  GLEANER_CHECK(is_well_shaped(codes, sum.size()));
  const UnitsOn units(codes);
  if (auto checked = check_gradient_size(units.counts(), packed); !checked) return checked;
  Result<void> encoding;
  BitReader reader(packed.subspan(codes.examples));
  for (std::size_t i = 0; i < codes.examples; ++i) {
    const unsigned width = packed[i];
    if (width == 0) continue;
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    std::uint32_t bits = 0;
    units.for_each(i, [&](std::size_t unit) {
      const std::uint32_t folded = reader.get(width, mask);
      bits |= folded;
      sum[unit] = add(sum[unit], unfold_sign(folded));
    });
    if (static_cast<unsigned>(std::bit_width(bits)) != width && encoding.ok()) {
      encoding = broken_gradient(fmt::format("width {} of example {}, but {} bits suffice", width,
                                             i, std::bit_width(bits)));
    }
  }
  if (!reader.padding_is_zero() && encoding.ok()) {
    encoding = broken_gradient("the last byte's padding is not zero");
  }
  return encoding;
}

std::uint64_t gradient_check(const QuantizedActivations& codes,
                             std::span<const std::int32_t> gradient) {
  GLEANER_CHECK(is_well_shaped(codes, gradient.size()));
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    if (codes.codes[i] == 0) continue;
    std::uint64_t factors = (i + 1) * 0x9E3779B97F4A7C15U;
    factors = (factors ^ factors >> 29U) * 0xD6E8FEB86659FD93U;
    const auto entry = static_cast<std::uint32_t>(gradient[i]);
    first += entry * (static_cast<std::uint32_t>(factors >> 32U) | 1U);
    second += entry * static_cast<std::uint32_t>(factors);
  }
  return add_checks(std::uint64_t{second} << 32U | first, 0);
}

std::uint64_t add_checks(std::uint64_t one, std::uint64_t other) {
  constexpr std::uint64_t kEntry = (std::uint64_t{1} << kGradientBits) - 1;
  const std::uint64_t first = one + other;  // a carry stays below the second sum
  const std::uint64_t second = (one >> 32U) + (other >> 32U);
  return (second & kEntry) << 32U | (first & kEntry);
}

}  // namespace gleaner
