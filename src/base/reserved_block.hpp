// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <cstddef>
#include <new>

namespace holdfast::detail {

/// Memory for one object at a time that must be had. The heap has the memory of a second or larger one.
class reserved_block {
 public:
  reserved_block() = default;
  reserved_block(const reserved_block&) = delete;
  reserved_block& operator=(const reserved_block&) = delete;

  void* take(std::size_t size) {
    if (size <= sizeof block_ && !taken_.exchange(true, std::memory_order_acquire)) return block_;
    return ::operator new(size);
  }
  /// Any thread.
  void give_back(void* p) noexcept {
    if (p != block_) return ::operator delete(p);
    taken_.store(false, std::memory_order_release);
  }

 private:
  alignas(std::max_align_t) std::byte block_[512];
  std::atomic<bool> taken_{false};
};

template <class T>
struct reserved_allocator {
  using value_type = T;

  explicit reserved_allocator(reserved_block& from) noexcept : block(&from) {}
  template <class Other>
  reserved_allocator(const reserved_allocator<Other>& other) noexcept : block(other.block) {}

  T* allocate(std::size_t n) { return static_cast<T*>(block->take(n * sizeof(T))); }
  void deallocate(T* p, std::size_t) noexcept { block->give_back(p); }
  friend bool operator==(const reserved_allocator&, const reserved_allocator&) = default;

  reserved_block* block;
};

}  // namespace holdfast::detail
