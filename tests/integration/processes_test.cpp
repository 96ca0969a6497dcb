// SPDX-License-Identifier: BSL-1.0
// A holder in a process of its own, which is stopped and killed.
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <system_error>

#include "integration/world.hpp"
#include "support/fd.hpp"
#include "support/fork.hpp"

using namespace holdfast;
using namespace holdfast::test;
using std::chrono::steady_clock;

namespace {

constexpr auto ttl = 600ms;

/// Holds "m" in a process of its own, and renews it. When it is told to go on, it says whether it holds it still,
/// without having heard anything from the server.
class other_process {
 public:
  explicit other_process(const config& settings)
      : child_([this, &settings] { return live(settings, questions_.out.get(), answers_.in.get()); }) {
    if (answer() != 'h') throw std::runtime_error("the other process did not get the lock");
  }

  void stop() { child_.stop(); }
  void kill() { child_.kill(); }
  void go_on() {
    ask();
    child_.cont();
  }
  void ask() {
    if (::write(questions_.in.get(), "?", 1) != 1) throw std::runtime_error("the other process has ended");
  }
  /// h: it holds the lock. n: it does not.
  char answer() {
    char c = 0;
    return ::read(answers_.out.get(), &c, 1) == 1 ? c : '\0';
  }

 private:
  struct pipe {
    pipe() {
      int ends[2];
      if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
      out = unique_fd(ends[0]);
      in = unique_fd(ends[1]);
    }
    unique_fd in, out;
  };

  static bool live(const config& settings, int questions, int answers) {
    asio::io_context io;
    client redis(io.get_executor(), settings);
    auto held = test::run(io, redis.mutex("m").lock());
    const auto say = [&] { return ::write(answers, held.held() ? "h" : "n", 1) == 1; };
    asio::posix::stream_descriptor in(io, questions);
    while (say()) {
      char c;
      bool asked = false;
      in.async_read_some(asio::buffer(&c, 1), [&](const auto&, std::size_t) { asked = true; });
      io.restart();
      while (!asked) io.run_one();
    }
    return false;
  }

  pipe questions_, answers_;
  forked child_;
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
  w.until([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().size() == 1; });
  holder.kill();
  const auto killed = steady_clock::now();
  const milliseconds left(w.eye("PTTL", "m").integer());
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
