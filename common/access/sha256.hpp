// SHA-256 of a stream.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "common/bytes.hpp"

namespace gleaner {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(ByteView bytes);
  std::array<std::uint8_t, 32> finish_bytes();
  // Ends the stream. Returns 64 hexadecimal digits.
  std::string finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner
