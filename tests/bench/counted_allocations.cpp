// SPDX-License-Identifier: BSL-1.0
// Stands before glibc's allocator, in the bench only. Asio asks for aligned memory: operator new would not see all.
#include "bench/counted_allocations.hpp"

#include <cerrno>
#include <cstddef>

namespace holdfast::bench {
namespace {

thread_local constinit std::uint64_t asked = 0;

}  // namespace

std::uint64_t allocations() noexcept { return asked; }

}  // namespace holdfast::bench

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  ++holdfast::bench::asked;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++holdfast::bench::asked;
  return __libc_calloc(count, size);
}
void* realloc(void* p, std::size_t size) {
  ++holdfast::bench::asked;
  return __libc_realloc(p, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  ++holdfast::bench::asked;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** p, std::size_t alignment, std::size_t size) {
  void* const made = memalign(alignment, size);
  if (!made) return ENOMEM;
  *p = made;
  return 0;
}
}
