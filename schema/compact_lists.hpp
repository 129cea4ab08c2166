// Lists of integers in few bytes; the formats are in README.md. Private to schema/. Reading throws
// Malformed (with `field`) for anything that writing cannot have produced.
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

// How the codec's readers fail. Private to schema/. Every accessor of Cap'n Proto may throw, so
// the checks beside them throw as well, and decode() turns both into an Error in one place.
struct Malformed {
  std::string what;  // begins with the field's name
};

// Throws: `field`, a colon, and the formatted rest.
template <typename... Args>
[[noreturn]] void malformed(const char* field, fmt::format_string<Args...> format, Args&&... args) {
  throw Malformed{fmt::format("{}: {}", field, fmt::format(format, std::forward<Args>(args)...))};
}

// Varints.
Bytes pack_counts(const std::vector<std::uint32_t>& counts);
std::vector<std::uint32_t> unpack_counts(const char* field, ByteView packed, std::size_t count_max);

// For each example the number of labels, then the gaps between their neurons, as varints.
Bytes pack_positives(const Positives& positives);
// `id_end`: neurons are below it.
Positives unpack_positives(const char* field, ByteView packed, std::uint32_t id_end = kLabelsMax);

// Levels of `rows` rows (shard_rows.hpp): the number a row, then four bits each.
Bytes pack_levels(const std::vector<std::int8_t>& levels, std::size_t rows);
// Packs them in fewer bytes where zstd finds some, for a network: small levels are the most
// frequent.
Bytes pack_levels_small(const std::vector<std::int8_t>& levels, std::size_t rows);
// Reads either.
std::vector<std::int8_t> unpack_levels(const char* field, ByteView packed, std::size_t rows);

// Table codes of `rows` rows, at the width that the largest needs.
Bytes pack_codes(const std::vector<std::uint32_t>& codes, std::size_t rows);
std::vector<std::uint32_t> unpack_codes(const char* field, ByteView packed, std::size_t rows);

}  // namespace gleaner
