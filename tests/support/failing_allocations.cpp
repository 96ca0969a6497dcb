// SPDX-License-Identifier: BSL-1.0
// Stands before glibc's allocator, in test programs only.
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "support/no_memory.hpp"
#include "support/sanitized.hpp"

namespace holdfast::test {

namespace {

struct state {
  bool on = false;
  std::size_t seen = 0, first = 0, times = 0;
  failing_allocations::of whom = failing_allocations::of::everybody;
  long long living = 0;
};
thread_local constinit state now;
thread_local constinit bool guarding = false;

#if defined(__GLIBC__)
constexpr bool standing_before_the_allocator = !address_sanitized && !thread_sanitized;
#else
constexpr bool standing_before_the_allocator = false;
#endif

}  // namespace

bool failing_allocations::available() noexcept { return standing_before_the_allocator; }

failing_allocations::failing_allocations(std::size_t n, std::size_t times, of whom) noexcept {
  now = {true, 0, n, times, whom, 0};
}

failing_allocations::~failing_allocations() { now = {}; }

bool failing_allocations::happened() const noexcept { return now.seen > now.first; }

long long failing_allocations::leaked() const noexcept { return now.living; }

guarded_blocks::guarded_blocks() noexcept { guarding = true; }

guarded_blocks::~guarded_blocks() { guarding = false; }

}  // namespace holdfast::test

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

using holdfast::test::guarding;
using holdfast::test::now;

bool fails(bool of_asio) noexcept {
  using of = holdfast::test::failing_allocations::of;
  if (!now.on || (of_asio && now.whom == of::everybody_but_asio)) return false;
  const auto nth = now.seen++;
  if (nth < now.first || nth - now.first >= now.times) return false;
  errno = ENOMEM;
  return true;
}

void* counted(void* p) noexcept {
  if (now.on && p) ++now.living;
  return p;
}

/// The blocks of guarded_blocks: a range of addresses of which each is used once, so that it is touched by mistake
/// alone.
class guarded_range {
 public:
  /// Null where it is used up. What is new is 0.
  void* take(std::size_t alignment, std::size_t size) noexcept {
    if (alignment > page / 2) return nullptr;
    const std::size_t head = alignment > least_head ? alignment : least_head;
    const std::size_t all = (head + size + page - 1) / page * page;
    auto* const start = begin() ? begin() + used_.fetch_add(all, std::memory_order_relaxed) : nullptr;
    if (!start || start + all > begin() + range || ::mprotect(start, all, PROT_READ | PROT_WRITE) != 0) return nullptr;
    *reinterpret_cast<std::size_t*>(start) = all;
    return start + head;
  }
  bool has(const void* p) const noexcept {
    const auto* const first = begin_.load(std::memory_order_relaxed);
    return first && p >= first && p < first + range;
  }
  std::size_t size_of(void* p) const noexcept {
    auto* const start = start_of(p);
    return *reinterpret_cast<std::size_t*>(start) - static_cast<std::size_t>(static_cast<char*>(p) - start);
  }
  void give_back(void* p) const noexcept {
    auto* const start = start_of(p);
    const auto all = *reinterpret_cast<std::size_t*>(start);
    ::mmap(start, all, PROT_NONE, kind | MAP_FIXED, -1, 0);
  }

 private:
  static constexpr std::size_t page = 4096, least_head = 16, range = std::size_t{1} << 38;
  static constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

  static char* start_of(void* p) noexcept {
    return reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(p) / page * page);
  }
  char* begin() noexcept {
    if (auto* const known = begin_.load(std::memory_order_acquire)) return known;
    void* const made = ::mmap(nullptr, range, PROT_NONE, kind, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    char* none = nullptr;
    if (begin_.compare_exchange_strong(none, static_cast<char*>(made))) return static_cast<char*>(made);
    ::munmap(made, range);
    return none;
  }

  std::atomic<char*> begin_{nullptr};
  std::atomic<std::size_t> used_{0};
};
constinit guarded_range guarded;

void* taken(std::size_t alignment, std::size_t size) noexcept {
  if (guarding)
    if (auto* const p = guarded.take(alignment, size)) return p;
  return alignment <= alignof(std::max_align_t) ? __libc_malloc(size) : __libc_memalign(alignment, size);
}

void given_back(void* p) noexcept { guarded.has(p) ? guarded.give_back(p) : __libc_free(p); }

void* moved(void* p, std::size_t size) noexcept {
  if (!guarding && !guarded.has(p)) return __libc_realloc(p, size);
  auto* const to = taken(alignof(std::max_align_t), size);
  if (!to || !p) return to;
  const auto before = guarded.has(p) ? guarded.size_of(p) : ::malloc_usable_size(p);
  std::memcpy(to, p, before < size ? before : size);
  given_back(p);
  return to;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
  return fails(size < sizeof(void*)) ? nullptr : counted(taken(alignof(std::max_align_t), size));
}
void* calloc(std::size_t count, std::size_t size) {
  if (fails(false)) return nullptr;
  if (!guarding || (size != 0 && count > PTRDIFF_MAX / size)) return counted(__libc_calloc(count, size));
  auto* const p = taken(alignof(std::max_align_t), count * size);
  return counted(p ? std::memset(p, 0, count * size) : p);
}
void* realloc(void* p, std::size_t size) {
  if (fails(false)) return nullptr;
  auto* const to = moved(p, size);
  return p ? to : counted(to);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails(true) ? nullptr : counted(taken(alignment, size));
}
void free(void* p) {
  if (now.on && p) --now.living;
  given_back(p);
}
}

#endif
