// Counts the bytes that a process has in use and their peak, for whoever preloads this library.
//
// It stands before the allocator of glibc and hands every call on to it. Unlike the resident memory
// that the system reports, the count knows no pages, caches or neighbours: the same program gives
// the same numbers.
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include <atomic>
#include <cstdint>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

std::atomic<int64_t> in_use{0}, peak{0};

void* gained(void* memory) {
  if (!memory) return memory;
  int64_t bytes = int64_t(malloc_usable_size(memory));
  int64_t now = in_use.fetch_add(bytes) + bytes, highest = peak.load();
  while (now > highest && !peak.compare_exchange_weak(highest, now)) {
  }
  return memory;
}

void lost(void* memory) {
  if (memory) in_use -= int64_t(malloc_usable_size(memory));
}

}  // namespace

#define EXPORTED __attribute__((visibility("default")))

extern "C" {

EXPORTED void* malloc(size_t bytes) noexcept { return gained(__libc_malloc(bytes)); }

EXPORTED void* calloc(size_t count, size_t bytes) noexcept {
  return gained(__libc_calloc(count, bytes));
}

EXPORTED void* realloc(void* memory, size_t bytes) noexcept {
  lost(memory);
  void* moved = __libc_realloc(memory, bytes);
  if (!moved && bytes) gained(memory);  // what could not be moved is still there
  return gained(moved);
}

EXPORTED void free(void* memory) noexcept {
  lost(memory);
  __libc_free(memory);
}

EXPORTED void* memalign(size_t alignment, size_t bytes) noexcept {
  return gained(__libc_memalign(alignment, bytes));
}

EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return gained(__libc_memalign(alignment, bytes));
}

EXPORTED int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  void* found = gained(__libc_memalign(alignment, bytes));
  if (found) *memory = found;
  return found ? 0 : ENOMEM;
}

// Lets the peak start again from what is in use, and tells it.
EXPORTED int64_t allocations_restart() {
  peak = in_use.load();
  return peak;
}

EXPORTED int64_t allocations_peak() { return peak; }
}
