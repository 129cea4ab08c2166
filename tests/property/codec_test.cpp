// Round trips, damage, and the pinned bytes of every message.
#include "schema/wire/codec.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/property/codec_messages.hpp"
#include "tests/property/property_seed.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kKinds = std::variant_size_v<Message>;

std::string hex(const Bytes& bytes) {
  static const char* const kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// name -> hex digits, from lines "name digits".
std::map<std::string, std::string> golden_file() {
  std::ifstream file(GLEANER_CODEC_GOLDEN);
  std::map<std::string, std::string> golden;
  std::string name;
  std::string digits;
  while (file >> name >> digits) golden[name] = digits;
  return golden;
}

// Damaged bytes fail, or decode to something that survives a round trip of its own.
void require_safe(const Bytes& bytes) {
  const auto decoded = decode(bytes);
  if (!decoded.ok()) {
    REQUIRE(decoded.error().code == ErrorCode::kProtocol);
    REQUIRE(decoded.error().message.size() > 10);
    return;
  }
  const Bytes again = encode(*decoded);
  const auto twice = decode(again);
  REQUIRE(twice.ok());
  REQUIRE(encode(*twice) == again);
}

void require_safe_update(const Bytes& bytes) {
  const auto decoded = decode_update(bytes);
  if (!decoded.ok()) {
    REQUIRE(decoded.error().code == ErrorCode::kCorrupt);
    return;
  }
  REQUIRE(decode_update(encode_update(*decoded)).ok());
}

}  // namespace

TEST_CASE("codec: random messages of every kind come back equal", "[codec]") {
  const std::uint64_t seed = property_seed();
  INFO("GLEANER_SEED=" << seed);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    INFO(message_name(kind));
    Rng rng(seed, Purpose::kTest, kind);
    for (int i = 0; i < 100; ++i) {
      const Message message = testing::random_message(kind, rng);
      REQUIRE(message.index() == kind);
      const auto decoded = decode(encode(message));
      INFO((decoded.ok() ? "" : decoded.error().message));
      REQUIRE(decoded.ok());
      REQUIRE(testing::are_equal(message, *decoded));
    }
  }
}

TEST_CASE("codec: random stored updates come back equal", "[codec]") {
  Rng rng(property_seed(), Purpose::kTest, 100);
  for (int i = 0; i < 200; ++i) {
    const SparseUpdate update = testing::random_update(rng);
    const auto decoded = decode_update(encode_update(update));
    REQUIRE(decoded.ok());
    REQUIRE(*decoded == update);
  }
}

TEST_CASE("codec: bytes at any alignment decode alike", "[codec]") {
  for (const Message& message : testing::sample_messages()) {
    const Bytes bytes = encode(message);
    for (std::size_t offset = 0; offset < 8; ++offset) {
      Bytes shifted(offset);
      shifted.insert(shifted.end(), bytes.begin(), bytes.end());
      const auto decoded = decode(ByteView(shifted).subspan(offset));
      REQUIRE(decoded.ok());
      REQUIRE(testing::are_equal(message, *decoded));
    }
  }
}

TEST_CASE("codec: every flipped bit of a message fails or decodes to something sound", "[codec]") {
  for (const Message& message : testing::sample_messages()) {
    INFO(message_name(message));
    const Bytes bytes = encode(message);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      Bytes damaged = bytes;
      damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      require_safe(damaged);
    }
  }
}

TEST_CASE("codec: every truncation of a message fails", "[codec]") {
  for (const Message& message : testing::sample_messages()) {
    INFO(message_name(message));
    Bytes bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      REQUIRE_FALSE(decode(ByteView(bytes).first(size)).ok());
    }
    bytes.resize(bytes.size() + 8);
    REQUIRE_FALSE(decode(bytes).ok());
  }
}

TEST_CASE("codec: damaged stored updates fail or decode to something sound", "[codec]") {
  const Bytes bytes = encode_update(testing::sample_update());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    require_safe_update(damaged);
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    REQUIRE_FALSE(decode_update(ByteView(bytes).first(size)).ok());
  }
}

TEST_CASE("codec: the bytes of one message of each kind are pinned", "[codec]") {
  const auto golden = golden_file();
  const auto samples = testing::sample_messages();
  REQUIRE(samples.size() == kKinds);
  REQUIRE(golden.size() == kKinds + 1);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    INFO(message_name(kind));
    REQUIRE(samples[kind].index() == kind);
    REQUIRE(hex(encode(samples[kind])) == golden.at(message_name(kind)));
  }
  REQUIRE(hex(encode_update(testing::sample_update())) == golden.at("StoredUpdate"));
}

}  // namespace gleaner
