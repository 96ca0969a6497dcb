// SPDX-License-Identifier: BSL-1.0
// A holder is stopped by its machine between the question "do I still hold it?" and its write. When it goes on, another
// has the lock, and the stale write is on its way. Nothing that the holder could ask helps: the resource has to refuse.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "fenced_store.hpp"
#include "process.hpp"
using namespace std::chrono_literals;

boost::asio::awaitable<void> paused(holdfast::client& redis, fenced_store& store) {
  auto lease = co_await redis.fenced_mutex("account").lock({.ttl = 300ms});
  const auto token = lease.token().value();
  std::cout << "A: held() says " << lease.held() << std::endl;
  ::raise(SIGSTOP);  // a swapped-out process, a live migration, a closed lid
  std::cout << "A: goes on, and writes without asking again" << std::endl;
  store.run_unfenced({"SET", "careless", "A"});
  std::cout << "A: the fenced store takes its write: " << store.run(token, {{"SET", "balance", "A"}}) << std::endl;
  std::cout << "A: held() says " << lease.held() << ", and lost() " << (co_await lease.lost()).message() << std::endl;
}

boost::asio::awaitable<void> next(holdfast::client& redis, fenced_store& store) {
  auto lease = co_await redis.fenced_mutex("account").lock();
  std::cout << "B: holds it now" << std::endl;
  store.run_unfenced({"SET", "careless", "B"});
  store.run(lease.token().value(), {{"SET", "balance", "B"}});
  co_await lease.unlock();
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  std::cout << std::boolalpha;
  const auto holder = ::fork();
  if (holder == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (holder != 0) ::waitpid(holder, nullptr, WUNTRACED);  // A is stopped
  process self(url);
  fenced_store store(url);
  self.run(holder == 0 ? paused(self.redis, store) : next(self.redis, store));
  if (holder == 0) return 0;
  ::kill(holder, SIGCONT);
  ::waitpid(holder, nullptr, 0);
  std::cout << "the unfenced value is " << store.run_unfenced({"GET", "careless"}) << "'s: an update is lost\n";
  std::cout << "the fenced value is " << store.run_unfenced({"GET", "balance"}) << "'s\n";
}

// Output:
//   A: held() says true
//   B: holds it now
//   A: goes on, and writes without asking again
//   A: the fenced store takes its write: false
//   A: held() says false, and lost() the lock was lost
//   the unfenced value is A's: an update is lost
//   the fenced value is B's
