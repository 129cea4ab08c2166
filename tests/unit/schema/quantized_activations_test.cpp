#include "common/work/quantized_activations.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/counter_random.hpp"
#include "common/limits.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kHeader = 5;

// About `on_of_16` sixteenths of the units are on.
QuantizedActivations sample(std::uint32_t examples, std::uint32_t hidden, std::uint64_t on_of_16,
                            std::uint32_t bits = 8) {
  Rng rng(examples * 131 + hidden, Purpose::kTest, on_of_16);
  QuantizedActivations codes{examples, hidden, {}, {}, bits};
  for (std::uint32_t i = 0; i < examples; ++i) {
    codes.scales.push_back(static_cast<float>(rng.next_below(1000)) / 1000.0F);
    for (std::uint32_t j = 0; j < hidden; ++j) {
      const bool is_on = rng.chance(on_of_16, 16);
      const auto magnitude = 1 + rng.next_below(code_max(bits));
      const auto code = rng.chance(1, 2) ? magnitude : 256 - magnitude;
      codes.codes.push_back(is_on ? static_cast<std::uint8_t>(code) : std::uint8_t{0});
    }
  }
  return codes;
}

bool is_refused(const Bytes& packed) {
  const auto codes = unpack_quantized(packed);
  return !codes.ok() && codes.error().code == ErrorCode::kProtocol;
}

}  // namespace

TEST_CASE("quantized activations: without a hidden layer only the number of examples travels",
          "[hidden]") {
  QuantizedActivations codes;
  codes.examples = 300;
  const Bytes packed = pack(codes);
  REQUIRE(packed == Bytes{44, 1, 0, 0, 0});
  REQUIRE(unpack_quantized(packed).value() == codes);
  REQUIRE(mean_length(codes) == 0.0);
  REQUIRE_FALSE(unpack_quantized(Bytes{44, 1, 0, 0, 1}).ok());
  REQUIRE_FALSE(unpack_quantized(Bytes{44, 1, 0, 0, 0, 0}).ok());
}

TEST_CASE("quantized activations: packing and unpacking gives the same codes", "[hidden]") {
  const std::uint32_t bits = GENERATE(2u, 3u, 4u, 5u, 6u, 7u, 8u);
  for (const std::uint32_t examples : {1u, 2u, 3u, 17u}) {
    for (const std::uint32_t hidden : {16u, 48u, 64u, 80u, 128u, 1024u}) {
      for (const std::uint64_t on : {0u, 1u, 8u, 13u, 14u, 15u, 16u}) {
        const QuantizedActivations codes = sample(examples, hidden, on, bits);
        const auto unpacked = unpack_quantized(pack(codes));
        REQUIRE(unpacked.ok());
        REQUIRE(*unpacked == codes);
      }
    }
  }
}

TEST_CASE("quantized activations: the largest batch survives", "[hidden]") {
  const QuantizedActivations codes = sample(kBatchExamplesMax, kHiddenMax, 2);
  const auto unpacked = unpack_quantized(pack(codes));
  REQUIRE(unpacked.ok());
  REQUIRE(*unpacked == codes);
}

TEST_CASE("quantized activations: an example of 128 units, 64 on, takes 84 bytes", "[hidden]") {
  QuantizedActivations codes{256, 128, std::vector<float>(256, 0.5F),
                             std::vector<std::uint8_t>(256 * 128)};
  for (std::size_t i = 0; i < codes.codes.size(); i += 2) codes.codes[i] = 7;
  REQUIRE(pack(codes).size() == kHeader + 256 * 84);
}

TEST_CASE("quantized activations: the mask is left out when nearly all units are on", "[hidden]") {
  QuantizedActivations codes{1, 16, {1.0F}, std::vector<std::uint8_t>(16, 200)};
  REQUIRE(pack(codes).size() == kHeader + 4 + 16);
  codes.codes[3] = codes.codes[4] = 0;  // 2 mask bytes + 14 codes: equal, so still dense
  REQUIRE(pack(codes).size() == kHeader + 4 + 16);
  REQUIRE(pack(codes)[4] == 0);
  codes.codes[5] = 0;
  REQUIRE(pack(codes).size() == kHeader + 4 + 2 + 13);
  REQUIRE(pack(codes)[4] == 1);
}

TEST_CASE("quantized activations: their mean length is that of what they stand for", "[hidden]") {
  QuantizedActivations codes{2, 16, {0.5F, 2.0F}, std::vector<std::uint8_t>(32)};
  codes.codes[3] = 3;
  codes.codes[7] = 4;
  codes.codes[16] = 0x81;  // -127
  REQUIRE(mean_length(codes) == (0.5 * 5 + 2.0 * 127) / 2);
  REQUIRE(mean_length(QuantizedActivations{}) == 0);
}

TEST_CASE("quantized activations: the format's bytes are pinned", "[hidden]") {
  QuantizedActivations codes{1, 16, {1.0F}, std::vector<std::uint8_t>(16)};
  codes.codes[0] = 9;
  codes.codes[10] = 255;
  REQUIRE(pack(codes) == Bytes{1, 0, 16, 0, 1, 0, 0, 0x80, 0x3f, 0x01, 0x04, 9, 255});
  codes.bits = 5;  // 9 is 01001, -1 is 11111
  REQUIRE(pack(codes) == Bytes{1, 0, 16, 0, 11, 0, 0, 0x80, 0x3f, 0x01, 0x04, 0xe9, 0x03});
  codes.codes.assign(16, 1);
  codes.bits = 2;
  REQUIRE(pack(codes) == Bytes{1, 0, 16, 0, 4, 0, 0, 0x80, 0x3f, 0x55, 0x55, 0x55, 0x55});
}

TEST_CASE("quantized activations: every truncation and every trailing byte is refused",
          "[hidden]") {
  const std::uint32_t bits = GENERATE(3u, 8u);
  for (const std::uint64_t on : {6u, 16u}) {
    Bytes packed = pack(sample(3, 48, on, bits));
    for (std::size_t size = 0; size < packed.size(); ++size) {
      REQUIRE(is_refused(Bytes(packed.begin(), packed.begin() + static_cast<long>(size))));
    }
    packed.push_back(1);
    REQUIRE(is_refused(packed));
  }
}

TEST_CASE("quantized activations: shapes out of range are refused", "[hidden]") {
  const Bytes packed = pack(sample(1, 16, 8));
  Bytes no_examples = packed;
  no_examples[0] = 0;
  REQUIRE(is_refused(no_examples));
  Bytes huge = packed;
  huge[1] = 0xff;
  REQUIRE(is_refused(huge));
  Bytes odd_width = packed;
  odd_width[2] = 17;
  REQUIRE(is_refused(odd_width));
  Bytes unknown_form = packed;
  for (const std::uint8_t form : Bytes{2, 3, 16, 17, 255}) {
    unknown_form[4] = form;
    REQUIRE(is_refused(unknown_form));
  }
}

TEST_CASE("quantized activations: scales that are no finite number >= 0 are refused", "[hidden]") {
  const Bytes packed = pack(sample(2, 16, 8));
  const float bad[] = {-1.0F, std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::quiet_NaN()};
  for (const float scale : bad) {
    Bytes changed = packed;
    std::memcpy(&changed[kHeader + 4], &scale, 4);
    const auto codes = unpack_quantized(changed);
    REQUIRE_FALSE(codes.ok());
    REQUIRE(codes.error().message.find("scale of example 1") != std::string::npos);
  }
}

TEST_CASE("quantized activations: a zero code among those that are on is refused", "[hidden]") {
  QuantizedActivations codes{1, 16, {1.0F}, std::vector<std::uint8_t>(16)};
  codes.codes[7] = 5;
  Bytes packed = pack(codes);
  REQUIRE(packed.back() == 5);
  packed.back() = 0;
  REQUIRE(is_refused(packed));
}

TEST_CASE("quantized activations: the code -128, which no unit has, is refused", "[hidden]") {
  Bytes packed = pack(QuantizedActivations{1, 16, {1.0F}, std::vector<std::uint8_t>(16, 3)});
  REQUIRE_FALSE(is_refused(packed));
  packed.back() = 0x80;
  REQUIRE(is_refused(packed));
}

TEST_CASE("quantized activations: narrow codes are refused below their lowest, and bits after them",
          "[hidden]") {
  QuantizedActivations codes{1, 16, {1.0F}, std::vector<std::uint8_t>(16), 5};
  codes.codes[2] = 15;
  Bytes packed = pack(codes);
  REQUIRE(packed.back() == 15);
  packed.back() = 0x10;  // -16
  REQUIRE(is_refused(packed));
  packed.back() = 0x20 | 15;
  REQUIRE(is_refused(packed));
  packed.back() = 0x11;  // -15
  REQUIRE(unpack_quantized(packed).value().codes[2] == 256 - 15);
}

TEST_CASE("quantized activations: the longer of the two forms is refused", "[hidden]") {
  const Bytes scale{0, 0, 0x80, 0x3f};
  Bytes masked{1, 0, 16, 0, 1};
  masked.insert(masked.end(), scale.begin(), scale.end());
  masked.insert(masked.end(), {0xff, 0x3f});
  masked.insert(masked.end(), 14, 3);
  REQUIRE(is_refused(masked));
  Bytes dense{1, 0, 16, 0, 0};
  dense.insert(dense.end(), scale.begin(), scale.end());
  dense.insert(dense.end(), 13, 3);
  dense.insert(dense.end(), 3, 0);
  REQUIRE(is_refused(dense));
  dense.back() = 3;  // now 14 are on: dense is right
  REQUIRE_FALSE(is_refused(dense));
}

}  // namespace gleaner
