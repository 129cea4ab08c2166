#include "common/work/input_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/limits.hpp"
#include "common/work/bit_stream.hpp"
#include "common/work/quantized_gradient.hpp"

namespace gleaner {
namespace {

// u16 examples, u16 width.
constexpr std::size_t kPartHeaderBytes = 4;

bool is_well_shaped(std::size_t examples, std::size_t hidden, UnitColumns columns,
                    std::size_t cells) {
  return examples > 0 && examples <= kBatchExamplesMax && columns.width > 0 &&
         columns.begin % kLanes == 0 && columns.width % kLanes == 0 &&
         columns.begin + std::size_t{columns.width} <= hidden && hidden <= kHiddenMax &&
         cells == examples * hidden;
}

std::size_t mask_bytes(std::size_t examples, UnitColumns columns) {
  return examples * columns.width / 8;
}

// The columns of `codes` as a separate batch, each code 1 or 0.
QuantizedActivations on_units(const QuantizedActivations& codes, UnitColumns columns) {
  QuantizedActivations on{codes.examples, columns.width, {}, {}};
  on.codes.reserve(std::size_t{codes.examples} * columns.width);
  for (std::size_t i = columns.begin; i < codes.codes.size(); i += codes.hidden) {
    for (std::size_t j = i; j < i + columns.width; ++j) on.codes.push_back(codes.codes[j] != 0);
  }
  return on;
}

void write_header(std::uint32_t examples, UnitColumns columns, Bytes& packed) {
  store_le(static_cast<std::uint16_t>(examples), packed.data());
  store_le(static_cast<std::uint16_t>(columns.width), packed.data() + 2);
}

// `on` holds 0 or 1 per unit; its size is a multiple of 16.
void write_mask(std::span<const std::uint8_t> on, std::uint8_t* out) {
  for (std::size_t i = 0; i < on.size(); i += 8) {
    *out++ = static_cast<std::uint8_t>(nonzero_bytes(load_le<std::uint64_t>(on.data() + i)));
  }
}

std::vector<std::uint8_t> read_mask(ByteView masks) {
  std::vector<std::uint8_t> on(masks.size() * 8);
  for (std::size_t i = 0; i < on.size(); ++i) on[i] = (masks[i / 8] >> (i % 8)) & 1u;
  return on;
}

Error broken_part(const char* what, std::string why) {
  return Error{ErrorCode::kProtocol, fmt::format("{}: {}", what, std::move(why))};
}

// Checks header and size. Returns the part after the masks.
Result<ByteView> read_header(const char* what, ByteView packed, std::size_t examples,
                             UnitColumns columns) {
  const std::size_t least = kPartHeaderBytes + mask_bytes(examples, columns);
  if (packed.size() < least) return broken_part(what, "cut off within the masks");
  const auto claimed = load_le<std::uint16_t>(packed.data());
  const auto width = load_le<std::uint16_t>(packed.data() + 2);
  if (claimed != examples || width != columns.width) {
    return broken_part(what, fmt::format("{} examples of {} units, expected {} of {}", claimed,
                                         width, examples, columns.width));
  }
  return packed.subspan(least);
}

std::vector<std::uint8_t> mask_in(ByteView packed, std::size_t examples, UnitColumns columns) {
  return read_mask(packed.subspan(kPartHeaderBytes, mask_bytes(examples, columns)));
}

}  // namespace

Bytes pack_activations(std::uint32_t examples, std::uint32_t hidden, UnitColumns columns,
                       std::span<const float> activations) {
  GLEANER_CHECK(is_well_shaped(examples, hidden, columns, activations.size()));
  std::vector<std::uint8_t> on;
  std::vector<float> values;
  on.reserve(std::size_t{examples} * columns.width);
  for (std::size_t i = columns.begin; i < activations.size(); i += hidden) {
    for (const float value : activations.subspan(i, columns.width)) {
      on.push_back(value != 0.0F);
      if (value != 0.0F) values.push_back(value);
    }
  }
  Bytes packed(kPartHeaderBytes + mask_bytes(examples, columns));
  write_header(examples, columns, packed);
  write_mask(on, packed.data() + kPartHeaderBytes);
  const ByteView tail = bytes_of(values);
  packed.insert(packed.end(), tail.begin(), tail.end());
  return packed;
}

Result<void> unpack_activations(ByteView packed, std::uint32_t examples, std::uint32_t hidden,
                                UnitColumns columns, std::span<float> activations) {
  constexpr const char* kWhat = "activations";
  GLEANER_CHECK(is_well_shaped(examples, hidden, columns, activations.size()));
  const Result<ByteView> tail = read_header(kWhat, packed, examples, columns);
  if (!tail) return tail.error();
  const std::vector<std::uint8_t> on = mask_in(packed, examples, columns);
  const auto count = static_cast<std::size_t>(std::count(on.begin(), on.end(), 1));
  if (tail->size() != count * sizeof(float)) {
    return broken_part(kWhat,
                       fmt::format("{} bytes of values, expected {}", tail->size(), count * 4));
  }
  const std::uint8_t* next = tail->data();
  for (std::size_t i = 0; i < on.size(); ++i) {
    float value = 0.0F;
    if (on[i] != 0) {
      value = load_le<float>(next);
      next += sizeof(float);
      // Written so that a NaN fails.
      if (!(std::abs(value) <= kActivationMax) || value == 0.0F) {
        return broken_part(kWhat,
                           fmt::format("{} is no value of a unit: those are within +-{}, and zeros "
                                       "are left out",
                                       value, kActivationMax));
      }
    }
    activations[i / columns.width * hidden + columns.begin + i % columns.width] = value;
  }
  return {};
}

Bytes pack_unit_gradient(const QuantizedActivations& codes, std::span<const std::int32_t> gradient,
                         UnitColumns columns) {
  GLEANER_CHECK(is_well_shaped(codes.examples, codes.hidden, columns, gradient.size()));
  const QuantizedActivations on = on_units(codes, columns);
  std::vector<std::int32_t> own;
  own.reserve(on.codes.size());
  for (std::size_t i = columns.begin; i < gradient.size(); i += codes.hidden) {
    const auto part = gradient.subspan(i, columns.width);
    own.insert(own.end(), part.begin(), part.end());
  }
  Bytes packed(kPartHeaderBytes + mask_bytes(codes.examples, columns));
  write_header(codes.examples, columns, packed);
  write_mask(on.codes, packed.data() + kPartHeaderBytes);
  const Bytes tail = pack_gradient(on, own);
  packed.insert(packed.end(), tail.begin(), tail.end());
  return packed;
}

Result<void> unpack_unit_gradient(ByteView packed, UnitColumns columns, QuantizedActivations& codes,
                                  std::span<std::int32_t> gradient) {
  GLEANER_CHECK(is_well_shaped(codes.examples, codes.hidden, columns, gradient.size()) &&
                codes.codes.size() == gradient.size());
  const Result<ByteView> tail = read_header("unit gradient", packed, codes.examples, columns);
  if (!tail) return tail.error();
  QuantizedActivations on{
      codes.examples, columns.width, {}, mask_in(packed, codes.examples, columns)};
  std::vector<std::int32_t> own(on.codes.size(), 0);
  if (auto added = add_gradient(on, *tail, own); !added) return added;
  for (std::size_t example = 0; example < codes.examples; ++example) {
    const std::size_t from = example * columns.width;
    const std::size_t to = example * codes.hidden + columns.begin;
    std::copy_n(on.codes.data() + from, columns.width, codes.codes.data() + to);
    std::copy_n(own.data() + from, columns.width, gradient.data() + to);
  }
  return {};
}

}  // namespace gleaner
