// A connection's bytes: frame header, then a message. The message is read whether or not the
// checksum fits, since a fuzzer cannot guess one.
#include "common/net/frame.hpp"
#include "common/result.hpp"
#include "schema/wire/codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  const ByteView bytes(data, size);
  if (size < kFrameHeaderBytes) return 0;
  const ByteView payload = bytes.subspan(kFrameHeaderBytes);
  const auto header = parse_frame_header(bytes.first<kFrameHeaderBytes>());
  if (header.ok() && verify_frame(*header, payload).ok()) {
    GLEANER_CHECK(std::equal(bytes.begin(), bytes.begin() + kFrameHeaderBytes,
                             frame_header(payload).begin()));
  }
  const auto message = decode(payload);
  if (!message.ok()) return 0;
  const Bytes again = encode(*message);
  const auto twice = decode(again);
  GLEANER_CHECK(twice.ok() && encode(*twice) == again);
  return 0;
}
