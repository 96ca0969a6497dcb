// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
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
/// other processes of the job keep it until the command reads it. When the terminal stops the command (Ctrl-Z), this
/// process stops too, and the lease with it. The command goes on when the caller says so: the lease may have ended.
///
/// Decision: the rest of the job is stopped only if the terminal did not do so: when the command had the terminal, or
/// read it in the background. Two of these processes in one pipeline would else stop each other once more.
///
/// Decision: children of others are reaped as well. As process 1 of a container, this process inherits those that the
/// command leaves, and nobody else would.
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
  /// SIGTSTP and SIGCONT, unless they are ignored. They are blocked while this object lives: for a signalfd.
  sigset_t stops() const noexcept;
  enum class state { runs, was_stopped, has_ended };
  /// To be called after each SIGCHLD. `was_stopped`: this process was stopped with the command, and goes on; the
  /// command waits for SIGCONT.
  state look();
  /// Takes the terminal back. `whole_group`: whatever is left of the group is killed. Returns the status as a shell has
  /// it: 128 + N after signal N.
  int finish(bool whole_group) noexcept;

 private:
  /// Decision: a stop or a SIGCONT is pending in the kernel until it is read. There a SIGCONT drops a pending stop, and
  /// a stop a pending SIGCONT. In a queue of ours an old stop would outlive the SIGCONT, and stop the command again.
  struct blocked_stops {
    blocked_stops() noexcept;
    ~blocked_stops();
  };
  struct inheritance {
    int report;  // gets the reason why there is no program
    int lost;    // the number of HOLDFAST_LOST_FD
    pid_t parent;
    bool with_terminal;
    sigset_t signals;  // that are blocked
  };
  [[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& environment,
                           const inheritance& inherited);
  void reap_others() const noexcept;
  state after_stop(int signal) const noexcept;
  void stop_with_it(bool whole_job) const noexcept;
  bool we_have_terminal() const noexcept;
  bool command_has_terminal() const noexcept;
  bool give_terminal(pid_t group) const noexcept;

  const blocked_stops blocked_{};
  const int terminal_;  // of this session; -1: none
  int lost_read_ = -1, lost_write_ = -1;
  pid_t id_ = -1;
};

}  // namespace holdfast::cli
