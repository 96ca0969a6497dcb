// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

namespace holdfast::test {

/// From its making to its end this process gets no memory in blocks of `least` bytes and more: the address space may
/// not grow, and what the heap has of such blocks is taken.
class no_memory {
 public:
  explicit no_memory(std::size_t least = sizeof(block)) {
    if (::getrlimit(RLIMIT_AS, &before_) != 0) throw std::system_error(errno, std::generic_category(), "getrlimit");
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    auto all_there_is = before_;
    all_there_is.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
    if (::setrlimit(RLIMIT_AS, &all_there_is) != 0)
      throw std::system_error(errno, std::generic_category(), "setrlimit");
    for (std::size_t size = std::size_t{1} << 20; size > 1024 && size > least; size /= 2) take_all(size);
    for (std::size_t size = 1024; size > least; size -= alignof(std::max_align_t)) take_all(size);
    take_all(least);
  }
  no_memory(const no_memory&) = delete;
  no_memory& operator=(const no_memory&) = delete;
  ~no_memory() {
    while (taken_) std::free(std::exchange(taken_, taken_->next));
    ::setrlimit(RLIMIT_AS, &before_);
  }

 private:
  struct block {
    block* next;
  };
  void take_all(std::size_t size) {
    while (auto* more = static_cast<block*>(std::malloc(size))) {
      more->next = taken_;
      taken_ = more;
    }
  }

  rlimit before_{};
  block* taken_ = nullptr;
};

/// From its making to its end, for this thread: allocations fail from the n-th on (0: the next), `times` of them; all
/// others succeed. operator new and malloc are the same to it. One at a time. To try each n: until happened() is false.
class failing_allocations {
 public:
  /// False under a sanitizer, which has the allocator for itself.
  static bool available() noexcept;
  /// Asio cannot mend an allocation of its own that fails on the way of a handler to its strand: the strand never runs
  /// again. It takes aligned blocks for handlers, and less than a pointer for a property of an executor.
  enum class of { everybody, everybody_but_asio };

  explicit failing_allocations(std::size_t n, std::size_t times = 1, of whom = of::everybody) noexcept;
  failing_allocations(const failing_allocations&) = delete;
  failing_allocations& operator=(const failing_allocations&) = delete;
  ~failing_allocations();

  bool happened() const noexcept;
  /// Allocated since its making and not freed yet.
  long long leaked() const noexcept;
};

/// From its making to its end, for this thread: each block of memory has pages of its own, which nobody may touch once
/// it is freed. Whoever uses a block after its end is stopped there, where the heap would let him read what the block
/// was. The block may be freed by any thread, and later. One at a time; does nothing under a sanitizer.
class guarded_blocks {
 public:
  guarded_blocks() noexcept;
  guarded_blocks(const guarded_blocks&) = delete;
  guarded_blocks& operator=(const guarded_blocks&) = delete;
  ~guarded_blocks();
};

}  // namespace holdfast::test
