// SPDX-License-Identifier: BSL-1.0
// One leader of several processes writes to a database, under its term. A is paused while it leads. B is elected when
// A's TTL is over, and is killed. The database refuses the late write of A, because it has seen a newer term.
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <holdfast/holdfast.hpp>
#include <iostream>

#include "journal.hpp"
namespace asio = boost::asio;
using namespace std::chrono_literals;

void take_part(const std::string& url, const std::string& path, const std::string& name, int then) {
  asio::io_context io;
  holdfast::client redis(io, {.url = url, .ttl = 300ms});
  auto lead = [&]() -> asio::awaitable<void> {
    auto lease = co_await redis.election("chief").campaign(name);
    journal db(path);
    std::cout << name << " leads, and writes: " << db.write(lease.token().value(), name) << std::endl;
    if (then != 0) ::raise(then);
    std::cout << name << " writes again: " << db.write(lease.token().value(), name + ", late") << std::endl;
  };
  asio::co_spawn(io, lead, [](std::exception_ptr failed) { failed ? std::rethrow_exception(failed) : void(); });
  io.run();
}

pid_t start(const std::string& url, const std::string& path, const std::string& name, int then) {
  const auto child = ::fork();
  if (child != 0) return ::waitpid(child, nullptr, WUNTRACED), child;  // until it is stopped or dead
  take_part(url, path, name, then);
  ::_exit(0);
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost", path = "/tmp/journal." + std::to_string(::getpid());
  std::cout << std::boolalpha;
  journal(path).run(
      "CREATE TABLE holdfast_fence (resource TEXT PRIMARY KEY, token BIGINT NOT NULL);"
      "CREATE TABLE entries (entry TEXT)");
  const auto paused = start(url, path, "A", SIGSTOP);
  start(url, path, "B", SIGKILL);
  ::kill(paused, SIGCONT);
  ::waitpid(paused, nullptr, 0);
  take_part(url, path, "C", 0);
  ::unlink(path.c_str());
}

// Output:
//   A leads, and writes: true
//   B leads, and writes: true
//   A writes again: false
//   C leads, and writes: true
//   C writes again: true
