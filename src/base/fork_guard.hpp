// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace holdfast::detail {

/// The process in which it was made. Any thread, no system call.
///
/// Decision: a child process ends its copies. After fork() both processes read from the same sockets and the same
/// timerfd. A reply that the child takes is missing in the parent, and shifts all replies that follow. So a copy holds
/// nothing: code that would act for it asks elsewhere() first. Asio notifies the child's context, and that ends the
/// clients.
class fork_guard {
 public:
  fork_guard() noexcept;
  /// In a child of that process.
  bool elsewhere() const noexcept;

 private:
  unsigned forks_;  // that this process descends from, when the guard was made
};

}  // namespace holdfast::detail
