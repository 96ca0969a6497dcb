// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <utility>

namespace holdfast::detail {

/// Sets a flag while a handler is on its way. The handler owns this object.
///
/// Decision: the flag belongs to the handler. A handler may be destroyed unrun, because there was no memory to post it
/// or its context ends. The flag is cleared then as well, and the next handler can be posted. A flag that its poster
/// had to clear would stay set, and silence a client.
class on_its_way {
 public:
  explicit on_its_way(std::atomic<bool>& flag) noexcept : flag_(&flag) { flag.store(true, std::memory_order_relaxed); }
  on_its_way(on_its_way&& other) noexcept : flag_(std::exchange(other.flag_, nullptr)) {}
  on_its_way& operator=(on_its_way&&) = delete;
  ~on_its_way() { arrived(); }

  /// The handler runs.
  void arrived() noexcept {
    if (auto* const flag = std::exchange(flag_, nullptr)) flag->store(false, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool>* flag_;
};

}  // namespace holdfast::detail
