// A stored part of a commit.
#include "common/result.hpp"
#include "schema/wire/codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  const auto update = decode_update(ByteView(data, size));
  if (!update.ok()) return 0;
  const auto again = decode_update(encode_update(*update));
  GLEANER_CHECK(again.ok() && encode_update(*again) == encode_update(*update));
  return 0;
}
