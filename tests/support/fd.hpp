// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <string>

namespace holdfast::test {

/// Closes a file descriptor at the end of its scope.
class unique_fd {
 public:
  unique_fd() = default;
  explicit unique_fd(int fd) noexcept : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(other.release()) {}
  unique_fd& operator=(unique_fd&& other) noexcept;
  ~unique_fd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept;
  void reset() noexcept;

 private:
  int fd_ = -1;
};

/// Throws std::system_error of errno; `text` says what failed.
[[noreturn]] void throw_errno(const std::string& text);

/// Waits until `fd` is ready for `events` (as poll(2)); false at the deadline. Throws on failure.
bool wait_ready(int fd, short events, std::chrono::steady_clock::time_point deadline);

}  // namespace holdfast::test
