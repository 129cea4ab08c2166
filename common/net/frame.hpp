// Framing, without I/O: [u32 payload size][u32 checksum of the payload][payload], little endian.
// The checksum is the low half of XXH3-64. The size is checked against kFrameBytesMax before
// anything is allocated. Stateless; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
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

// Memory that all connections may take together, for frames that have not come whole or that wait
// to be sent. What an honest peer takes is small and soon over; peers that begin large frames and
// never finish them, or read nothing, would fill the memory of this process. Beyond the budget the
// connection that takes the most is closed. One thread.
class FrameBudget {
 public:
  explicit FrameBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // One connection's memory. The budget outlives it.
  class Share {
   public:
    // `close` ends the connection; it is called at most once, from within anybody's hold().
    // `budget` may be null: then nothing is counted.
    Share(FrameBudget* budget, std::function<void()> close);

    ~Share() { hold(0); }

    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // The connection is about to hold `bytes` in all.
    void hold(std::size_t bytes);

   private:
    friend class FrameBudget;

    FrameBudget* budget_;
    std::function<void()> close_;
    std::size_t bytes_ = 0;
  };

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void close_largest();

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::set<Share*> shares_;  // that hold something
};

}  // namespace gleaner
