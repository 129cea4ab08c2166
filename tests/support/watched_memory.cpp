#include "tests/support/watched_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::size_t kPlenty = std::numeric_limits<std::size_t>::max();
std::atomic<std::size_t> refused_bytes{kPlenty};
std::atomic<std::size_t> count{0};

// Null when there is none.
void* find(std::size_t bytes, std::size_t alignment) noexcept {
  ++count;
  if (bytes >= refused_bytes) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  void* pointer = find(bytes, alignment);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}

// Sanitizers bring operators of their own, which must not meet these.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return find(bytes, alignof(std::max_align_t));
}

void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return find(bytes, static_cast<std::size_t>(alignment));
}

void operator delete(void* pointer) noexcept {
  std::free(pointer);
}

void operator delete(void* pointer, std::size_t) noexcept {
  std::free(pointer);
}

void operator delete(void* pointer, std::align_val_t) noexcept {
  std::free(pointer);
}

void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept {
  std::free(pointer);
}

void operator delete(void* pointer, const std::nothrow_t&) noexcept {
  std::free(pointer);
}

void operator delete(void* pointer, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(pointer);
}

namespace gleaner::test {

std::size_t allocations() {
  return count;
}

ScarceMemory::ScarceMemory(std::size_t bytes) {
  refused_bytes = bytes;
}

ScarceMemory::~ScarceMemory() {
  refused_bytes = kPlenty;
}

}  // namespace gleaner::test
