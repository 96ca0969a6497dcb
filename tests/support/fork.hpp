// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace holdfast::test {

/// A child that is a copy of this process and does one thing, beside it. Killed and reaped with this object.
class forked {
 public:
  /// `deed` says in the child whether all went well; the child ends then, without running anything else.
  template <class Deed>
  explicit forked(Deed deed) : pid_(::fork()) {
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool good = false;
    try {
      good = deed();
    } catch (...) {
    }
    ::_exit(good ? 0 : 1);
  }
  forked(const forked&) = delete;
  forked& operator=(const forked&) = delete;
  ~forked() { kill(); }

  /// SIGSTOP; returns when it has stopped.
  void stop() {
    ::kill(pid_, SIGSTOP);
    reap(WUNTRACED);
  }
  void cont() { ::kill(pid_, SIGCONT); }
  /// SIGKILL, then waits.
  void kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    reap(0);
    pid_ = -1;
  }
  /// Waits for its end: whether it has said that all went well.
  bool went_well() {
    const int status = reap(0);
    pid_ = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  int reap(int options) {
    int status = 0;
    while (::waitpid(pid_, &status, options) < 0)
      if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    return status;
  }

  pid_t pid_;
};

/// What `question` says in a child.
template <class Question>
bool in_child(Question question) {
  return forked(std::move(question)).went_well();
}

}  // namespace holdfast::test
