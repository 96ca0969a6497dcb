// SPDX-License-Identifier: BSL-1.0
#include "cli/child_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <initializer_list>

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

/// The signals as this process was started with them. Each command gets them so.
struct signals_at_start {
  signals_at_start() : pipe(std::signal(SIGPIPE, SIG_IGN)) { ::sigprocmask(SIG_BLOCK, nullptr, &blocked); }

  void (*pipe)(int);  // a reader of our notices that is gone must not end the lock, so we ignore it from now on
  sigset_t blocked;
};

const signals_at_start& at_start() {
  static const signals_at_start found;
  return found;
}

sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : numbers) ::sigaddset(&set, number);
  return set;
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

child_process::blocked_stops::blocked_stops() noexcept {
  at_start();
  const auto both = set_of({SIGTSTP, SIGCONT});
  ::sigprocmask(SIG_BLOCK, &both, nullptr);
}

child_process::blocked_stops::~blocked_stops() {
  const auto both = set_of({SIGTSTP, SIGCONT});
  ::sigprocmask(SIG_UNBLOCK, &both, nullptr);
}

child_process::child_process(const std::vector<std::string>& command,
                             std::vector<std::pair<std::string, std::string>> variables)
    : terminal_(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)) {
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
  const bool with_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && we_have_terminal();
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);  // our handlers must not run in the child: their pipe is ours
  id_ = ::fork();
  if (id_ == 0) {
    forget_handlers(at_start().pipe);
    become(argument_pointers, environment_pointers,
           {report[1], lost_number, parent, with_terminal, at_start().blocked});
  }
  const int fork_failure = errno;
  // In the background of the command: SIGTTOU would stop us at a notice. Our own parent may have blocked SIGCHLD.
  auto own = before;
  ::sigaddset(&own, SIGTTOU);
  ::sigdelset(&own, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &own, nullptr);
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
  if (inherited.with_terminal) give_terminal(::getpid());
  ::sigprocmask(SIG_SETMASK, &inherited.signals, nullptr);
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
  if (terminal_ >= 0) ::close(terminal_);
}

void child_process::signal_group(int number) const noexcept {
  if (id_ > 0) ::kill(-id_, number);
}

sigset_t child_process::stops() const noexcept {
  sigset_t set = set_of({});
  for (const int number : {SIGTSTP, SIGCONT}) {
    struct sigaction present {};
    ::sigaction(number, nullptr, &present);
    if (present.sa_handler != SIG_IGN) ::sigaddset(&set, number);
  }
  return set;
}

void child_process::announce_loss() noexcept {
  if (lost_write_ >= 0) ::close(lost_write_);
  lost_write_ = -1;
}

child_process::state child_process::look() {
  reap_others();
  siginfo_t seen{};
  // WNOWAIT: until finish() the dead command keeps its number, so the group's number is nobody else's.
  if (::waitid(P_PID, static_cast<id_t>(id_), &seen, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0)
    return state::has_ended;
  if (seen.si_pid == 0) return state::runs;
  if (seen.si_code != CLD_STOPPED) return state::has_ended;
  ::waitid(P_PID, static_cast<id_t>(id_), &seen, WSTOPPED | WNOHANG);
  return terminal_ < 0 ? state::runs : after_stop(seen.si_status);
}

void child_process::reap_others() const noexcept {
  for (;;) {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0 || ended.si_pid == id_)
      return;
    ::waitid(P_PID, static_cast<id_t>(ended.si_pid), &ended, WEXITED | WNOHANG);
  }
}

int child_process::finish(bool whole_group) noexcept {
  if (whole_group) signal_group(SIGKILL);
  // Before its number is free. In the background the terminal is the shell's, and stays with it.
  if (terminal_ >= 0 && command_has_terminal()) give_terminal(::getpgrp());
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  id_ = -1;
  return WIFSIGNALED(status) ? signalled + WTERMSIG(status) : WEXITSTATUS(status);
}

child_process::state child_process::after_stop(int signal) const noexcept {
  const bool reads_terminal = signal == SIGTTIN || signal == SIGTTOU;
  if (reads_terminal && we_have_terminal()) {
    if (give_terminal(id_)) signal_group(SIGCONT);
    return state::runs;
  }
  const bool whole_job = reads_terminal || command_has_terminal();
  if (!whole_job && signal != SIGTSTP) return state::runs;  // others have stopped it
  stop_with_it(whole_job);
  return state::was_stopped;
}

void child_process::stop_with_it(bool whole_job) const noexcept {
  if (command_has_terminal()) give_terminal(::getpgrp());
  struct sigaction standard {
  }, before{};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGTSTP, &standard, &before);
  const auto stop = set_of({SIGTSTP}), go_on = set_of({SIGCONT});
  ::kill(whole_job ? 0 : ::getpid(), SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // once, however many have stopped us; returns when the job goes on
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
  ::sigaction(SIGTSTP, &before, nullptr);
  const timespec at_once{};
  ::sigtimedwait(&go_on, nullptr, &at_once);  // a second SIGCONT for the command would undo its next stop
  if (whole_job && we_have_terminal()) give_terminal(id_);
}

bool child_process::we_have_terminal() const noexcept {
  return terminal_ >= 0 && ::tcgetpgrp(terminal_) == ::getpgrp();
}

/// A group without a living process was made by the command.
bool child_process::command_has_terminal() const noexcept {
  const auto group = ::tcgetpgrp(terminal_);
  return group == id_ || (group > 0 && ::kill(-group, 0) != 0 && errno == ESRCH);
}

/// With SIGTTOU blocked: a process in the background gets it here.
bool child_process::give_terminal(pid_t group) const noexcept { return ::tcsetpgrp(terminal_, group) == 0; }

}  // namespace holdfast::cli
