// The gradient with respect to a batch's activations as integers modulo 2^26, in multiples of
// 2^gradient_step_log2. Integers modulo 2^26 have the same sum in any order and grouping, also
// where a sum leaves the range. On the wire: for each example the width its largest entry needs,
// then its entries at that width, only for the units whose code is not zero.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "common/work/quantized_activations.hpp"

namespace gleaner {

inline constexpr int kGradientBits = 26;

// `gradient` is codes.examples x codes.hidden, from -2^25 to 2^25 - 1; entries of suppressed units
// are not read.
Bytes pack_gradient(const QuantizedActivations& codes, std::span<const std::int32_t> gradient);

// How many units of each example are on, from which a packed gradient's size follows.
std::vector<std::uint32_t> count_units_on(const QuantizedActivations& codes);

// Whether a packed gradient has a size that pack_gradient can have given it for such a batch; then
// add_gradient adds all of it. Costs next to nothing.
Result<void> check_gradient_size(std::span<const std::uint32_t> units_on, ByteView packed);

// Adds the packed gradient to `sum` (codes.examples x codes.hidden). Refuses what pack_gradient
// cannot have written. A gradient of a wrong size adds nothing; numbers that pack_gradient would
// have written in another form are refused after they have been added.
Result<void> add_gradient(const QuantizedActivations& codes, ByteView packed,
                          std::span<std::int32_t> sum);

// Two sums modulo 2^26 of the gradient's entries, each times a number that its place gives. The
// check of a sum of gradients is the sum of their checks, so that whoever knows these sees that
// something was added wrongly: always where one entry is wrong, else but for one time in 2^52. Who
// can choose the checks too is not found out. Entries of suppressed units are not read.
std::uint64_t gradient_check(const QuantizedActivations& codes,
                             std::span<const std::int32_t> gradient);
std::uint64_t add_checks(std::uint64_t one, std::uint64_t other);

}  // namespace gleaner
