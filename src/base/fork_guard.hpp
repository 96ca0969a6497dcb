// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace holdfast::detail {

/// The process in which it was made. A fork() copies what that process holds, and the copy holds nothing: whatever
/// would act for it asks here first. Any thread, no system call.
class fork_guard {
 public:
  fork_guard() noexcept;
  /// In a child of that process.
  bool elsewhere() const noexcept;

 private:
  unsigned forks_;  // that this process descends from, when it was made
};

}  // namespace holdfast::detail
