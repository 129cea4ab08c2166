// Bytes as lower-case letters a to z and digits 2 to 7 (RFC 4648 without padding): safe in URLs and
// shells, selected by a double click, and never mistaken for a flag.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/bytes.hpp"

namespace gleaner {

// Characters that N bytes take.
constexpr std::size_t base32_size(std::size_t bytes) {
  return (bytes * 8 + 4) / 5;
}

std::string to_base32(ByteView bytes);
// Nullopt unless `text` is what to_base32() writes for some `bytes` bytes.
std::optional<Bytes> from_base32(std::string_view text, std::size_t bytes);

}  // namespace gleaner
