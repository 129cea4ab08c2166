#include "common/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace gleaner {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "gleaner: internal error: %s does not hold (%s:%d)\n", condition, file,
               line);
  std::abort();
}

}  // namespace gleaner
