// SPDX-License-Identifier: BSL-1.0
#include "base/block_pool.hpp"

#include <algorithm>
#include <new>

namespace holdfast::detail {
namespace {

// A block that is used after its end must be found.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool keeps = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool keeps = false;
#else
constexpr bool keeps = true;
#endif
#else
constexpr bool keeps = true;
#endif

}  // namespace

void* block_pool::take(std::size_t size) {
  void* const block = find(number_of(size), size);
  intrusive_ptr_add_ref(this);
  return block;
}

void* block_pool::find(std::size_t index, std::size_t size) {
  if (index >= sizes) return ::operator new(size);
  auto& shelf = shelves_[index];
  if (!shelf.first && shelf.returned.load(std::memory_order_relaxed))
    shelf.first = shelf.returned.exchange(nullptr, std::memory_order_acquire);
  if (!shelf.first) {
    shelf.kept.store(0, std::memory_order_relaxed);
    return ::operator new(size_of(index));
  }
  const auto kept = shelf.kept.load(std::memory_order_relaxed);
  shelf.kept.store(kept - std::min<std::size_t>(kept, 1), std::memory_order_relaxed);
  return std::exchange(shelf.first, shelf.first->next);
}

void block_pool::give_back(void* block, std::size_t size) noexcept {
  keep(block, number_of(size));
  intrusive_ptr_release(this);
}

void block_pool::keep(void* block, std::size_t index) noexcept {
  if (!keeps || index >= sizes || closed_.load(std::memory_order_relaxed)) return ::operator delete(block);
  auto& shelf = shelves_[index];
  const auto kept = shelf.kept.load(std::memory_order_relaxed);
  if (kept * size_of(index) >= most_kept_of_a_size) return ::operator delete(block);
  shelf.kept.store(kept + 1, std::memory_order_relaxed);
  auto* const mine = new (block) free_block{shelf.returned.load(std::memory_order_relaxed)};
  while (
      !shelf.returned.compare_exchange_weak(mine->next, mine, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

// Blocks that are given back at the same time are freed by the destructor.
void block_pool::close() noexcept {
  closed_.store(true, std::memory_order_relaxed);
  for (auto& shelf : shelves_) {
    free_all(std::exchange(shelf.first, nullptr));
    free_all(shelf.returned.exchange(nullptr, std::memory_order_acquire));
  }
}

void block_pool::free_all(free_block* first) noexcept {
  while (first) ::operator delete(std::exchange(first, first->next));
}

}  // namespace holdfast::detail
