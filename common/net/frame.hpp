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

// Limits the memory that all connections together use for incomplete frames, or for frames to be
// sent. Honest peers use little and briefly; peers that never finish large frames, or never read,
// could fill the process's memory. Beyond the budget the connection with the most memory is closed.
// One thread.
class FrameBudget {
 public:
  explicit FrameBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // The memory of one connection. The budget outlives it.
  class Share {
   public:
    // `close` ends the connection. It is called at most once, from within hold() of any share. With
    // a null `budget` nothing is counted.
    Share(FrameBudget* budget, std::function<void()> close);

    ~Share() { hold(0); }

    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Announces that the connection will hold `bytes` in total.
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
  std::set<Share*> shares_;  // shares that hold memory
};

}  // namespace gleaner
