#include "common/data/packed_format.hpp"

#define XXH_STATIC_LINKING_ONLY  // for a state that needs no allocation of its own
#include <xxhash.h>

namespace gleaner {

std::uint64_t checksum(const void* bytes, std::size_t count) {
  return XXH3_64bits(bytes, count);
}

struct ChecksumStream::State {
  XXH3_state_t xxh3;
};

ChecksumStream::ChecksumStream() : state_(std::make_unique<State>()) {
  reset();
}

ChecksumStream::~ChecksumStream() = default;

void ChecksumStream::reset() {
  XXH3_64bits_reset(&state_->xxh3);
}

void ChecksumStream::add(const void* bytes, std::size_t count) {
  XXH3_64bits_update(&state_->xxh3, bytes, count);
}

std::uint64_t ChecksumStream::value() const {
  return XXH3_64bits_digest(&state_->xxh3);
}

}  // namespace gleaner
