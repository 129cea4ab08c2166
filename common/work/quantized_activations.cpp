#include "common/work/quantized_activations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "common/limits.hpp"
#include "common/work/bit_stream.hpp"

namespace gleaner {
namespace {

// Fixed part: u16 examples, u16 hidden, u8 form and bits.
constexpr std::size_t kHeaderBytes = 5;
constexpr std::uint32_t kWholeByte = 8;
constexpr std::uint32_t kBitsMin = 2;
static_assert(kBatchExamplesMax <= 0xffff && kHiddenMax <= 0xffff, "both fit their fields");
static_assert(kLanes % 16 == 0, "masks are whole pairs of bytes");

enum class Form : std::uint8_t { kDense = 0, kMasked = 1 };

struct Shape {
  std::size_t examples = 0;
  std::size_t hidden = 0;
  std::uint32_t bits = kWholeByte;

  [[nodiscard]] std::size_t cells() const { return examples * hidden; }

  // Without units no scale is needed.
  [[nodiscard]] std::size_t scales() const { return hidden == 0 ? 0 : examples; }

  [[nodiscard]] std::size_t scale_bytes() const { return scales() * sizeof(float); }

  [[nodiscard]] std::size_t mask_bytes() const { return cells() / 8; }

  // Bytes of `count` codes.
  [[nodiscard]] std::size_t code_bytes(std::size_t count) const { return (count * bits + 7) / 8; }
};

// The shorter form, or dense if equal: each batch has exactly one encoding.
Form form_for(const Shape& shape, std::size_t nonzero) {
  return shape.mask_bytes() + shape.code_bytes(nonzero) < shape.code_bytes(shape.cells())
             ? Form::kMasked
             : Form::kDense;
}

// The form is the lowest bit. Codes of eight bits leave the other bits zero.
std::uint8_t form_byte(Form form, std::uint32_t bits) {
  const std::uint32_t narrow = bits == kWholeByte ? 0 : bits << 1;
  return static_cast<std::uint8_t>(narrow | static_cast<std::uint32_t>(form));
}

Error broken_codes(std::string what) {
  return Error{ErrorCode::kProtocol, fmt::format("quantized activations: {}", what)};
}

std::size_t count_nonzero(const std::vector<std::uint8_t>& codes) {
  return codes.size() -
         static_cast<std::size_t>(std::count(codes.begin(), codes.end(), std::uint8_t{0}));
}

// Up to eight bytes of mask from `offset`; bits past the end are zero.
std::uint64_t load_mask(ByteView masks, std::size_t offset) {
  std::uint64_t mask = 0;
  std::memcpy(&mask, masks.data() + offset, std::min<std::size_t>(8, masks.size() - offset));
  return mask;
}

// Writes the mask of every example. Returns the number of codes that are not zero.
std::size_t write_masks(const QuantizedActivations& codes, const Shape& shape, std::uint8_t* out) {
  std::size_t nonzero = 0;
  for (std::size_t i = 0; i < shape.cells(); i += 64) {
    const std::size_t count = std::min<std::size_t>(64, shape.cells() - i);
    const std::uint64_t mask = mask_of(codes.codes.data() + i, count);
    nonzero += static_cast<std::size_t>(std::popcount(mask));
    std::memcpy(out, &mask, count / 8);
    out += count / 8;
  }
  return nonzero;
}

Form form_of(std::uint8_t form_byte) {
  return (form_byte & 1u) != 0 ? Form::kMasked : Form::kDense;
}

// Branch-free: about half of the codes are zero, in no predictable pattern. The last store may
// write one byte past the codes.
void write_nonzero(const QuantizedActivations& codes, std::uint8_t* out) {
  for (const std::uint8_t code : codes.codes) {
    *out = code;
    out += code != 0;
  }
}

// Codes of fewer than eight bits: all, or those that are not zero.
void write_narrow(const QuantizedActivations& codes, Form form, std::uint8_t* out) {
  BitWriter writer(out);
  const std::uint32_t mask = (1u << codes.bits) - 1;
  for (const std::uint8_t code : codes.codes) {
    if (form == Form::kDense || code != 0) writer.put(code & mask, codes.bits);
  }
  writer.finish();
}

// Reads them back, each into a byte with its sign.
Result<Bytes> read_narrow(ByteView packed, std::size_t count, unsigned bits) {
  Bytes codes(count);
  BitReader reader(packed);
  const std::uint64_t mask = (1u << bits) - 1;
  const std::uint32_t sign = 1u << (bits - 1);
  for (std::uint8_t& code : codes) {
    code = static_cast<std::uint8_t>((reader.get(bits, mask) ^ sign) - sign);
  }
  if (!reader.padding_is_zero()) return broken_codes("bits after the last code");
  return codes;
}

Result<Shape> read_shape(ByteView packed) {
  if (packed.size() < kHeaderBytes) return broken_codes("cut off within the header");
  Shape shape{load_le<std::uint16_t>(packed.data()), load_le<std::uint16_t>(&packed[2])};
  if (const std::uint32_t bits = packed[4] >> 1; bits != 0) shape.bits = bits;
  if (shape.bits < kBitsMin || form_byte(form_of(packed[4]), shape.bits) != packed[4]) {
    return broken_codes(fmt::format("form {} is unknown", packed[4]));
  }
  if (shape.examples == 0 || shape.examples > kBatchExamplesMax) {
    return broken_codes(
        fmt::format("{} examples, must be 1 to {}", shape.examples, kBatchExamplesMax));
  }
  if (shape.hidden > kHiddenMax || shape.hidden % kLanes != 0) {
    return broken_codes(fmt::format("width {}, must be a multiple of {} up to {}", shape.hidden,
                                    kLanes, kHiddenMax));
  }
  if (packed.size() - kHeaderBytes < shape.scale_bytes()) {
    return broken_codes("cut off in the scales");
  }
  return shape;
}

Result<void> check_scales(const std::vector<float>& scales) {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (!(std::isfinite(scales[i]) && scales[i] >= 0)) {
      return broken_codes(fmt::format("scale of example {} is {}", i, scales[i]));
    }
  }
  return {};
}

Result<void> read_dense(ByteView body, const Shape& shape, std::vector<std::uint8_t>& codes) {
  if (body.size() != shape.code_bytes(shape.cells())) {
    return broken_codes(fmt::format("{} bytes for {} codes", body.size(), shape.cells()));
  }
  if (shape.bits == kWholeByte) {
    codes.assign(body.begin(), body.end());
  } else {
    Result<Bytes> narrow = read_narrow(body, shape.cells(), shape.bits);
    if (!narrow) return narrow.error();
    codes = std::move(*narrow);
  }
  if (form_for(shape, count_nonzero(codes)) != Form::kDense) {
    return broken_codes("dense, though the masked form is shorter");
  }
  return {};
}

Result<void> read_masked(ByteView body, const Shape& shape, std::vector<std::uint8_t>& codes) {
  if (body.size() < shape.mask_bytes()) return broken_codes("cut off in the masks");
  const ByteView masks = body.first(shape.mask_bytes());
  ByteView nonzero = body.subspan(shape.mask_bytes());
  std::size_t expected = 0;
  for (std::size_t i = 0; i < masks.size(); i += 8) {
    expected += static_cast<std::size_t>(std::popcount(load_mask(masks, i)));
  }
  if (nonzero.size() != shape.code_bytes(expected)) {
    return broken_codes(fmt::format("{} bytes for {} mask bits", nonzero.size(), expected));
  }
  if (form_for(shape, expected) != Form::kMasked) {
    return broken_codes("masked, though the dense form is as short");
  }
  Bytes whole;
  if (shape.bits != kWholeByte) {
    Result<Bytes> narrow = read_narrow(nonzero, expected, shape.bits);
    if (!narrow) return narrow.error();
    whole = std::move(*narrow);
    nonzero = whole;
  }
  if (expected != 0 && std::memchr(nonzero.data(), 0, expected) != nullptr) {
    return broken_codes("a unit that is on has code zero");
  }
  codes.assign(shape.cells(), 0);
  const std::uint8_t* next = nonzero.data();
  for (std::size_t i = 0; i < masks.size(); i += 8) {
    for_each_bit(load_mask(masks, i), i * 8, [&](std::size_t unit) { codes[unit] = *next++; });
  }
  return {};
}

}  // namespace

Bytes pack(const QuantizedActivations& codes) {
  const Shape shape{codes.examples, codes.hidden, codes.bits};
  GLEANER_CHECK(shape.bits >= kBitsMin && shape.bits <= kWholeByte);
  GLEANER_CHECK(shape.examples > 0 && shape.examples <= kBatchExamplesMax);
  GLEANER_CHECK(shape.hidden <= kHiddenMax && shape.hidden % kLanes == 0);
  GLEANER_CHECK(codes.scales.size() == shape.scales() && codes.codes.size() == shape.cells());
  GLEANER_CHECK(check_scales(codes.scales).ok());
  // Room for the longest body and the extra byte that write_nonzero may write.
  Bytes packed(kHeaderBytes + shape.scale_bytes() + shape.mask_bytes() + shape.cells() + 1);
  std::uint8_t* const body = packed.data() + kHeaderBytes + shape.scale_bytes();
  const std::size_t nonzero = write_masks(codes, shape, body);
  const Form form = form_for(shape, nonzero);
  const bool is_masked = form == Form::kMasked;
  const std::size_t mask_bytes = is_masked ? shape.mask_bytes() : 0;
  const std::size_t body_bytes = mask_bytes + shape.code_bytes(is_masked ? nonzero : shape.cells());
  if (shape.bits != kWholeByte) {
    write_narrow(codes, form, body + mask_bytes);
  } else if (is_masked) {
    write_nonzero(codes, body + mask_bytes);
  } else {
    std::copy(codes.codes.begin(), codes.codes.end(), body);
  }
  store_le(static_cast<std::uint16_t>(shape.examples), packed.data());
  store_le(static_cast<std::uint16_t>(shape.hidden), packed.data() + 2);
  packed[4] = form_byte(form, shape.bits);
  if (shape.scales() > 0) {
    std::memcpy(packed.data() + kHeaderBytes, codes.scales.data(), shape.scale_bytes());
  }
  packed.resize(kHeaderBytes + shape.scale_bytes() + body_bytes);
  return packed;
}

double mean_length(const QuantizedActivations& codes) {
  if (codes.hidden == 0) return 0;
  double sum = 0;
  for (std::size_t e = 0; e < codes.examples; ++e) {
    const std::uint8_t* const example = codes.codes.data() + e * codes.hidden;
    std::int64_t squares = 0;
    for (std::size_t unit = 0; unit < codes.hidden; ++unit) {
      const std::int32_t code = static_cast<std::int8_t>(example[unit]);
      squares += code * code;
    }
    sum += std::sqrt(static_cast<double>(squares)) * static_cast<double>(codes.scales[e]);
  }
  return codes.examples == 0 ? 0.0 : sum / codes.examples;
}

Result<QuantizedActivations> unpack_quantized(ByteView packed) {
  const Result<Shape> shape = read_shape(packed);
  if (!shape) return shape.error();
  QuantizedActivations codes;
  codes.examples = static_cast<std::uint32_t>(shape->examples);
  codes.hidden = static_cast<std::uint32_t>(shape->hidden);
  codes.scales = values_of<float>(packed.subspan(kHeaderBytes, shape->scale_bytes()));
  if (auto scales = check_scales(codes.scales); !scales) return scales.error();
  const ByteView body = packed.subspan(kHeaderBytes + shape->scale_bytes());
  codes.bits = shape->bits;
  auto read = form_of(packed[4]) == Form::kDense ? read_dense(body, *shape, codes.codes)
                                                 : read_masked(body, *shape, codes.codes);
  if (!read) return read.error();
  const auto lowest = -static_cast<std::int32_t>(code_max(codes.bits));
  if (!codes.codes.empty() &&
      std::memchr(codes.codes.data(), (lowest - 1) & 0xff, codes.codes.size()) != nullptr) {
    return broken_codes(
        fmt::format("a unit has code {}, and {} is the lowest", lowest - 1, lowest));
  }
  return codes;
}

}  // namespace gleaner
