// Who a volunteer is to the masters it works for: 128 random bits, kept in its cache folder so that
// its account survives a restart.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace gleaner::volunteer {

struct Identity {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};

// From the kernel's generator; the one place that asks it.
Identity random_identity();

// The identity in `cache_dir`/identity, made there when it is missing. An empty `cache_dir` gives a
// new one each time. Errors name the file.
Result<Identity> load_identity(const std::string& cache_dir);

}  // namespace gleaner::volunteer
