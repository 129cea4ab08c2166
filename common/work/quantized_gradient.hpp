// The gradient of a batch's activations, as integers modulo 2^26, in multiples of
// 2^gradient_step_log2. Such integers have the same sum in any order and grouping, even after an
// overflow. On the wire: for each example the width of its largest entry, then its entries at that
// width, only for units whose code is not zero.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "common/work/quantized_activations.hpp"

namespace gleaner {

inline constexpr int kGradientBits = 26;

// `gradient` is codes.examples x codes.hidden, from -2^25 to 2^25 - 1; entries of units whose code
// is zero are not read.
Bytes pack_gradient(const QuantizedActivations& codes, std::span<const std::int32_t> gradient);

// The number of units of each example whose code is not zero; a packed gradient's size depends on
// it.
std::vector<std::uint32_t> count_units_on(const QuantizedActivations& codes);

// Cheap: whether pack_gradient can have written a gradient of this size for such a batch. If so,
// add_gradient adds all of it.
Result<void> check_gradient_size(std::span<const std::uint32_t> units_on, ByteView packed);

// Adds the packed gradient to `sum` (codes.examples x codes.hidden). Refuses bytes that
// pack_gradient cannot have written. A wrong size adds nothing; a number in another form than
// pack_gradient's is refused after it has been added.
Result<void> add_gradient(const QuantizedActivations& codes, ByteView packed,
                          std::span<std::int32_t> sum);

// Two sums modulo 2^26 of the gradient's entries, each entry times a number that depends on its
// place. The check of a sum of gradients is the sum of their checks, which reveals a wrong sum:
// always if one entry is wrong, otherwise except with probability 2^-52. It does not reveal a peer
// that chooses the checks to match. Entries of units whose code is zero are not read.
std::uint64_t gradient_check(const QuantizedActivations& codes,
                             std::span<const std::int32_t> gradient);
std::uint64_t add_checks(std::uint64_t one, std::uint64_t other);

}  // namespace gleaner
