#include "common/net/frame.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "common/limits.hpp"

namespace gleaner {
namespace {

void put_u32(std::uint32_t value, std::uint8_t* target) {
  for (int i = 0; i < 4; ++i) target[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::uint32_t get_u32(const std::uint8_t* source) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= std::uint32_t{source[i]} << (8 * i);
  return value;
}

std::uint32_t checksum_of(ByteView payload) {
  return static_cast<std::uint32_t>(XXH3_64bits(payload.data(), payload.size()));
}

static_assert(kFrameBytesMax <= 0xffffffffu, "a frame's size fits its header");

}  // namespace

std::array<std::uint8_t, kFrameHeaderBytes> frame_header(ByteView payload) {
  GLEANER_CHECK(!payload.empty() && payload.size() <= kFrameBytesMax);
  std::array<std::uint8_t, kFrameHeaderBytes> header{};
  put_u32(static_cast<std::uint32_t>(payload.size()), header.data());
  put_u32(checksum_of(payload), header.data() + 4);
  return header;
}

Result<FrameHeader> parse_frame_header(std::span<const std::uint8_t, kFrameHeaderBytes> bytes) {
  const FrameHeader header{get_u32(bytes.data()), get_u32(bytes.data() + 4)};
  if (header.payload_bytes == 0 || header.payload_bytes > kFrameBytesMax) {
    // Text protocols land here: their first four characters make a huge size.
    return Error{ErrorCode::kProtocol,
                 fmt::format("a frame claims {} bytes (1 to {} are possible): the peer does not "
                             "seem to be a Gleaner program",
                             header.payload_bytes, kFrameBytesMax)};
  }
  return header;
}

Result<void> verify_frame(const FrameHeader& header, ByteView payload) {
  if (payload.size() != header.payload_bytes) {
    return Error{ErrorCode::kProtocol, fmt::format("a frame of {} bytes came with {}",
                                                   header.payload_bytes, payload.size())};
  }
  const std::uint32_t checksum = checksum_of(payload);
  if (checksum != header.checksum) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("a frame of {} bytes was damaged on the way: checksum {:08x}, "
                             "expected {:08x}",
                             payload.size(), checksum, header.checksum)};
  }
  return {};
}

}  // namespace gleaner
