#include "common/train/aligned_vector.hpp"

#include <new>

#include "common/os/process.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= kHugePageBytes ? kHugePageBytes : kCacheLine};
}

}  // namespace

void* allocate_lines(std::size_t bytes) {
  void* pointer = ::operator new(bytes, alignment_of(bytes));
  // The rest of the last page stays on small pages, so that no memory beyond `bytes` is used.
  const std::size_t whole = bytes / kHugePageBytes * kHugePageBytes;
  if (whole > 0) os::prefer_large_pages(pointer, whole);
  return pointer;
}

void free_lines(void* pointer, std::size_t bytes) {
  ::operator delete(pointer, alignment_of(bytes));
}

}  // namespace gleaner
