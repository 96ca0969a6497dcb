// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

#include "base/source_allocator.hpp"

/// Memory that is reserved before it is needed, so that a step that must not fail takes none from the heap.
namespace holdfast::detail {

/// The block serves one object at a time, on any thread.
class reusable_block {
 public:
  bool take() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
  void give_back() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

/// The block serves one object. It may be gone when that object's memory is given back, so nothing is written then.
class single_use_block {
 public:
  bool take() noexcept { return !std::exchange(taken_, true); }
  void give_back() noexcept {}

 private:
  bool taken_ = false;
};

/// The heap has the memory of a second or larger object. `Use`: reusable_block or single_use_block.
template <std::size_t Size, class Use>
class reserved_block {
 public:
  static constexpr std::size_t alignment = alignof(void*);  // all that Asio's handlers need, and a waiter stays small

  reserved_block() noexcept {}  // not defaulted: `{}` would fill the bytes with zeros
  reserved_block(const reserved_block&) = delete;
  reserved_block& operator=(const reserved_block&) = delete;

  void* take(std::size_t size) {
    if (size <= Size && use_.take()) return block_;
    return ::operator new(size);
  }
  void give_back(void* memory, std::size_t) noexcept {
    if (memory != block_) return ::operator delete(memory);
    use_.give_back();
  }

 private:
  alignas(void*) std::byte block_[Size];
  Use use_;
};

}  // namespace holdfast::detail
