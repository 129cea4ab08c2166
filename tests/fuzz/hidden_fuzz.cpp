// Quantized activations have one encoding: whatever unpacks packs to the same bytes.
#include "common/result.hpp"
#include "common/work/quantized_activations.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  const auto codes = unpack_quantized(ByteView(data, size));
  if (codes.ok()) {
    const Bytes again = pack(*codes);
    GLEANER_CHECK(again.size() == size && std::equal(again.begin(), again.end(), data));
  }
  return 0;
}
