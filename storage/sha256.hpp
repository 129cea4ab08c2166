// SHA-256 of a stream.
#pragma once

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
  // 64 hexadecimal digits; ends the stream.
  std::string finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner
