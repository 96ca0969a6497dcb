// SPDX-License-Identifier: BSL-1.0
// The time until a waiter and a holder know of a change by another program that sends no message, and the memory that
// the server needs to tell them.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "bench/holder.hpp"
#include "bench/meter.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"
#include "sync/renewal/push_budget.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_redis;

constexpr auto wanted = "bench:wanted";

/// One client of ours beside a program that knows SET and DEL alone.
class pushed_client {
 public:
  pushed_client() : admin_(server_), redis_(make_client(io_, settings())) { load_scripts(server_); }

  /// From the DEL of the other program until our waiter has the lock, in ms.
  double after_release() {
    admin_("SET", wanted, "other", "NX", "PX", 60'000);
    const auto begun = wait_then([&] { admin_("DEL", wanted); });
    return end(begun);
  }
  /// From the end of the TTL of a holder that was killed, in ms.
  double after_expiry(std::chrono::milliseconds ttl) {
    const auto set = clock::now();
    admin_("SET", wanted, "other", "NX", "PX", ttl.count());
    wait_then([] {});
    return end(set + ttl);
  }
  /// From the DEL of a held lock until its holder knows, in ms.
  double until_loss() {
    lease held;
    asio::co_spawn(io_, lock(held), rethrow);
    until([&] { return held.held() && tracked(); });
    bool lost = false;
    asio::co_spawn(io_, hear_of_loss(held, lost), rethrow);
    // A change right behind a renewal is confirmed a little later (push_budget).
    io_.run_for(2 * detail::push_budget::least_pause);
    const auto begun = clock::now();
    admin_("DEL", wanted);
    until([&] { return lost; });
    return milliseconds_since(begun);
  }

 private:
  config settings() const {
    auto c = of_url(server_.unix_url());
    c.push = push_mode::automatic;
    c.ttl = 1s;  // the first renewal comes soon
    c.poll_cap = 60s;
    return c;
  }
  asio::awaitable<void> lock(lease& held) { held = co_await redis_.simple_mutex(wanted).lock(); }
  static asio::awaitable<void> unlock(lease& held) { co_await held.unlock(); }
  static asio::awaitable<void> hear_of_loss(lease& held, bool& lost) {
    co_await held.lost();
    lost = true;
  }
  bool tracked() { return number_in(admin_("INFO", "stats").text, "tracking_total_keys") > 0; }
  template <class Condition>
  void until(Condition condition) {
    run_handlers(io_, condition, clock::now() + plan::patience);
    if (!condition()) throw not_finished("nothing was pushed");
  }
  /// Runs what is ready.
  void settle() {
    while (io_.run_one_for(5ms) > 0) {
    }
  }
  template <class Act>
  clock::time_point wait_then(Act act) {
    held_ = lease();
    asio::co_spawn(io_, lock(held_), rethrow);
    until([&] { return tracked(); });
    settle();
    const auto begun = clock::now();
    act();
    return begun;
  }
  double end(clock::time_point begun) {
    until([&] { return held_.held(); });
    const auto took = milliseconds_since(begun);
    bool released = false;
    asio::co_spawn(io_, unlock(held_), [&](std::exception_ptr failed) {
      rethrow(failed);
      released = true;
    });
    until([&] { return released; });
    return took;
  }
  static double milliseconds_since(clock::time_point begun) { return seconds_since(begun) * 1e3; }

  const real_redis server_;
  test::raw_client admin_;
  asio::io_context io_{1};
  client redis_;
  lease held_;
};

std::vector<finding> told(const plan& p) {
  std::vector<double> release, expiry, loss;
  p.rounds("takeover-told", [&] {
    pushed_client beside;
    for (long n = 0; n < p.scaled(500); ++n) release.push_back(beside.after_release());
    for (long n = 0; n < p.scaled(20); ++n) expiry.push_back(beside.after_expiry(200ms));
    for (long n = 0; n < p.scaled(5); ++n) loss.push_back(beside.until_loss());
  });
  return {{median(release)}, {quantile(0.99, release)}, {quantile(0.99, expiry)}, {median(loss)}};
}

/// A client that has the server track keys, as a client of ours does: by its questions, for its other connection.
class tracking_client {
 public:
  explicit tracking_client(const real_redis& server) : commands_(server), pushed_(server) {
    commands_("CLIENT", "TRACKING", "ON", "REDIRECT", pushed_("CLIENT", "ID").integer(), "OPTIN", "NOLOOP");
  }

  /// Keys need not be there to be tracked.
  void track(long first, long last) {
    for (long next = first; next < last;) {
      std::vector<std::string> question{"EXISTS"};
      for (; next < last && std::ssize(question) <= in_a_question; ++next) question.push_back(name_of(next));
      commands_("CLIENT", "CACHING", "YES");
      commands_.call(question);
    }
  }

 private:
  static constexpr long in_a_question = 100;

  test::raw_client commands_, pushed_;
};

/// Bytes of the server, for each of `keys`, while `act` runs.
template <class Act>
double bytes_for_each(test::raw_client& server, long keys, Act act) {
  const auto used = [&] { return number_in(server("INFO", "memory").text, "used_memory"); };
  const auto before = used();
  act();
  return (used() - before) / static_cast<double>(keys);
}

/// The memory of the tracking table for a key, and for one more client that asks for the same keys.
std::vector<finding> tracking_table(long keys) {
  const real_redis server;
  test::raw_client admin(server);
  tracking_client first(server), second(server);
  const auto of_key = bytes_for_each(admin, keys, [&] { first.track(0, keys); });
  const auto of_client = bytes_for_each(admin, keys, [&] { second.track(0, keys); });
  return {{of_key}, {of_client}};
}

/// A server has room for a million keys in its tracking table. It forgets others for those that come then.
std::vector<finding> full_tracking_table(const plan& p) {
  const auto room = p.scaled(1'000'000), more = p.scaled(10'000);
  auto found = tracking_table(room);
  const real_redis server;
  test::raw_client admin(server);
  admin("CONFIG", "SET", "tracking-table-max-keys", room);
  tracking_client one(server);
  one.track(0, room + more);
  const auto tracked = [&] { return number_in(admin("INFO", "stats").text, "tracking_total_keys"); };
  const auto deadline = clock::now() + plan::patience;
  while (tracked() > static_cast<double>(room) && clock::now() < deadline) admin("PING");
  found.push_back({static_cast<double>(room + more) - tracked(), {{"more", static_cast<double>(more)}}});
  return found;
}

}  // namespace

std::vector<scenario> push_scenarios() {
  return {{"takeover-told",
           {{"takeover-told/release", "ms after another program's DEL until a waiter has it, p50", at_most(1)},
            {"takeover-told/release-p99", "the same, p99", at_most(5)},
            {"takeover-told/expiry-p99", "ms after the end of another program's TTL, p99", at_most(100)},
            {"takeover-told/loss", "ms after another program's DEL until the holder knows, p50", at_most(2)}},
           told},
          {"tracking-10k",
           {{"tracking-10k/key", "server bytes for a tracked key, of 10 000", at_most(120)},
            {"tracking-10k/client", "the same for one more client", at_most(100)}},
           [](const plan& p) { return tracking_table(p.scaled(10'000)); }},
          {"tracking-1m",
           {{"tracking-1m/key", "server bytes for a tracked key, of a million", at_most(120)},
            {"tracking-1m/client", "the same for one more client", at_most(100)},
            {"tracking-1m/forgotten", "keys that a full table gives up for 10 000 more"}},
           full_tracking_table}};
}

}  // namespace holdfast::bench
