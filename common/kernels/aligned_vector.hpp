// Vectors that begin on a cache line, so that a sixteen-lane load of a row touches one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace gleaner {

template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;

  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>& /*other*/) {}  // NOLINT: implicit on purpose

  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }

  void deallocate(T* pointer, std::size_t /*count*/) { ::operator delete(pointer, kAlignment); }

  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace gleaner
