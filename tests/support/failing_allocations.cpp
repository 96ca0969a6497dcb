// SPDX-License-Identifier: BSL-1.0
// Stands before glibc's allocator, in test programs only.
#include <cerrno>
#include <cstddef>

#include "support/no_memory.hpp"
#include "support/sanitized.hpp"

namespace holdfast::test {

namespace {

struct state {
  bool on = false;
  std::size_t seen = 0, first = 0, times = 0;
  long long living = 0;
};
thread_local constinit state now;

#if defined(__GLIBC__)
constexpr bool standing_before_the_allocator = !address_sanitized && !thread_sanitized;
#else
constexpr bool standing_before_the_allocator = false;
#endif

}  // namespace

bool failing_allocations::available() noexcept { return standing_before_the_allocator; }

failing_allocations::failing_allocations(std::size_t n, std::size_t times) noexcept { now = {true, 0, n, times, 0}; }

failing_allocations::~failing_allocations() { now = {}; }

bool failing_allocations::happened() const noexcept { return now.seen > now.first; }

long long failing_allocations::leaked() const noexcept { return now.living; }

}  // namespace holdfast::test

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

namespace {

using holdfast::test::now;

bool fails() noexcept {
  if (!now.on) return false;
  const auto nth = now.seen++;
  if (nth < now.first || nth - now.first >= now.times) return false;
  errno = ENOMEM;
  return true;
}

void* counted(void* p) noexcept {
  if (now.on && p) ++now.living;
  return p;
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t size) { return fails() ? nullptr : counted(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) { return fails() ? nullptr : counted(__libc_calloc(count, size)); }
void* realloc(void* p, std::size_t size) {
  if (fails()) return nullptr;
  auto* const moved = __libc_realloc(p, size);
  return p ? moved : counted(moved);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails() ? nullptr : counted(__libc_memalign(alignment, size));
}
void free(void* p) {
  if (now.on && p) --now.living;
  __libc_free(p);
}
}

#endif
