#include "common/net/frame.hpp"

#include <catch2/catch.hpp>

#include "common/limits.hpp"

namespace gleaner {
namespace {

Bytes sample() {
  return {1, 2, 3, 250, 251, 252, 0, 9, 77};
}

std::array<std::uint8_t, kFrameHeaderBytes> header_of_size(std::uint32_t size) {
  std::array<std::uint8_t, kFrameHeaderBytes> bytes{};
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(size >> (8 * i));
  return bytes;
}

}  // namespace

TEST_CASE("frame: what was framed verifies", "[frame]") {
  const Bytes payload = sample();
  const auto header = parse_frame_header(frame_header(payload));
  REQUIRE(header.ok());
  REQUIRE(header->payload_bytes == payload.size());
  REQUIRE(verify_frame(*header, payload).ok());
}

TEST_CASE("frame: the header's bytes are pinned", "[frame]") {
  const auto header = frame_header(sample());
  REQUIRE(header == std::array<std::uint8_t, 8>{9, 0, 0, 0, 0xc3, 0xb7, 0x18, 0x01});
}

TEST_CASE("frame: sizes of zero and beyond the limit are refused", "[frame]") {
  const auto limit = static_cast<std::uint32_t>(kFrameBytesMax);
  REQUIRE_FALSE(parse_frame_header(header_of_size(0)).ok());
  REQUIRE(parse_frame_header(header_of_size(1)).ok());
  REQUIRE(parse_frame_header(header_of_size(limit)).ok());
  REQUIRE_FALSE(parse_frame_header(header_of_size(limit + 1)).ok());
  REQUIRE_FALSE(parse_frame_header(header_of_size(0xffffffffu)).ok());
}

TEST_CASE("frame: a browser's first bytes are refused as another protocol", "[frame]") {
  const std::array<std::uint8_t, 8> bytes{'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'};
  const auto header = parse_frame_header(bytes);
  REQUIRE_FALSE(header.ok());
  REQUIRE(header.error().code == ErrorCode::kProtocol);
  REQUIRE(header.error().message.find("does not seem to be a Gleaner program") !=
          std::string::npos);
}

TEST_CASE("frame: every damaged bit of the payload is noticed", "[frame]") {
  const Bytes payload = sample();
  const auto header = parse_frame_header(frame_header(payload));
  for (std::size_t bit = 0; bit < payload.size() * 8; ++bit) {
    Bytes damaged = payload;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    const auto verified = verify_frame(*header, damaged);
    REQUIRE_FALSE(verified.ok());
    REQUIRE(verified.error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("frame: a payload of another size is refused", "[frame]") {
  const auto header = parse_frame_header(frame_header(sample()));
  Bytes longer = sample();
  longer.push_back(0);
  REQUIRE(verify_frame(*header, longer).error().code == ErrorCode::kProtocol);
}

}  // namespace gleaner
