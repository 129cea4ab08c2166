#include "common/text.hpp"

namespace gleaner {
namespace {

// Bytes of the printable character at the front of `text`; 0 if there is none.
std::size_t character_bytes(std::string_view text) {
  const auto first = static_cast<std::uint8_t>(text[0]);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  std::uint32_t point = first & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<std::uint8_t>(text[i]);
    if ((next & 0xc0u) != 0x80) return 0;
    point = (point << 6) | (next & 0x3fu);
  }
  constexpr std::uint32_t kLowest[] = {0, 0, 0xa0, 0x800, 0x10000};
  const bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
  return point >= kLowest[bytes] && point <= 0x10ffff && !is_surrogate ? bytes : 0;
}

}  // namespace

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t bytes_max) {
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view character = bytes == 0 ? "?" : text.substr(0, bytes);
    if (result.size() + character.size() > bytes_max) break;
    result += character;
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return result;
}

}  // namespace gleaner
