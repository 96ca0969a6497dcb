// SPDX-License-Identifier: BSL-1.0
// A holder in a process of its own, which is stopped and killed.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <csignal>
#include <system_error>

#include "integration/world.hpp"
#include "support/fd.hpp"

using namespace holdfast;
using namespace holdfast::test;
using std::chrono::steady_clock;

namespace {

constexpr auto ttl = 600ms;

/// Holds "m" in a process of its own, and renews it. When it is told to go on, it says whether it holds it still, without having heard
/// anything from the server.
class other_process {
 public:
  explicit other_process(const config& settings) {
    int to[2], from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) live(settings, to[0], from[1]);
    ::close(to[0]);
    ::close(from[1]);
    to_ = unique_fd(to[1]);
    from_ = unique_fd(from[0]);
    if (answer() != 'h') throw std::runtime_error("the other process did not get the lock");
  }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;
  ~other_process() { kill(); }

  void stop() {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }
  void kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  void go_on() {
    ask();
    ::kill(pid_, SIGCONT);
  }
  void ask() {
    if (::write(to_.get(), "?", 1) != 1) throw std::runtime_error("the other process has ended");
  }
  /// h: it holds the lock. n: it does not.
  char answer() {
    char c = 0;
    return ::read(from_.get(), &c, 1) == 1 ? c : '\0';
  }

 private:
  [[noreturn]] static void live(const config& settings, int in, int out) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      asio::io_context io;
      client redis(io.get_executor(), settings);
      auto held = test::run(io, redis.mutex("m").lock());
      const auto say = [&] { return ::write(out, held.held() ? "h" : "n", 1) == 1; };
      say();
      asio::posix::stream_descriptor questions(io, in);
      char c;
      for (;;) {
        io.restart();
        bool asked = false;
        questions.async_read_some(asio::buffer(&c, 1), [&](const auto&, std::size_t) { asked = true; });
        while (!asked) io.run_one();
        say();
      }
    } catch (...) {
    }
    ::_exit(1);
  }

  pid_t pid_ = -1;
  unique_fd to_, from_;
};

struct two_processes : world {
  two_processes() {
    settings_of_other = settings();
    settings_of_other.ttl = ttl;
    settings_of_other.observer = nullptr;
  }
  config settings_of_other;
};

}  // namespace

TEST_CASE("a process that is killed is followed at the end of its ttl") {
  two_processes w;
  other_process holder(w.settings_of_other);
  auto redis = w.make();
  started<lease> next(w, redis.mutex("m").lock());
  w.until([&] { return w.eye("PUBSUB", "CHANNELS").array().size() == 1; });
  holder.kill();
  const milliseconds left(w.eye("PTTL", "m").integer());
  const auto killed = steady_clock::now();
  w.until([&] { return next.succeeded(); });
  const auto waited = steady_clock::now() - killed;
  CHECK(waited >= left - 2ms);  // two clocks, in whole milliseconds
  CHECK(next.answer->value().held());
}

TEST_CASE("a process that was stopped for longer than its validity knows it when it goes on") {
  two_processes w;
  other_process holder(w.settings_of_other);
  auto redis = w.make();
  holder.stop();
  auto next = w.run(redis.mutex("m").lock());
  holder.go_on();
  CHECK(holder.answer() == 'n');
  CHECK(next.held());
  CHECK(w.eye("HLEN", "m").integer() == 1);
  w.run(next.unlock());
}

TEST_CASE("a process that was stopped for a moment holds on") {
  two_processes w;
  other_process holder(w.settings_of_other);
  holder.stop();
  holder.go_on();
  CHECK(holder.answer() == 'h');
  auto redis = w.make();
  CHECK_FALSE(w.run(redis.mutex("m").try_lock()).has_value());
  // Renewed: longer than any validity that it had when it was stopped.
  const auto end = steady_clock::now() + ttl;
  w.until([&] { return steady_clock::now() > end; });
  holder.ask();
  CHECK(holder.answer() == 'h');
}
