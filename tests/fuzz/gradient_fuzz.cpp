// Input: u8 examples, u8 sixteenths of the width, one mask bit a unit, then a packed gradient.
// A gradient has one encoding for given codes: what can be added packs to the same bytes.
#include "common/result.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  const ByteView bytes(data, size);
  if (size < 2) return 0;
  const std::uint32_t examples = bytes[0] % 8 + 1u;
  const std::uint32_t hidden = (bytes[1] % 8 + 1u) * 16;
  const std::size_t cells = std::size_t{examples} * hidden;
  if (size < 2 + cells / 8) return 0;
  QuantizedActivations codes{examples, hidden, std::vector<float>(examples), Bytes(cells)};
  for (std::size_t i = 0; i < cells; ++i) codes.codes[i] = (bytes[2 + i / 8] >> (i % 8)) & 1u;
  const ByteView packed = bytes.subspan(2 + cells / 8);
  std::vector<std::int32_t> sum(cells);
  if (add_gradient(codes, packed, sum).ok()) {
    const Bytes again = pack_gradient(codes, sum);
    GLEANER_CHECK(std::equal(again.begin(), again.end(), packed.begin(), packed.end()));
    // A second time may leave the range, and comes back at its other end.
    GLEANER_CHECK(add_gradient(codes, packed, sum).ok());
    (void)pack_gradient(codes, sum);
  }
  return 0;
}
