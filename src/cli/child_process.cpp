// SPDX-License-Identifier: BSL-1.0
#include "cli/child_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/exit_status.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {
namespace {

[[noreturn]] void fail(const std::string& doing, int number) {
  throw start_failure(number == ENOENT ? not_found : cannot_execute, doing + ": " + std::strerror(number));
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe", errno);
  return ends;
}

bool is_in_foreground() {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : variables) replaced |= text.starts_with(name + '=');
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : variables)
    if (!value.empty()) all.push_back(name + '=' + value);
  return all;
}

/// The lowest number that the command does not get from us anyway: shells know one digit only.
int number_for_command(int taken) {
  int number = STDERR_FILENO + 1;
  for (;; ++number) {
    const int flags = ::fcntl(number, F_GETFD);
    if (number != taken && (flags < 0 || (flags & FD_CLOEXEC) != 0)) return number;
  }
}

/// In the child: each signal that is handled gets its default action, and SIGPIPE the one that it had.
void forget_handlers(void (*pipe_signal)(int)) {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction present {};
    if (::sigaction(number, nullptr, &present) != 0) continue;
    if (present.sa_handler != SIG_IGN && present.sa_handler != SIG_DFL) std::signal(number, SIG_DFL);
  }
  std::signal(SIGPIPE, pipe_signal);
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

child_process::child_process(const std::vector<std::string>& command,
                             std::vector<std::pair<std::string, std::string>> variables)
    : foreground_(is_in_foreground()) {
  const auto lost = make_pipe();
  lost_read_ = lost[0];
  lost_write_ = lost[1];
  const auto report = make_pipe();
  const int lost_number = number_for_command(report[1]);
  variables.emplace_back("HOLDFAST_LOST_FD", std::to_string(lost_number));
  auto environment = environment_with(variables);
  auto arguments = command;
  const auto argument_pointers = pointers_to(arguments), environment_pointers = pointers_to(environment);
  const auto parent = ::getpid();
  const auto pipe_signal = std::signal(SIGPIPE, SIG_IGN);  // a reader of our notices that is gone must not end the lock
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);  // our handlers must not run in the child: their pipe is ours
  id_ = ::fork();
  if (id_ == 0) {
    forget_handlers(pipe_signal);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    become(argument_pointers, environment_pointers, {report[1], lost_number, parent});
  }
  const int fork_failure = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::close(report[1]);
  ::close(lost_read_);
  if (id_ < 0) fail("fork", fork_failure);
  ::setpgid(id_, id_);  // here as well: the next signal must find the group

  int exec_failure = 0;
  ssize_t size = 0;
  do size = ::read(report[0], &exec_failure, sizeof exec_failure);
  while (size < 0 && errno == EINTR);
  ::close(report[0]);
  if (size <= 0) return;
  finish(false);
  ::close(lost_write_);
  fail(shown(command.front()), exec_failure);
}

// In the child: nothing that allocates.
void child_process::become(const std::vector<char*>& arguments, const std::vector<char*>& environment,
                           const inheritance& inherited) {
  ::setpgid(0, 0);
  if (foreground_) give_terminal(::getpid());
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != inherited.parent) ::_exit(signalled + SIGKILL);  // it died before the line above
  if (inherited.lost != lost_read_) ::dup2(lost_read_, inherited.lost);
  ::fcntl(inherited.lost, F_SETFD, 0);
  ::execvpe(arguments.front(), arguments.data(), environment.data());
  const int why = errno;
  if (::write(inherited.report, &why, sizeof why) < 0) ::_exit(cannot_execute);
  ::_exit(not_found);
}

child_process::~child_process() {
  if (id_ > 0) {
    signal_group(SIGKILL);
    finish(true);
  }
  announce_loss();
}

void child_process::signal_group(int number) const noexcept {
  if (id_ > 0) ::kill(-id_, number);
}

void child_process::announce_loss() noexcept {
  if (lost_write_ >= 0) ::close(lost_write_);
  lost_write_ = -1;
}

bool child_process::look() {
  siginfo_t state{};
  // WNOWAIT: until finish() the dead command keeps its number, so the group's number is nobody else's.
  if (::waitid(P_PID, static_cast<id_t>(id_), &state, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0) return true;
  if (state.si_pid == 0) return false;
  if (state.si_code != CLD_STOPPED) return true;
  ::waitid(P_PID, static_cast<id_t>(id_), &state, WSTOPPED | WNOHANG);
  if (foreground_) stop_with_it();
  return false;
}

int child_process::finish(bool whole_group) noexcept {
  if (whole_group) signal_group(SIGKILL);
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  id_ = -1;
  if (foreground_) give_terminal(::getpgrp());
  return WIFSIGNALED(status) ? signalled + WTERMSIG(status) : WEXITSTATUS(status);
}

// A process in the background that changes the terminal's group gets SIGTTOU.
void child_process::give_terminal(pid_t group) const noexcept {
  sigset_t output, before;
  ::sigemptyset(&output);
  ::sigaddset(&output, SIGTTOU);
  ::sigprocmask(SIG_BLOCK, &output, &before);
  ::tcsetpgrp(STDIN_FILENO, group);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

void child_process::stop_with_it() const noexcept {
  give_terminal(::getpgrp());
  ::kill(0, SIGTSTP);  // returns when the job goes on
  if (::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) give_terminal(id_);
  signal_group(SIGCONT);
}

}  // namespace holdfast::cli
