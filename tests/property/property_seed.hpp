// The seed of the property tests: fixed unless GLEANER_SEED is set. Tests print it on failure.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace gleaner {

inline std::uint64_t property_seed() {
  const char* text = std::getenv("GLEANER_SEED");  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? 20240607 : std::strtoull(text, nullptr, 10);
}

}  // namespace gleaner
