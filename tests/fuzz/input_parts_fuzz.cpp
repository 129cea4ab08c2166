// Input: u8 examples, u8 sixteenths of the width, then packed activations or a packed unit gradient
// of a column block with others on both sides. Each has one encoding: what unpacks packs to the
// same bytes.
#include <algorithm>

#include "common/result.hpp"
#include "common/work/input_parts.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  const ByteView bytes(data, size);
  if (size < 2) return 0;
  const std::uint32_t examples = bytes[0] % 8 + 1u;
  const UnitColumns columns{16, (bytes[1] % 8 + 1u) * 16};
  const std::uint32_t hidden = columns.width + 32;
  const ByteView packed = bytes.subspan(2);
  const auto is_same = [&](const Bytes& again) {
    return std::equal(again.begin(), again.end(), packed.begin(), packed.end());
  };
  std::vector<float> activations(std::size_t{examples} * hidden);
  if (unpack_activations(packed, examples, hidden, columns, activations).ok()) {
    GLEANER_CHECK(is_same(pack_activations(examples, hidden, columns, activations)));
  }
  QuantizedActivations codes{examples, hidden, {}, Bytes(activations.size())};
  std::vector<std::int32_t> gradient(activations.size());
  if (unpack_unit_gradient(packed, columns, codes, gradient).ok()) {
    GLEANER_CHECK(is_same(pack_unit_gradient(codes, gradient, columns)));
  }
  return 0;
}
