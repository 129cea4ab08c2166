// The hidden layer's output for a batch in its wire form: codes of 2 to 8 bits, from -code_max to
// code_max in two's complement, with one scale per example. A unit with code zero (dropped,
// rectified or tiny) takes no part in the forward pass and gets no gradient. Zero codes are
// therefore left out where that is shorter: a mask bit per unit, then the codes that are not zero.
#pragma once

#include <cstdint>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"

namespace gleaner {

// The largest code of `bits`; the smallest is its negative.
constexpr std::uint32_t code_max(std::uint32_t bits) {
  return (1u << (bits - 1)) - 1;
}

// Without a hidden layer H is 0, and only the number of examples remains.
struct QuantizedActivations {
  std::uint32_t examples = 0;
  std::uint32_t hidden = 0;         // H, a multiple of 16
  std::vector<float> scales;        // examples, none where H is 0; h = scale * code; finite, >= 0
  std::vector<std::uint8_t> codes;  // examples x hidden, each a byte in two's complement
  std::uint32_t bits = 8;           // per packed code
  friend bool operator==(const QuantizedActivations&, const QuantizedActivations&) = default;
};

// Mean over the examples of the Euclidean length of h; 0 without examples. Same bits everywhere.
double mean_length(const QuantizedActivations& codes);

// examples <= kBatchExamplesMax, hidden <= kHiddenMax; codes fit their bits.
Bytes pack(const QuantizedActivations& codes);
// Refuses bytes that `pack` cannot have written, and trailing bytes. schema/README.md has
// the format.
Result<QuantizedActivations> unpack_quantized(ByteView packed);

}  // namespace gleaner
