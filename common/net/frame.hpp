// Framing, without I/O: [u32 payload size][u32 checksum of the payload][payload], little endian.
// The checksum is the low half of XXH3-64. The size is checked against kFrameBytesMax before
// anything is allocated. Stateless; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/bytes.hpp"
#include "common/result.hpp"

namespace gleaner {

inline constexpr std::size_t kFrameHeaderBytes = 8;

struct FrameHeader {
  std::uint32_t payload_bytes = 0;
  std::uint32_t checksum = 0;
};

// Requires 0 < payload.size() <= kFrameBytesMax.
std::array<std::uint8_t, kFrameHeaderBytes> frame_header(ByteView payload);
// Refuses sizes of zero and beyond kFrameBytesMax.
Result<FrameHeader> parse_frame_header(std::span<const std::uint8_t, kFrameHeaderBytes> bytes);
// Refuses a payload of another size or checksum than the header's.
Result<void> verify_frame(const FrameHeader& header, ByteView payload);

}  // namespace gleaner
