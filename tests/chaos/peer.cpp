// SPDX-License-Identifier: BSL-1.0
// A process that shares locks with the workers, and writes them as Redisson does. It never rests: after a release it
// asks again at once. It ends at SIGTERM, when its section has ended.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "chaos/arguments.hpp"
#include "chaos/campaign.hpp"
#include "chaos/history.hpp"
#include "chaos/workload.hpp"
#include "support/redisson_peer.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

volatile std::sig_atomic_t stopping = 0;

constexpr auto longest_wait = 1500ms;  // for one lock; then it is the turn of the other
constexpr auto before_reconnecting = 20ms;
constexpr auto ttl = longest_ttl(campaign::beside);

using side = test::redisson_peer::side;
struct common_lock {
  std::string_view name, kind;
  side of;
};
constexpr common_lock common_locks[] = {{"lock-1", "plain", side::none},
                                        {"lock-plain-2", "plain", side::none},
                                        {shared_name, "reader", side::read},
                                        {shared_name, "writer", side::write}};

/// A peer knows as little as a holder of ours how long Redis keeps its lock: the TTL, from when it asked.
constexpr milliseconds claimed_of(milliseconds ttl) { return ttl - ttl / 100 - 3ms; }

class peer {
 public:
  explicit peer(const arguments& given)
      : log_(given.text("history")), server_(given.text("server")),
        dice_(static_cast<std::uint64_t>(given.number("seed"))) {
    log_.write("started").add("worker", -1);
  }

  void run() {
    while (!stopping) {
      try {
        test::redisson_peer jvm(server_);
        while (!stopping) do_section(jvm);
      } catch (const std::exception&) {  // the server, or the connection, is gone for a while
        std::this_thread::sleep_for(before_reconnecting);
      }
    }
    log_.write("ended");
  }

 private:
  void do_section(test::redisson_peer& jvm) {
    const auto& wanted = common_locks[dice_.below(std::size(common_locks))];
    const std::string lock(wanted.name);
    const auto operation = ++operations_;
    const auto thread = static_cast<long long>(operation);  // an owner of its own for each hold
    log_.write("acquire")
        .add("op", operation)
        .add("client", 0)
        .add("lock", lock)
        .add("kind", wanted.kind)
        .add("ttl", ttl.count())
        .add("renewed", true)
        .add("wait", -1);
    try {
      if (!jvm.lock(lock, ttl, longest_wait, thread, wanted.of))
        return static_cast<void>(log_.write("busy").add("op", operation));
    } catch (const std::exception&) {
      log_.write("cancelled").add("op", operation).add("error", "Operation canceled");
      throw;
    }
    const auto asked = now() - std::chrono::nanoseconds(steady_clock::now() - jvm.asked_at()).count();
    log_.write("acquired")
        .add("op", operation)
        .add("lock", lock)
        .add("id", jvm.owner(thread))
        .add("seen", asked)
        .add("valid", claimed_of(ttl).count());
    std::this_thread::sleep_for(dice_.per_mille(20) ? 50ms : dice_.around(1ms));
    release(jvm, wanted, operation);
  }

  void release(test::redisson_peer& jvm, const common_lock& held, std::uint64_t operation) {
    log_.write("release").add("hold", operation).add("left", 0);
    const auto thread = static_cast<long long>(operation);
    try {
      const bool released = held.of == side::none ? jvm.unlock(held.name, thread).value_or(false)
                                                  : jvm.unlock_side(held.name, ttl, thread, held.of);
      if (released) return static_cast<void>(log_.write("released").add("hold", operation).add("left", 0));
    } catch (const std::exception&) {
      log_.write("release_failed").add("hold", operation).add("left", 0).add("error", "not confirmed by Redis");
      throw;
    }
    log_.write("release_failed").add("hold", operation).add("left", 0).add("error", "the lock was lost");
  }

  history log_;
  const std::string server_;
  dice dice_;
  std::uint64_t operations_ = 0;
};

}  // namespace
}  // namespace holdfast::chaos

int main(int argc, char** argv) {
  std::signal(SIGTERM, [](int) { holdfast::chaos::stopping = 1; });
  try {
    holdfast::chaos::peer(holdfast::chaos::arguments(argc, argv)).run();
    return EXIT_SUCCESS;
  } catch (const std::exception& failed) {
    std::cerr << "peer: " << failed.what() << '\n';
    return EXIT_FAILURE;
  }
}
