// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <atomic>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/source_allocator.hpp"

namespace holdfast::detail {

/// Memory for objects that come and go with each lock. A block that was given back serves the next object of its size.
/// Each block that was taken keeps the pool alive.
///
/// Decision: these objects have a pool. With hundreds of locks under way the heap's own short lists are empty, and
/// malloc and free were a fifth of a lock/unlock pair. The strand takes blocks. Whichever thread drops the last
/// reference gives them back, without a lock. The pool keeps at most a quarter of a megabyte of each size. Lists for
/// each thread would be as quick, but no object could own them.
class block_pool final : public boost::intrusive_ref_counter<block_pool> {
  // The sizes that the heap's own blocks have, so that none is rounded up twice.
  static constexpr std::size_t least = 8, step = 16, sizes = 64;

 public:
  static constexpr std::size_t alignment = alignof(std::max_align_t);
  static constexpr std::size_t largest = least + (sizes - 1) * step;  ///< larger blocks are the heap's

  block_pool() noexcept = default;
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;
  ~block_pool() { close(); }

  // One call of take() or close() at a time, on whichever thread.
  void* take(std::size_t size);
  /// Any thread. `size`: as it was taken.
  void give_back(void* block, std::size_t size) noexcept;
  /// Keeps nothing any more.
  void close() noexcept;

 private:
  static constexpr std::size_t most_kept_of_a_size = 256 * 1024;  // bytes

  static constexpr std::size_t number_of(std::size_t size) noexcept { return (size + step - least - 1) / step; }
  static constexpr std::size_t size_of(std::size_t number) noexcept { return least + number * step; }

  struct free_block {
    free_block* next;
  };
  struct shelf {
    free_block* first = nullptr;                 // the strand's
    std::atomic<free_block*> returned{nullptr};  // newest first; taken all at once
    std::atomic<std::size_t> kept{0};            // about so many; right again when there are none
  };

  void* find(std::size_t number, std::size_t size);
  void keep(void* block, std::size_t number) noexcept;
  static void free_all(free_block* first) noexcept;

  std::array<shelf, sizes> shelves_;
  std::atomic<bool> closed_{false};
};
using block_pool_ptr = boost::intrusive_ptr<block_pool>;

/// std::make_shared() in a pool.
template <class T, class... Args>
std::shared_ptr<T> make_pooled(const block_pool_ptr& pool, Args&&... args) {
  return std::allocate_shared<T>(source_allocator<T, block_pool>(*pool), std::forward<Args>(args)...);
}

}  // namespace holdfast::detail
