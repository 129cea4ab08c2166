// The packed forms of a batch between the master and the holder of an input shard: the shard's
// activations in full precision, because an example's scale depends on all shards; and the
// gradients of its units, with one bit per unit that counts, because only the master knows the
// quantized activations. A zero activation takes one bit. schema/README.md has the formats.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "common/work/quantized_activations.hpp"

namespace gleaner {

// Columns [begin, begin + width) of a matrix examples x hidden. Both are multiples of 16.
struct UnitColumns {
  std::uint32_t begin = 0;
  std::uint32_t width = 0;
};

// `activations` is examples x hidden, within +-kActivationMax; zeros are left out.
Bytes pack_activations(std::uint32_t examples, std::uint32_t hidden, UnitColumns columns,
                       std::span<const float> activations);
// Writes these columns of `activations`. Refuses bytes that pack_activations cannot have written
// for this shape; the columns are then unspecified.
Result<void> unpack_activations(ByteView packed, std::uint32_t examples, std::uint32_t hidden,
                                UnitColumns columns, std::span<float> activations);

// `gradient` is codes.examples x codes.hidden; entries of units whose code is zero are not read.
Bytes pack_unit_gradient(const QuantizedActivations& codes, std::span<const std::int32_t> gradient,
                         UnitColumns columns);
// Writes these columns of `codes` (1 for units that count, else 0) and of `gradient`; both are
// codes.examples x codes.hidden. Refuses as unpack_activations does.
Result<void> unpack_unit_gradient(ByteView packed, UnitColumns columns, QuantizedActivations& codes,
                                  std::span<std::int32_t> gradient);

}  // namespace gleaner
