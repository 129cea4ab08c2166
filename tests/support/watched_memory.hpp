// Counted allocations, and a machine with little memory. Programs that link watched_memory.cpp get
// its operator new.
#pragma once

#include <cstddef>

namespace gleaner::test {

// So far, on all threads.
std::size_t allocations();

// While the object lives, allocations of `bytes` or more fail, on all threads. One object at a
// time.
class ScarceMemory {
 public:
  explicit ScarceMemory(std::size_t bytes);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

}  // namespace gleaner::test
