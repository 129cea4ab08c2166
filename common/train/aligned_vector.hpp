// Vectors that begin on a cache line, so that a sixteen-lane load of a row touches one line. Large
// vectors lie on huge pages where the system has them: rows are read in random order, and each
// small page would need its own entry in the TLB.
#pragma once

#include <cstddef>
#include <vector>

#include "common/limits.hpp"

namespace gleaner {

// Allocates `bytes` that begin on a cache line and are not initialised.
void* allocate_lines(std::size_t bytes);
void free_lines(void* pointer, std::size_t bytes);

template <typename T>
struct CacheLineAllocator {
  using value_type = T;

  CacheLineAllocator() = default;

  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>& /*other*/) {}  // NOLINT: implicit on purpose

  T* allocate(std::size_t count) { return static_cast<T*>(allocate_lines(count * sizeof(T))); }

  void deallocate(T* pointer, std::size_t count) { free_lines(pointer, count * sizeof(T)); }

  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace gleaner
