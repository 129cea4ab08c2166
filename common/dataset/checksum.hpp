// XXH3 with 64 bits, the checksum of packed files. Detects damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gleaner {

std::uint64_t checksum(const void* bytes, std::size_t count);

// Gives the same value for the same bytes in whatever pieces they arrive.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  ChecksumStream(const ChecksumStream&) = delete;
  ChecksumStream& operator=(const ChecksumStream&) = delete;

  void reset();
  void add(const void* bytes, std::size_t count);
  [[nodiscard]] std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gleaner
