// While the object lives, the process has no free file descriptor.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace gleaner::testing {

class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int next = dup(0);  // the lowest free number
    REQUIRE(next >= 0);
    close(next);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  }

  ~NoDescriptorsLeft() { setrlimit(RLIMIT_NOFILE, &before_); }

  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;

 private:
  rlimit before_{};
};

}  // namespace gleaner::testing
