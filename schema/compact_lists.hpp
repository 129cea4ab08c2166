// Lists of integers in few bytes; README.md has the formats. Private to schema/. Reading throws
// Malformed (with `field`) for bytes that writing cannot have produced.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/bytes.hpp"
#include "common/limits.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// The exception of the codec's readers. Cap'n Proto's accessors may throw anyway, so the checks
// throw as well, and decode() turns both into an Error. Private to schema/.
struct Malformed {
  std::string what;  // begins with the field's name
};

// Throws Malformed with `field`, a colon, and the formatted text.
template <typename... Args>
[[noreturn]] void malformed(const char* field, fmt::format_string<Args...> format, Args&&... args) {
  throw Malformed{fmt::format("{}: {}", field, fmt::format(format, std::forward<Args>(args)...))};
}

// Varints.
Bytes pack_counts(const std::vector<std::uint32_t>& counts);
std::vector<std::uint32_t> unpack_counts(const char* field, ByteView packed, std::size_t count_max);

// For each example the number of labels, then the gaps between their neurons, as varints.
Bytes pack_positives(const Positives& positives);
// All neurons must be below `id_end`.
Positives unpack_positives(const char* field, ByteView packed, std::uint32_t id_end = kLabelsMax);

// Levels of `rows` rows (shard_rows.hpp): the number per row, then four bits per level.
Bytes pack_levels(const std::vector<std::int8_t>& levels, std::size_t rows);
// For a network: compresses the levels with zstd where that is shorter, since small levels are
// frequent.
Bytes pack_levels_small(const std::vector<std::int8_t>& levels, std::size_t rows);
// Reads both forms.
std::vector<std::int8_t> unpack_levels(const char* field, ByteView packed, std::size_t rows);

// Hash codes of `rows` rows, at the width of the largest.
Bytes pack_codes(const std::vector<std::uint32_t>& codes, std::size_t rows);
std::vector<std::uint32_t> unpack_codes(const char* field, ByteView packed, std::size_t rows);

}  // namespace gleaner
