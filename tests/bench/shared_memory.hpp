// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <type_traits>

namespace holdfast::bench {

/// One object of this process and of all children that it forks from now on.
template <class T>
class shared_memory {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  shared_memory() {
    void* const memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    object_ = new (memory) T;
  }
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  ~shared_memory() { ::munmap(object_, sizeof(T)); }

  T* operator->() const noexcept { return object_; }

 private:
  T* object_;
};

}  // namespace holdfast::bench
