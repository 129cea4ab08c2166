// Random fields of messages, and the random messages of tools.
#pragma once

#include <bit>
#include <cmath>
#include <iterator>
#include <string>

#include "common/counter_random.hpp"
#include "schema/messages.hpp"

namespace gleaner::testing {

inline std::uint32_t number(Rng& rng) {
  return static_cast<std::uint32_t>(rng.next());
}

inline std::size_t up_to(Rng& rng, std::uint64_t most) {
  return static_cast<std::size_t>(rng.next_below(most + 1));
}

inline float finite(Rng& rng) {
  while (true) {
    const float value = std::bit_cast<float>(number(rng));
    if (std::isfinite(value)) return value;
  }
}

inline std::string text(Rng& rng, std::size_t bytes_max) {
  static const char* const kCharacters[] = {
      "a", "Z", " ", "\"", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8c\xbe"};
  std::string result;
  for (std::size_t left = up_to(rng, bytes_max / 4); left > 0; --left) {
    result += kCharacters[rng.next_below(std::size(kCharacters))];
  }
  return result;
}

RunStatus run_status(Rng& rng);
AccessRequest access_request(Rng& rng);
AccessAnswer access_answer(Rng& rng);

}  // namespace gleaner::testing
