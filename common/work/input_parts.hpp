// A batch between master and an input shard's holder, as it crosses the network: the shard's
// activations in full precision, since the scale of an example depends on all shards; and its part
// of dh, with a bit for every unit that counts, since only the master knows the codes. Units that
// are off take a bit each. The formats are in README.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "common/work/quantized_activations.hpp"

namespace gleaner {

// Columns [begin, begin + width) of a batch's examples x hidden; begin and width are multiples of
// 16.
struct UnitColumns {
  std::uint32_t begin = 0;
  std::uint32_t width = 0;
};

// `activations` is examples x hidden, within +-kActivationMax; those of zero are left out.
Bytes pack_activations(std::uint32_t examples, std::uint32_t hidden, UnitColumns columns,
                       std::span<const float> activations);
// Writes these columns of `activations`. Refuses what pack_activations cannot have written for this
// shape; `activations` is then unspecified in these columns.
Result<void> unpack_activations(ByteView packed, std::uint32_t examples, std::uint32_t hidden,
                                UnitColumns columns, std::span<float> activations);

// `gradient` is codes.examples x codes.hidden; entries of units whose code is zero are not read.
Bytes pack_unit_gradient(const QuantizedActivations& codes, std::span<const std::int32_t> gradient,
                         UnitColumns columns);
// Writes these columns: 1 in `codes` for units that count, else 0, and their entries of `gradient`
// (both codes.examples x codes.hidden). Refuses as above.
Result<void> unpack_unit_gradient(ByteView packed, UnitColumns columns, QuantizedActivations& codes,
                                  std::span<std::int32_t> gradient);

}  // namespace gleaner
