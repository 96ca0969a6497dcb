// SPDX-License-Identifier: BSL-1.0
// A load balancer or NAT forgets idle connections, without a word or with a reset. Redis is well: each call succeeds.
#include <holdfast/blocking.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <thread>

#include "integration/every_kind.hpp"
#include "sync/renewal/push_budget.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr auto interval = 100ms;
constexpr auto silence = interval / 2 + 1ms;  // after which a connection is asked; a longer one is as good

std::uint64_t traffic(const std::deque<proxy>& balancers) {
  std::uint64_t bytes = 0;
  for (const auto& each : balancers) {
    const auto count = each.count();
    bytes += count.bytes_to_server + count.bytes_to_client;
  }
  return bytes;
}

/// What is on its way is answered and read, and what follows from that: a connection that is forgotten now was idle. A
/// push right behind a renewal is followed by another one after a pause.
template <class Pause>
void settle(std::deque<proxy>& balancers, Pause pause) {
  constexpr auto long_enough = 2 * detail::push_budget::least_pause;
  for (auto since = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() < since + long_enough;) {
    const auto before = traffic(balancers);
    pause();
    std::this_thread::sleep_for(1ms);  // what the pause has sent arrives
    const bool idle = std::all_of(balancers.begin(), balancers.end(), [](proxy& b) { return b.idle(); });
    if (!idle || traffic(balancers) != before) since = std::chrono::steady_clock::now();
  }
}

/// With a load balancer before each server.
struct balanced_world : lock_world {
  explicit balanced_world(const lock_kind& k) : lock_world(k.servers, k.turns) {
    for (std::size_t i = 0; i < size(); ++i) balancers.emplace_back(node(i), proxy_options{.tcp = true});
    for (auto& one : eyes) {  // where several primaries vote: for the longest TTL of settings()
      const auto marker = one("GET", "holdfast:redlock").to_string();
      if (size() > 1) one("SET", "holdfast:redlock", marker.substr(0, marker.find(' ')) + " 7200000");
    }
  }

  config settings() {
    auto c = lock_world::settings();
    if (size() == 1) c.url = balancers.front().url();
    for (std::size_t i = 0; i < c.red_lock.primaries.size(); ++i) c.red_lock.primaries[i] = balancers[i].url();
    c.health_check_interval = interval;
    c.command_timeout = 10s;
    c.ttl = 1h;  // a vote may take a fiftieth of it
    return c;
  }
  void forget(bool resets) {
    settle(balancers, [this] { pass(1ms); });
    for (auto& b : balancers) b.forget(resets);
    std::this_thread::sleep_for(silence);
  }

  std::deque<proxy> balancers;
};

}  // namespace

TEST_CASE("after a load balancer has forgotten every connection each call succeeds, of every kind of lock") {
  bool resets = false;  // each time the other
  for (const auto& k : kinds_of_locks()) {
    if (!k.turns) continue;
    INFO(k.name);
    balanced_world w(k);
    client redis(w.io.get_executor(), w.settings());
    w.run(redis.connect());
    const auto m = k(redis);
    std::optional<lease> held;
    const auto after_silence = [&](const char* call, auto act) {
      resets = !resets;
      w.forget(resets);
      INFO(call << ", resets: " << resets);
      CHECK(text_of_failure(act) == "");
    };
    after_silence("connect", [&] { w.run(redis.connect()); });
    after_silence("try_lock", [&] { held = w.run(m.try_lock()); });
    REQUIRE(held);
    after_silence("renew", [&] { w.run(held->renew()); });
    after_silence("holder", [&] { CHECK(w.run(m.holder())); });
    after_silence("unlock", [&] { w.run(held->unlock()); });
    w.until([&] { return w.locks().empty(); });  // a majority confirms, and the others follow
    after_silence("try_lock_for", [&] { held = w.run(m.try_lock_for(10s)); });
    REQUIRE(held);
    after_silence("unlock", [&] { w.run(held->unlock()); });
    after_silence("lock", [&] { held = w.run(m.lock()); });
    after_silence("force_unlock", [&] { CHECK(w.run(m.force_unlock())); });
    CHECK(k.owner_of(w.eye).empty());
    CHECK(w.heard->count(event_kind::release_failed) == 0);
  }
}

TEST_CASE("waiters whose pub/sub connection was forgotten have their locks when these are released") {
  const bool resets = GENERATE(false, true);
  balanced_world w(every_kind().front());
  auto c = w.settings();
  c.poll_cap = 60s;           // messages, and not polls, tell of the release
  c.command_timeout = 500ms;  // PING on the pub/sub connection has it for its answer
  client redis(w.io.get_executor(), c);
  w.run(redis.connect());
  client other(w.io.get_executor(), w.lock_world::settings());
  std::deque<lease> held;
  std::deque<started<lease>> waits;
  each_kind_of_one_server([&](const lock_kind& k) {
    held.push_back(w.run(k(other, k.name).lock()));
    waits.emplace_back(w, k(redis, k.name).lock());
  });
  w.until([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().size() == waits.size(); });
  w.forget(resets);
  w.pass(3 * interval);
  for (auto& l : held) w.run(l.unlock());
  w.until([&] { return std::all_of(waits.begin(), waits.end(), [](auto& one) { return one.succeeded(); }); });
}

TEST_CASE("a lease keeps its connection alive, and an idle client holds no io_context") {
  world w;
  proxy balancer(w.server, {.tcp = true});
  auto redis = w.make([&](config& c) { c.url = balancer.url(), c.health_check_interval = interval; });
  {
    const auto held = w.run(redis.mutex("m").lock({.ttl = 30s}));
    const auto asked = balancer.count().commands["PING"];
    w.until([&] { return balancer.count().commands["PING"] >= asked + 3; });
    balancer.forget();
    w.until([&] { return w.heard->count(event_kind::connected) == 2; });
    CHECK(held.held());
  }
  drain(w.io);
}

TEST_CASE("of threads, too, a call after a load balancer has forgotten the connections succeeds") {
  world w;
  std::deque<proxy> balancers;
  balancers.emplace_back(w.server, proxy_options{.tcp = true});
  config c;
  c.url = balancers.front().url();
  c.health_check_interval = interval;
  c.command_timeout = 10s;
  blocking::client redis(c);
  const auto forget = [&](bool resets) {
    settle(balancers, [] { std::this_thread::sleep_for(1ms); });
    balancers.front().forget(resets);
    std::this_thread::sleep_for(silence);
  };
  redis.connect();
  auto m = redis.mutex("m");
  for (const bool resets : {false, true}) {
    forget(resets);
    REQUIRE(m.try_lock());
    forget(resets);
    m.unlock();
    CHECK(w.locks().empty());
  }
}
