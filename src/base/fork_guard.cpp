// SPDX-License-Identifier: BSL-1.0
#include "base/fork_guard.hpp"

#include <pthread.h>

#include <atomic>

namespace holdfast::detail {

namespace {

std::atomic<unsigned> forks{0};

void count_forks_in_children() {
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace

fork_guard::fork_guard() noexcept {
  count_forks_in_children();
  forks_ = forks.load(std::memory_order_relaxed);
}

bool fork_guard::elsewhere() const noexcept { return forks_ != forks.load(std::memory_order_relaxed); }

}  // namespace holdfast::detail
