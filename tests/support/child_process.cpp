// SPDX-License-Identifier: BSL-1.0
#include "support/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::test {
namespace {

using std::chrono::steady_clock;

// PR_SET_PDEATHSIG fires when the *thread* that forked ends, not the process: all children come from one thread that
// never does.
class launcher {
 public:
  static launcher& instance() {
    static auto& one = *new launcher;  // never destroyed: its thread is detached
    return one;
  }

  pid_t run(std::packaged_task<pid_t()> job) {
    auto result = job.get_future();
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    arrived_.notify_one();
    return result.get();
  }

 private:
  launcher() {
    std::thread([this] {
      for (;;) {
        std::unique_lock lock(mutex_);
        arrived_.wait(lock, [this] { return !jobs_.empty(); });
        auto job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job();
      }
    }).detach();
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::packaged_task<pid_t()>> jobs_;
};

struct pipe_pair {
  unique_fd read, write;
  pipe_pair() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) throw_errno("pipe2");
    read = unique_fd(fds[0]);
    write = unique_fd(fds[1]);
  }
};

std::vector<std::string> merged_environment(const std::vector<std::string>& additions) {
  auto all = additions;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const auto& addition : additions) replaced |= addition.starts_with(name);
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Between fork and exec of a process with threads only async-signal-safe calls are allowed: everything is prepared
// before.
struct launch {
  const char* path;
  char** argv;
  char** environment;
  int in, out, err;  // -1: inherited
  int report;
  pid_t parent;

  [[noreturn]] void in_child() const noexcept {
    if (in >= 0) ::dup2(in, 0);
    if (out >= 0) ::dup2(out, 1);
    if (err >= 0) ::dup2(err, 2);
    if (report != 3) ::dup3(report, 3, O_CLOEXEC);
    // Asio's sockets are not close-on-exec; inherited ones would hide a disconnection from the peer.
    if (::syscall(SYS_close_range, 4U, ~0U, 0U) != 0)
      for (int fd = 4; fd < 4096; ++fd) ::close(fd);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(126);  // it died before prctl
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::execve(path, argv, environment);
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(3, &error, sizeof error);
    ::_exit(127);
  }
};

}  // namespace

std::string find_executable(std::string_view name) {
  if (name.find('/') != name.npos) return ::access(std::string(name).c_str(), X_OK) == 0 ? std::string(name) : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const auto folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    const auto candidate = std::string(folder) + "/" + std::string(name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

child_process::child_process(options what) : parent_(::getpid()) {
  const auto path = find_executable(what.executable);
  if (path.empty()) throw std::runtime_error("no such program: " + what.executable);
  if (what.argv.empty()) what.argv = {what.executable};
  auto environment = merged_environment(what.environment);
  const auto argv_pointers = pointers(what.argv);
  const auto environment_pointers = pointers(environment);

  pipe_pair report;
  std::optional<pipe_pair> in, out;
  unique_fd file;
  launch child{path.c_str(),
               const_cast<char**>(argv_pointers.data()),
               const_cast<char**>(environment_pointers.data()),
               -1,
               -1,
               -1,
               report.write.get(),
               parent_};
  if (what.pipes) {
    child.in = in.emplace().read.get();
    child.out = out.emplace().write.get();
  }
  if (!what.output_file.empty()) {
    file = unique_fd(::open(what.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!file) throw_errno("open output file");
    child.out = child.err = file.get();
  }

  pid_ = launcher::instance().run(std::packaged_task<pid_t()>([&child] {
    const pid_t pid = ::fork();
    if (pid == 0) child.in_child();
    return pid;
  }));
  if (pid_ < 0) throw_errno("fork");

  report.write.reset();
  int error = 0;
  ssize_t got;
  do got = ::read(report.read.get(), &error, sizeof error);
  while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    throw std::runtime_error("cannot start " + path + ": " + std::generic_category().message(error));
  }
  handle_ = unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (in) input_ = std::move(in->write);
  if (out) output_ = std::move(out->read);
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), parent_(other.parent_), handle_(std::move(other.handle_)),
      input_(std::move(other.input_)), output_(std::move(other.output_)), buffer_(std::move(other.buffer_)),
      status_(other.status_) {}

child_process& child_process::operator=(child_process&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, -1);
    parent_ = other.parent_;
    handle_ = std::move(other.handle_);
    input_ = std::move(other.input_);
    output_ = std::move(other.output_);
    buffer_ = std::move(other.buffer_);
    status_ = other.status_;
  }
  return *this;
}

child_process::~child_process() { kill(); }

bool child_process::running() const noexcept {
  if (pid_ < 0 || status_) return false;
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

void child_process::signal(int number) {
  if (pid_ > 0 && !status_) ::kill(pid_, number);
}

void child_process::stop() {
  signal(SIGSTOP);
  siginfo_t info{};
  while (!status_ && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
}

void child_process::cont() { signal(SIGCONT); }

void child_process::kill() noexcept {
  if (pid_ < 0 || status_ || ::getpid() != parent_) return;
  ::kill(pid_, SIGKILL);
  int raw = 0;
  while (::waitpid(pid_, &raw, 0) < 0 && errno == EINTR) {
  }
  status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

std::optional<int> child_process::wait(std::chrono::milliseconds timeout) {
  if (pid_ < 0 || status_) return status_;
  if (handle_ && !wait_ready(handle_.get(), POLLIN, steady_clock::now() + timeout)) return std::nullopt;
  int raw = 0;
  while (::waitpid(pid_, &raw, 0) < 0)
    if (errno != EINTR) throw_errno("waitpid");
  return status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

void child_process::write(std::string_view bytes) {
  // A pipe has no MSG_NOSIGNAL: SIGPIPE is blocked for this thread, and taken back if it came.
  sigset_t pipe_signal, before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  int error = 0;
  while (!bytes.empty() && error == 0) {
    const auto sent = ::write(input_.get(), bytes.data(), bytes.size());
    if (sent >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    else if (errno != EINTR)
      error = errno;
  }
  const timespec at_once{};
  if (error == EPIPE && sigismember(&before, SIGPIPE) == 0) ::sigtimedwait(&pipe_signal, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) throw std::system_error(error, std::generic_category(), "write to child");
}

bool child_process::fill(steady_clock::time_point deadline) {
  if (!output_ || !wait_ready(output_.get(), POLLIN, deadline)) return false;
  char block[4096];
  const auto got = ::read(output_.get(), block, sizeof block);
  if (got <= 0) {
    output_.reset();
    return false;
  }
  buffer_.append(block, static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> child_process::read_line(std::chrono::milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != buffer_.npos) {
      auto line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (!fill(deadline)) return std::nullopt;
  }
}

std::string child_process::read_all(std::chrono::milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  while (fill(deadline)) {
  }
  return std::exchange(buffer_, {});
}

}  // namespace holdfast::test
