#include "common/train/aligned_vector.hpp"

#include <sys/mman.h>

#include <new>

namespace gleaner {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= kHugePageBytes ? kHugePageBytes : kCacheLine};
}

}  // namespace

void* allocate_lines(std::size_t bytes) {
  void* pointer = ::operator new(bytes, alignment_of(bytes));
#if defined(MADV_HUGEPAGE)
  // The rest of the last page stays on small ones, so that nothing more than asked for is used.
  // Where the advice is refused, memory works all the same.
  const std::size_t whole = bytes / kHugePageBytes * kHugePageBytes;
  if (whole > 0) (void)::madvise(pointer, whole, MADV_HUGEPAGE);
#endif
  return pointer;
}

void free_lines(void* pointer, std::size_t bytes) {
  ::operator delete(pointer, alignment_of(bytes));
}

}  // namespace gleaner
