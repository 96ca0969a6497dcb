// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/fd.hpp"

namespace holdfast::test {

/// A path if `name` is an executable file in PATH or is itself such a path; else empty.
std::string find_executable(std::string_view name);

/// Another program: started at once, killed and reaped when this object ends, and killed by the kernel should this
/// process die first. Inherits no file descriptor but stdin, stdout and stderr. One thread at a time.
class child_process {
 public:
  struct options {
    std::string executable{};                // a path, or a name to be found in PATH
    std::vector<std::string> argv{};         // argv[0] first; empty: {executable}
    std::vector<std::string> environment{};  // "NAME=value", replacing or added to ours
    std::string output_file{};               // stdout and stderr are appended here; empty: see pipes
    bool pipes = true;                       // stdin and stdout are ours to write and read; false: inherited
  };

  /// Throws std::runtime_error when the program cannot be started.
  explicit child_process(options what);
  child_process(child_process&&) noexcept;
  child_process& operator=(child_process&&) noexcept;
  ~child_process();

  pid_t pid() const noexcept { return pid_; }
  /// False once it ended, also when nobody waited for it.
  bool running() const noexcept;

  void signal(int number);
  /// SIGSTOP; returns when it has stopped.
  void stop();
  void cont();
  /// SIGKILL, then waits.
  void kill() noexcept;
  /// Exit status, 128 + n if signal n ended it; nothing if it still runs after `timeout`. May be called again.
  std::optional<int> wait(std::chrono::milliseconds timeout);

  /// To its stdin. Throws when it does not read any more.
  void write(std::string_view bytes);
  void close_input() noexcept { input_.reset(); }
  /// One line of its stdout without '\n'; nothing at the end of the output or after `timeout`.
  std::optional<std::string> read_line(std::chrono::milliseconds timeout);
  /// What is left of its stdout; waits for its end, at most `timeout`.
  std::string read_all(std::chrono::milliseconds timeout);

 private:
  bool fill(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  pid_t parent_ = -1;  // a fork of this process must not kill what it did not start
  unique_fd handle_, input_, output_;
  std::string buffer_;
  std::optional<int> status_;
};

}  // namespace holdfast::test
