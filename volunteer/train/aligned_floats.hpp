// Floats that begin on a cache line, so that a row of a multiple of 16 never straddles one more
// line than it must.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace gleaner {

template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;

  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}  // NOLINT: implicit, as allocators are

  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }

  void deallocate(T* pointer, std::size_t) { ::operator delete(pointer, kAlignment); }

  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
};

using AlignedFloats = std::vector<float, CacheLineAllocator<float>>;

}  // namespace gleaner
