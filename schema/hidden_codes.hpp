// The hidden layer's output for a batch, as it crosses the network: 8-bit codes from -127 to 127
// in two's complement, with one scale per example. A unit with code zero (dropped, rectified or
// tiny) takes no part in the forward pass and gets no gradient, so it is left out on the wire where
// that is shorter (a mask bit per unit, then the codes that are not zero).
#pragma once

#include <cstdint>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"

namespace gleaner {

// Where there is no hidden layer, H is 0, and all that is left is the number of examples.
struct HiddenCodes {
  std::uint32_t examples = 0;
  std::uint32_t hidden = 0;         // H, a multiple of 16
  std::vector<float> scales;        // examples, none where H is 0; h = scale * code; finite, >= 0
  std::vector<std::uint8_t> codes;  // examples x hidden; never 128, which would be -128
  friend bool operator==(const HiddenCodes&, const HiddenCodes&) = default;
};

// Mean over the examples of the length (Euclidean norm) of their h; 0 of none. The same bits
// everywhere.
double mean_length(const HiddenCodes& codes);

// examples <= kBatchExamplesMax, hidden <= kHiddenMax.
Bytes pack(const HiddenCodes& codes);
// Refuses anything `pack` cannot have written, also trailing bytes. The format is in README.md.
Result<HiddenCodes> unpack_hidden(ByteView packed);

}  // namespace gleaner
