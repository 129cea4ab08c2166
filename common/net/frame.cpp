#include "common/net/frame.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

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
    // Text protocols fail here: their first four characters make a huge size.
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

FrameBudget::Share::Share(FrameBudget* budget, std::function<void()> close)
    : budget_(budget), close_(std::move(close)) {}

void FrameBudget::Share::hold(std::size_t bytes) {
  if (budget_ == nullptr) return;
  FrameBudget& budget = *budget_;  // close_largest() may remove this share from it
  budget.bytes_ += bytes - bytes_;
  bytes_ = bytes;
  if (bytes == 0) {
    budget.shares_.erase(this);
    return;
  }
  budget.shares_.insert(this);
  while (budget.bytes_ > budget.bytes_max_) budget.close_largest();
}

void FrameBudget::close_largest() {
  const auto largest = std::ranges::max_element(
      shares_, [](const Share* a, const Share* b) { return a->bytes_ < b->bytes_; });
  Share& share = **largest;
  bytes_ -= share.bytes_;
  share.bytes_ = 0;
  share.budget_ = nullptr;  // its later reads are not counted
  shares_.erase(largest);
  share.close_();
}

}  // namespace gleaner
