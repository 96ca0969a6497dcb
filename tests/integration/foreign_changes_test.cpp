// SPDX-License-Identifier: BSL-1.0
// Changes by other programs. The server notifies waiters and holders of them.
#include <array>

#include "integration/world.hpp"
#include "support/server_version.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// Counts measurements, and passes no event on.
class measurements final : public observer {
 public:
  void on(const event& e) noexcept override { ++events_[static_cast<std::size_t>(e.kind)]; }
  void measured(const measurement& m) noexcept override { ++measured_[static_cast<std::size_t>(m.kind)]; }
  std::size_t count(measurement_kind kind) const { return measured_[static_cast<std::size_t>(kind)]; }
  std::size_t count(event_kind kind) const { return events_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<std::size_t, event_kinds> events_{};
  std::array<std::size_t, static_cast<std::size_t>(measurement_kind::connection_down) + 1> measured_{};
};

/// A client whose polls and renewals come too late to help, and a program that knows SET and DEL alone.
struct pushing_world : world {
  pushing_world() { need_pushes(); }

  std::shared_ptr<measurements> seen = std::make_shared<measurements>();

  client patient(std::chrono::milliseconds ttl = 60s) {
    return make([&](config& c) {
      c.observer = seen;
      c.push = push_mode::automatic;
      c.poll_cap = 60s;
      c.ttl = ttl;
    });
  }
  std::int64_t tracked_keys() {
    const std::string text = eye("INFO", "stats").text;
    const auto at = text.find("tracking_total_keys:");
    return at == text.npos ? 0 : std::stoll(text.substr(at + 20));
  }
  /// The number of attempts that were to be tracked.
  std::int64_t asked_to_push() {
    const std::string text = eye("INFO", "commandstats").text;
    const std::string calls = "cmdstat_client|caching:calls=";
    const auto at = text.find(calls);
    return at == text.npos ? 0 : std::stoll(text.substr(at + calls.size()));
  }
  void until_tracked() {
    until([this] { return tracked_keys() > 0; });
  }
  /// The server is full for a moment, and gives up keys that have a TTL.
  void evict(const std::string& key) {
    eye("CONFIG", "SET", "maxmemory-policy", "volatile-ttl");
    eye("CONFIG", "SET", "maxmemory", 1);
    REQUIRE(eye("EXISTS", key) == 0);
    eye("CONFIG", "SET", "maxmemory", 0);
  }
  void take() { REQUIRE(eye("SET", "m", "other", "NX", "PX", 60'000) == "OK"); }
};

}  // namespace

TEST_CASE("a waiter is notified of a release that no message reports") {
  pushing_world w;
  auto redis = w.patient();
  w.take();
  started<lease> waiting(w, redis.simple_mutex("m").lock());
  w.until_tracked();
  const auto polls = w.seen->count(measurement_kind::polled);
  w.pass(700ms);  // enough for two polls
  CHECK(w.seen->count(measurement_kind::polled) == polls);
  w.eye("DEL", "m");
  w.until([&] { return waiting.succeeded(); });
  CHECK(w.seen->count(measurement_kind::pushed) >= 1);
  CHECK(w.seen->count(measurement_kind::polled) == polls);
}

TEST_CASE("a waiter is notified of each of many releases") {
  pushing_world w;
  auto redis = w.patient();
  for (int i = 0; i < 20; ++i) {
    w.take();
    started<lease> waiting(w, redis.simple_mutex("m").lock());
    w.until_tracked();
    w.eye("DEL", "m");
    w.until([&] { return waiting.succeeded(); });
    w.run(waiting.answer->value().unlock());
  }
}

TEST_CASE("a waiter is notified when all keys are deleted") {
  pushing_world w;
  auto redis = w.patient();
  w.take();
  started<lease> waiting(w, redis.simple_mutex("m").lock());
  w.until_tracked();
  w.eye("FLUSHALL");
  w.until([&] { return waiting.succeeded(); });
}

TEST_CASE("a waiter asks to be notified anew when a connection was lost") {
  need_redis_7("subcommands are counted");
  for (const auto* kind : {"pubsub", "normal"}) {
    pushing_world w;
    auto redis = w.patient();
    w.take();
    started<lease> waiting(w, redis.simple_mutex("m").lock());
    w.until_tracked();
    const auto asked = w.asked_to_push();
    w.eye("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes");
    w.until([&] { return w.asked_to_push() > asked && w.tracked_keys() > 0; });
    w.pass(50ms);
    w.eye("DEL", "m");
    w.until([&] { return waiting.succeeded(); });
  }
}

TEST_CASE("a holder is told that its key was deleted, before its next renewal") {
  pushing_world w;
  auto redis = w.patient(18s);
  auto held = w.run(redis.mutex("m").lock());
  w.until_tracked();
  const auto before = std::chrono::steady_clock::now();
  w.eye("DEL", "m");
  CHECK(w.run(held.lost()) == errc::lost);
  CHECK(std::chrono::steady_clock::now() - before < 5s);  // the next renewal comes after 6 s
}

TEST_CASE("a holder is told that all keys were deleted, and that its key is another's") {
  pushing_world w;
  auto redis = w.patient(6s);
  auto simple = w.run(redis.simple_mutex("s").lock());
  auto fenced = w.run(redis.fenced_mutex("f").lock());
  w.until([&] { return w.tracked_keys() >= 2; });
  w.eye("SET", "s", "other", "PX", 60'000);
  CHECK(w.run(simple.lost()) == errc::lost);
  CHECK(fenced.held());
  w.eye("FLUSHALL");
  CHECK(w.run(fenced.lost()) == errc::lost);
}

TEST_CASE("a holder is told that its key was evicted, before its next renewal") {
  pushing_world w;
  auto redis = w.patient(18s);
  auto held = w.run(redis.mutex("m").lock());
  w.until_tracked();
  const auto before = std::chrono::steady_clock::now();
  w.evict("m");
  CHECK(w.run(held.lost()) == errc::lost);
  CHECK(std::chrono::steady_clock::now() - before < 5s);  // the next renewal comes after 6 s
}

TEST_CASE("a waiter is notified that the key of a holder was evicted") {
  pushing_world w;
  auto redis = w.patient();
  w.take();
  started<lease> waiting(w, redis.simple_mutex("m").lock());
  w.until_tracked();
  const auto polls = w.seen->count(measurement_kind::polled);
  w.evict("m");
  w.until([&] { return waiting.succeeded(); });
  CHECK(w.seen->count(measurement_kind::polled) == polls);
}

TEST_CASE("a change that leaves a hold is confirmed, and the next one after the next renewal") {
  pushing_world w;
  auto redis = w.patient(3s);
  auto held = w.run(redis.mutex("m").lock());
  for (int i = 1; i <= 2; ++i) {
    w.until_tracked();
    const auto renewals = w.seen->count(measurement_kind::renewed);
    w.eye("PEXPIRE", "m", 2'500);
    w.until([&] { return w.seen->count(measurement_kind::renewed) == renewals + 1; });
    CHECK(w.eye("PTTL", "m").integer() > 2'500);
    CHECK(w.tracked_keys() == 0);
  }
  CHECK(held.held());
}

TEST_CASE("a lock that nobody else wants, and that ends soon, costs no more than its two commands") {
  pushing_world w;
  auto redis = w.make([](config& c) { c.ttl = 60s; });
  const auto pair = [&](auto lock) {
    auto held = w.run(lock.lock());
    w.run(held.unlock());
  };
  pair(redis.mutex("m"));
  w.eye("CONFIG", "RESETSTAT");
  for (int n = 0; n < 10; ++n) {
    pair(redis.mutex("m"));
    pair(redis.fenced_mutex("f"));
    pair(redis.simple_mutex("s"));
  }
  CHECK(w.asked_to_push() == 0);
  const std::string commands = w.eye("INFO", "commandstats").text;
  for (const auto* other : {"client|tracking", "client|caching", "subscribe", "ping"})
    CHECK(commands.find("cmdstat_" + std::string(other) + ":") == std::string::npos);
  CHECK(w.eye("CLIENT", "LIST", "TYPE", "PUBSUB").text.empty());
}

TEST_CASE("a server that pushes a client's own writes is not asked to push, and the observer is told once") {
  if (!server_pushes_own_writes()) skip("a server that pushes no writes of the client itself");
  world w;
  const auto seen = std::make_shared<measurements>();
  auto redis = w.make([&](config& c) {
    c.observer = seen;
    c.ttl = 600ms;
  });
  auto held = w.run(redis.mutex("m").lock());
  w.until([&] { return seen->count(measurement_kind::renewed) >= 3; });
  CHECK(held.held());
  CHECK(seen->count(event_kind::push_degraded) == 1);
  CHECK(w.eye("INFO", "commandstats").text.find("client|tracking") == std::string::npos);
  CHECK(w.eye("CLIENT", "LIST", "TYPE", "PUBSUB").text.empty());
}

TEST_CASE("nothing is pushed where it is off") {
  pushing_world w;
  auto redis = w.make([&](config& c) {
    c.observer = w.seen;
    c.push = push_mode::off;
  });
  w.take();
  started<lease> waiting(w, redis.simple_mutex("m").lock());
  w.until([&] { return w.seen->count(measurement_kind::polled) >= 3; });
  CHECK(w.tracked_keys() == 0);
  CHECK(w.eye("INFO", "commandstats").text.find("client|tracking") == std::string::npos);
  w.eye("DEL", "m");
  w.until([&] { return waiting.succeeded(); });
}

TEST_CASE("where the server does not allow pushes, waiters poll and the observer is told once") {
  need_redis_7("an ACL can take a subcommand away");
  pushing_world w;
  w.eye("ACL", "SETUSER", "app", "reset", "on", ">secret", "~*", "&*", "+@all", "-client|tracking");
  auto redis = w.make([&](config& c) {
    c.observer = w.seen;
    c.push = push_mode::automatic;
    c.url.replace(c.url.find("://"), 3, "://app:secret@");
  });
  w.take();
  started<lease> waiting(w, redis.simple_mutex("m").lock());
  w.until([&] { return w.seen->count(measurement_kind::polled) >= 3; });
  CHECK(w.seen->count(event_kind::push_degraded) == 1);
  w.eye("DEL", "m");
  w.until([&] { return waiting.succeeded(); });
}
