#include "common/bytes.hpp"

namespace gleaner {
namespace {

constexpr std::string_view kDigits = "abcdefghijklmnopqrstuvwxyz234567";

}  // namespace

std::string to_base32(ByteView bytes) {
  std::string text;
  std::uint32_t pending = 0;
  int bits = 0;
  for (const std::uint8_t byte : bytes) {
    pending = (pending << 8 | byte) & 0xfffu;
    for (bits += 8; bits >= 5; bits -= 5) text += kDigits[(pending >> (bits - 5)) & 31u];
  }
  if (bits > 0) text += kDigits[(pending << (5 - bits)) & 31u];
  return text;
}

std::optional<Bytes> from_base32(std::string_view text, std::size_t bytes) {
  if (text.size() != base32_size(bytes)) return std::nullopt;
  Bytes decoded;
  std::uint32_t pending = 0;
  int bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    pending = (pending << 5 | static_cast<std::uint32_t>(digit)) & 0xfffu;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    decoded.push_back(static_cast<std::uint8_t>(pending >> bits));
  }
  // Padding bits of the last character must be zero: bytes have exactly one text.
  if ((pending & ((1u << bits) - 1)) != 0) return std::nullopt;
  return decoded;
}

}  // namespace gleaner
