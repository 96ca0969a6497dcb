// SPDX-License-Identifier: BSL-1.0
// What a program without an observer reads on stderr, where it would wait for ever and print nothing.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include "integration/world.hpp"
#include "support/temp_folder.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// stderr of this process goes to a file meanwhile.
class caught_stderr {
 public:
  caught_stderr() : before_(::dup(STDERR_FILENO)) {
    const int file = ::open(path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  ~caught_stderr() {
    std::fflush(stderr);
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path()).rdbuf();
    return all.str();
  }

 private:
  std::string path() const { return folder_.path() + "/stderr"; }

  const temp_folder folder_;
  const int before_;
};

asio::awaitable<void> waits_for_itself(holdfast::mutex m) {
  auto held = co_await m.lock();
  auto again = co_await m.lock();
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE(
    "a first run without Redis, or with a nested lock() without owner, says so once after 5 s, unless it is quiet") {
  world w;
  const auto nowhere = "redis+unix://" + std::string("/nowhere/redis.sock");
  const auto alone = [](config& c) { c.observer = nullptr; };
  auto none = w.make([&](config& c) { alone(c), c.url = nowhere; });
  auto quiet = w.make([&](config& c) { alone(c), c.url = nowhere, c.quiet = true; });
  auto observed = w.make([&](config& c) { c.url = nowhere; });
  auto nested = w.make(alone);
  std::string text;
  {
    const caught_stderr caught;
    const auto begun = std::chrono::steady_clock::now();
    for (auto* redis : {&none, &none, &quiet, &observed})
      asio::co_spawn(w.io, redis->mutex("orders:42").lock(), [](auto&&...) {});
    asio::co_spawn(w.io, waits_for_itself(nested.mutex("m")), [](auto&&...) {});
    w.until([&] { return lines_of(caught.text()) >= 2; });
    CHECK(std::chrono::steady_clock::now() - begun >= 5s);
    w.pass(50ms);
    text = caught.text();
  }
  CHECK(lines_of(text) == 2);
  CHECK_THAT(text,
             contains_text("lock 'orders:42', because Redis cannot be reached: redis+unix:///nowhere/redis.sock"));
  CHECK_THAT(text, contains_text("lock 'm', which this client holds without an owner"));
  CHECK_THAT(text, contains_text("config::quiet"));
}
