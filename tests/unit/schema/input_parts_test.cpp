// The packed forms of an input shard's part of a batch: round trips, and what a peer can lie about.
#include "common/work/input_parts.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/counter_random.hpp"
#include "common/limits.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kHeaderBytes = 4;

struct Shape {
  std::uint32_t examples;
  std::uint32_t hidden;
  UnitColumns columns;
};

constexpr Shape kShapes[] = {
    {1, 16, {0, 16}},   {3, 48, {16, 16}},    {5, 80, {0, 80}},
    {7, 128, {96, 32}}, {2, 4096, {0, 4096}}, {4096, 16, {0, 16}},
};

// `on_of_16` of 16 units are on.
std::vector<float> activations_for(const Shape& shape, std::uint64_t on_of_16) {
  Rng rng(shape.hidden, Purpose::kTest, on_of_16);
  std::vector<float> activations(std::size_t{shape.examples} * shape.hidden);
  for (float& value : activations) {
    if (rng.chance(on_of_16, 16)) value = signed_unit(rng.next()) + 1.5F;
  }
  return activations;
}

bool is_own(const Shape& shape, std::size_t cell) {
  const std::size_t unit = cell % shape.hidden;
  return unit >= shape.columns.begin && unit < shape.columns.begin + shape.columns.width;
}

Bytes pack(const Shape& shape, std::span<const float> activations) {
  return pack_activations(shape.examples, shape.hidden, shape.columns, activations);
}

Result<void> unpack(const Shape& shape, ByteView packed, std::span<float> activations) {
  return unpack_activations(packed, shape.examples, shape.hidden, shape.columns, activations);
}

std::string refusal(const Shape& shape, ByteView packed) {
  std::vector<float> out(std::size_t{shape.examples} * shape.hidden);
  const Result<void> unpacked = unpack(shape, packed, out);
  REQUIRE_FALSE(unpacked.ok());
  REQUIRE(unpacked.error().code == ErrorCode::kProtocol);
  return unpacked.error().message;
}

// Codes of a batch, 0 or 1.
QuantizedActivations codes_for(const Shape& shape, std::uint64_t on_of_16) {
  Rng rng(shape.hidden, Purpose::kTest, 100 + on_of_16);
  QuantizedActivations codes{
      shape.examples, shape.hidden, std::vector<float>(shape.examples, 1.0F), {}};
  for (std::size_t i = 0; i < std::size_t{shape.examples} * shape.hidden; ++i) {
    codes.codes.push_back(rng.chance(on_of_16, 16) ? 1 : 0);
  }
  return codes;
}

std::vector<std::int32_t> gradient_for(const QuantizedActivations& codes) {
  Rng rng(codes.hidden, Purpose::kTest, 200);
  std::vector<std::int32_t> gradient(codes.codes.size());
  for (auto& entry : gradient) entry = static_cast<std::int32_t>(rng.next_below(4001)) - 2000;
  return gradient;
}

std::string gradient_refusal(const Shape& shape, ByteView packed) {
  QuantizedActivations codes{shape.examples, shape.hidden, {}, {}};
  codes.codes.resize(std::size_t{shape.examples} * shape.hidden);
  std::vector<std::int32_t> gradient(codes.codes.size());
  const Result<void> unpacked = unpack_unit_gradient(packed, shape.columns, codes, gradient);
  REQUIRE_FALSE(unpacked.ok());
  REQUIRE(unpacked.error().code == ErrorCode::kProtocol);
  return unpacked.error().message;
}

Bytes cut(const Bytes& bytes, std::size_t size) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}

void put_float(Bytes& bytes, std::size_t offset, float value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("activations: what is unpacked is what was packed, and no other column is touched",
          "[input_parts]") {
  for (const Shape& shape : kShapes) {
    for (const std::uint64_t on : {0u, 8u, 16u}) {
      CAPTURE(shape.examples, shape.hidden, on);
      const std::vector<float> activations = activations_for(shape, on);
      const Bytes packed = pack(shape, activations);
      std::vector<float> out(activations.size(), -1.0F);
      REQUIRE(unpack(shape, packed, out).ok());
      std::size_t units_on = 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (out[i] != (is_own(shape, i) ? activations[i] : -1.0F)) FAIL("cell " << i);
        units_on += is_own(shape, i) && activations[i] != 0.0F ? 1 : 0;
      }
      const std::size_t cells = std::size_t{shape.examples} * shape.columns.width;
      REQUIRE(packed.size() == kHeaderBytes + cells / 8 + 4 * units_on);
      REQUIRE(pack(shape, out) == packed);
    }
  }
}

TEST_CASE("activations: the column blocks of a batch make it whole", "[input_parts]") {
  const Shape whole{6, 64, {0, 64}};
  const std::vector<float> activations = activations_for(whole, 8);
  std::vector<float> out(activations.size(), -1.0F);
  for (const UnitColumns columns : {UnitColumns{48, 16}, UnitColumns{0, 32}, UnitColumns{32, 16}}) {
    const Shape part{6, 64, columns};
    REQUIRE(unpack(part, pack(part, activations), out).ok());
  }
  REQUIRE(out == activations);
}

TEST_CASE("activations: the smallest and the largest values pass", "[input_parts]") {
  const Shape shape{1, 16, {0, 16}};
  std::vector<float> activations(16);
  activations[0] = kActivationMax;
  activations[15] = std::numeric_limits<float>::denorm_min();
  std::vector<float> out(16);
  REQUIRE(unpack(shape, pack(shape, activations), out).ok());
  REQUIRE(out == activations);
}

TEST_CASE("activations: the format's bytes are pinned", "[input_parts]") {
  const Shape shape{2, 32, {16, 16}};
  std::vector<float> activations(64);
  activations[3] = 9.0F;              // another's column
  activations[17] = 1.0F;             // unit 1 of the first example
  activations[32 + 16 + 15] = -0.0F;  // off
  activations[32 + 16 + 8] = 0.5F;
  REQUIRE(pack(shape, activations) ==
          Bytes{2, 0, 16, 0, 0b10, 0, 0, 0b1, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x3f});
}

TEST_CASE("activations: truncations and trailing bytes are refused", "[input_parts]") {
  const Shape shape{3, 48, {16, 32}};
  Bytes packed = pack(shape, activations_for(shape, 8));
  for (std::size_t size = 0; size < packed.size(); ++size) refusal(shape, cut(packed, size));
  REQUIRE_THAT(refusal(shape, {}), Contains("activations: cut off within the masks"));
  REQUIRE_THAT(refusal(shape, cut(packed, packed.size() - 1)), Contains("bytes of values"));
  packed.push_back(0);
  REQUIRE_THAT(refusal(shape, packed), Contains("bytes of values"));
}

TEST_CASE("activations: those of another shape are refused", "[input_parts]") {
  const Shape shape{4, 64, {0, 32}};
  const std::vector<float> none(std::size_t{8} * 64);
  // It has the same number of cells, so that the size alone says nothing.
  REQUIRE_THAT(refusal(shape, pack({8, 64, {0, 16}}, none)),
               Contains("8 examples of 16 units, expected 4 of 32"));
  REQUIRE_THAT(refusal(shape, pack({2, 64, {0, 64}}, std::span(none).first(128))),
               Contains("2 examples of 64 units, expected 4 of 32"));
  REQUIRE_THAT(refusal(shape, pack({5, 64, {0, 32}}, std::span(none).first(320))),
               Contains("5 examples"));
  REQUIRE_THAT(refusal(shape, pack({3, 64, {0, 32}}, std::span(none).first(192))),
               Contains("cut off within the masks"));
}

TEST_CASE("activations: a mask with more or fewer units on than values is refused",
          "[input_parts]") {
  const Shape shape{2, 16, {0, 16}};
  std::vector<float> activations(32);
  activations[4] = 1.0F;
  Bytes packed = pack(shape, activations);
  packed[kHeaderBytes + 2] |= 1;
  REQUIRE_THAT(refusal(shape, packed), Contains("4 bytes of values, expected 8"));
  packed[kHeaderBytes + 2] = packed[kHeaderBytes] = 0;
  REQUIRE_THAT(refusal(shape, packed), Contains("4 bytes of values, expected 0"));
}

TEST_CASE("activations: values that no unit can have are refused", "[input_parts]") {
  const Shape shape{2, 32, {16, 16}};
  std::vector<float> activations(64, 1.0F);
  const Bytes packed = pack(shape, activations);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float above = std::nextafter(kActivationMax, infinity);
  for (const float value : {0.0F, -0.0F, nan, infinity, -infinity, above, -above}) {
    for (const std::size_t at : {packed.size() - 4, kHeaderBytes + 4}) {
      Bytes bad = packed;
      put_float(bad, at, value);
      CAPTURE(value, at);
      REQUIRE_THAT(refusal(shape, bad), Contains("is no value of a unit"));
    }
  }
}

TEST_CASE("unit gradient: which units count and their entries arrive, no other column changes",
          "[input_parts]") {
  for (const Shape& shape : kShapes) {
    for (const std::uint64_t on : {0u, 8u, 16u}) {
      CAPTURE(shape.examples, shape.hidden, on);
      const QuantizedActivations codes = codes_for(shape, on);
      const std::vector<std::int32_t> gradient = gradient_for(codes);
      const Bytes packed = pack_unit_gradient(codes, gradient, shape.columns);
      QuantizedActivations out{shape.examples, shape.hidden, {}, Bytes(codes.codes.size(), 77)};
      std::vector<std::int32_t> entries(gradient.size(), 88);
      REQUIRE(unpack_unit_gradient(packed, shape.columns, out, entries).ok());
      for (std::size_t i = 0; i < entries.size(); ++i) {
        const bool is_on = codes.codes[i] != 0;
        const int code = is_own(shape, i) ? (is_on ? 1 : 0) : 77;
        const std::int32_t entry = is_own(shape, i) ? (is_on ? gradient[i] : 0) : 88;
        if (out.codes[i] != code || entries[i] != entry) FAIL("cell " << i);
      }
      REQUIRE(pack_unit_gradient(out, entries, shape.columns) == packed);
    }
  }
}

TEST_CASE("unit gradient: a unit counts by its code, whatever that and its entry are",
          "[input_parts]") {
  QuantizedActivations codes{1, 32, {1.0F}, Bytes(32)};
  codes.codes[16] = 255;
  codes.codes[31] = 3;
  std::vector<std::int32_t> gradient(32);
  gradient[31] = -(1 << (kGradientBits - 1));
  gradient[20] = 5;  // off: not read
  const UnitColumns columns{16, 16};
  const Bytes packed = pack_unit_gradient(codes, gradient, columns);
  REQUIRE(packed.size() == kHeaderBytes + 2 + 1 + 7);  // two entries of 26 bits
  QuantizedActivations out{1, 32, {}, Bytes(32)};
  std::vector<std::int32_t> entries(32);
  REQUIRE(unpack_unit_gradient(packed, columns, out, entries).ok());
  gradient[20] = 0;
  REQUIRE(entries == gradient);
  REQUIRE(out.codes[16] == 1);
  REQUIRE(std::count(out.codes.begin(), out.codes.end(), 1) == 2);
}

TEST_CASE("unit gradient: the format's bytes are pinned", "[input_parts]") {
  QuantizedActivations codes{1, 32, {1.0F}, Bytes(32)};
  codes.codes[16] = codes.codes[17] = codes.codes[26] = 9;
  std::vector<std::int32_t> gradient(32);
  gradient[16] = -1;  // 1
  gradient[17] = 2;   // 4
  gradient[26] = -4;  // 7
  REQUIRE(pack_unit_gradient(codes, gradient, {16, 16}) ==
          Bytes{1, 0, 16, 0, 0b11, 0b100, 3, 0b11100001, 0b1});
}

TEST_CASE("unit gradient: truncations and trailing bytes are refused", "[input_parts]") {
  const Shape shape{3, 48, {16, 32}};
  const QuantizedActivations codes = codes_for(shape, 8);
  Bytes packed = pack_unit_gradient(codes, gradient_for(codes), shape.columns);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    gradient_refusal(shape, cut(packed, size));
  }
  REQUIRE_THAT(gradient_refusal(shape, {}), Contains("unit gradient: cut off within the masks"));
  packed.push_back(0);
  REQUIRE_THAT(gradient_refusal(shape, packed), Contains("bytes of entries"));
}

TEST_CASE("unit gradient: one of another shape is refused", "[input_parts]") {
  const Shape shape{4, 64, {0, 32}};
  const auto packed = [](const Shape& other) {
    const QuantizedActivations codes = codes_for(other, 8);
    return pack_unit_gradient(codes, gradient_for(codes), other.columns);
  };
  REQUIRE_THAT(gradient_refusal(shape, packed({8, 64, {0, 16}})),
               Contains("8 examples of 16 units, expected 4 of 32"));
  REQUIRE_THAT(gradient_refusal(shape, packed({2, 64, {0, 64}})), Contains("expected 4 of 32"));
  REQUIRE_THAT(gradient_refusal(shape, packed({5, 64, {0, 32}})), Contains("5 examples"));
}

TEST_CASE("unit gradient: what pack_unit_gradient cannot have written is refused",
          "[input_parts]") {
  const Shape shape{1, 16, {0, 16}};
  const Bytes good{1, 0, 16, 0, 0b111, 0, 3, 0b11100001, 0b1};
  QuantizedActivations out{1, 16, {}, Bytes(16)};
  std::vector<std::int32_t> entries(16);
  REQUIRE(unpack_unit_gradient(good, shape.columns, out, entries).ok());
  const auto refused = [&](const std::string& words, auto&& spoil) {
    Bytes bad = good;
    spoil(bad);
    REQUIRE_THAT(gradient_refusal(shape, bad), Contains(words));
  };
  refused("padding is not zero", [](Bytes& b) { b[8] = 0b11; });
  refused("but 1 bits suffice", [](Bytes& b) { b[7] = 0b01001001, b[8] = 0; });
  refused("width 33", [](Bytes& b) { b[6] = 33; });
  refused("bytes of entries", [](Bytes& b) { b[4] = 0b1111111; });  // more units than entries
  refused("bytes of entries", [](Bytes& b) { b[4] = 0b1; });        // fewer
  refused("0 bits suffice", [](Bytes& b) {                          // a width where no unit counts
    b[4] = 0;
    b.resize(7);
  });
}

}  // namespace gleaner
