// Framing, without I/O: [u32 little endian payload size][u32 CRC32C or XXH32 of the
// payload][payload]. The size is checked against kFrameBytesMax before anything is allocated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/bytes.hpp"
#include "common/result.hpp"

namespace gleaner {

inline constexpr std::size_t kFrameHeaderBytes = 8;

struct FrameHeader {
  std::uint32_t payload_bytes = 0;
  std::uint32_t checksum = 0;
};

// Requires payload.size() <= kFrameBytesMax.
std::array<std::uint8_t, kFrameHeaderBytes> frame_header(ByteView payload);
// Refuses sizes of zero and beyond kFrameBytesMax.
Result<FrameHeader> parse_frame_header(std::span<const std::uint8_t, kFrameHeaderBytes> bytes);
Result<void> verify_frame(const FrameHeader& header, ByteView payload);

}  // namespace gleaner
