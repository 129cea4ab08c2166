// Allocations that are counted, and a machine with little memory. Programs that link
// watched_memory.cpp have its operator new.
#pragma once

#include <cstddef>

namespace gleaner::test {

// So far, on all threads.
std::size_t allocations();

// While it lives, no allocation of `bytes` or more succeeds, on any thread. One at a time.
class ScarceMemory {
 public:
  explicit ScarceMemory(std::size_t bytes);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

}  // namespace gleaner::test
