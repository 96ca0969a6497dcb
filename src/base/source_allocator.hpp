// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>

/// The standard's allocator over a source of memory: a block_pool or a reserved_block.
namespace holdfast::detail {

/// `Source` has take(size), give_back(memory, size) and the alignment that its memory has. It outlives what it gave.
template <class T, class Source>
struct source_allocator {
  using value_type = T;

  explicit source_allocator(Source& from) noexcept : source(&from) {}
  template <class Other>
  source_allocator(const source_allocator<Other, Source>& other) noexcept : source(other.source) {}

  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= Source::alignment);
    return static_cast<T*>(source->take(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept { source->give_back(memory, count * sizeof(T)); }
  friend bool operator==(const source_allocator&, const source_allocator&) = default;

  Source* source;
};

}  // namespace holdfast::detail
