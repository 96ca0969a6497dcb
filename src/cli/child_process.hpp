// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace holdfast::cli {

/// The command cannot be started. `status`: as a shell has it, 126 or 127.
struct start_failure : std::runtime_error {
  start_failure(int status_, const std::string& text) : std::runtime_error(text), status(status_) {}
  int status;
};

/// A command in a process group of its own.
///
/// Decision: a group, so that a signal reaches what the command has forked. A process that leaves the group (setsid, or
/// the jobs of an interactive shell) is not reached.
///
/// Decision: the kernel kills the command when this process dies (PR_SET_PDEATHSIG). SIGKILL, because nobody would be
/// left to follow a polite signal with a rude one. It reaches the command alone, not what that has forked.
///
/// Decision: the command gets the terminal if this process has it in the foreground and writes to it. In a pipeline the
/// other processes of the job keep it. When the command is stopped (Ctrl-Z), this job stops too, and the lease with it.
class child_process {
 public:
  /// The variables are added to this process's own; an empty text removes one. HOLDFAST_LOST_FD is added as well: a
  /// pipe that ends when announce_loss() is called or this process dies.
  /// Throws start_failure.
  child_process(const std::vector<std::string>& command, std::vector<std::pair<std::string, std::string>> variables);
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  /// Ends the group if the command has not ended.
  ~child_process();

  void signal_group(int number) const noexcept;
  void announce_loss() noexcept;
  /// To be called after each SIGCHLD. True: the command has ended. A command that was stopped stops this job as well.
  bool look();
  /// Takes the terminal back. `whole_group`: whatever is left of the group is killed. Returns the status as a shell has
  /// it: 128 + N after signal N.
  int finish(bool whole_group) noexcept;

 private:
  struct inheritance {
    int report;  // gets the reason why there is no program
    int lost;    // the number of HOLDFAST_LOST_FD
    pid_t parent;
  };
  [[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& environment,
                           const inheritance& inherited);
  void give_terminal(pid_t group) const noexcept;
  void stop_with_it() const noexcept;

  bool foreground_ = false;
  int lost_read_ = -1, lost_write_ = -1;
  pid_t id_ = -1;
};

}  // namespace holdfast::cli
