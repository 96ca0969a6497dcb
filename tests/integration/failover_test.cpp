// SPDX-License-Identifier: BSL-1.0
// One address that leads to a primary, and after its death to the replica that was promoted: what a failover proxy
// makes of two servers. docs/guide/operating.md says what becomes of the locks.
#include <algorithm>
#include <filesystem>
#include <mutex>
#include <thread>

#include "integration/blocking_world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

redis_options primary() {
  redis_options o;
  o.tcp = true;
  o.arguments = {"--repl-diskless-sync-delay", "0"};
  return o;
}
redis_options replica_of(const real_redis& server) {
  redis_options o;
  o.tcp = true;
  o.arguments = {"--replicaof", "127.0.0.1", std::to_string(server.port())};
  return o;
}

struct two_servers : world {
  two_servers() : world(primary()) {
    replicate();
    lead_to(server);
  }
  /// What the primary has had by now, the replica has.
  void replicate() {
    eye("SET", "mark", "1");
    REQUIRE(eye("WAIT", 1, 30'000) == 1);
  }
  void promote() { to_second("REPLICAOF", "NO", "ONE"); }
  void lead_to(const real_redis& which) {
    std::filesystem::remove(address);
    std::filesystem::create_symlink(which.socket_path(), address);
  }
  client make_behind() {
    return make([&](config& c) { c.url = "redis+unix://" + address.string(); });
  }

  real_redis second{replica_of(server)};
  raw_client to_second{second};
  const std::filesystem::path address = std::filesystem::path(second.folder()) / "address";
};

}  // namespace

TEST_CASE("a lock that has reached the promoted replica goes on there, and so does the wait for it") {
  two_servers w;
  auto a = w.make_behind(), b = w.make_behind();
  auto held = w.run(a.mutex("m").lock());
  started<lease> got(w, b.mutex("m").lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").array()[1] == 1; });
  w.replicate();
  w.server.kill();
  w.promote();
  w.lead_to(w.second);
  w.until([&] { return w.heard->count(kind::restored) == 1; });
  CHECK(held.held());
  CHECK(w.heard->count(kind::lost) == 0);
  CHECK_FALSE(got.answer);
  w.run(held.unlock());
  w.until([&] { return got.succeeded(); });
  w.run(got.answer->value().unlock());
  CHECK(w.to_second("KEYS", "m").array().empty());
}

TEST_CASE("two servers that swap their roles behind one address cost a wait and no lock") {
  two_servers w;
  auto a = w.make_behind(), b = w.make_behind();
  auto held = w.run(a.mutex("m").lock()), kept = w.run(a.fenced_mutex("kept").lock());
  started<lease> got(w, b.mutex("m").lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").array()[1] == 1; });
  w.replicate();
  w.eye("REPLICAOF", "127.0.0.1", std::to_string(w.second.port()));  // every connection stays
  started<void> unlocked(w, held.unlock());
  w.until([&] { return w.heard->count(kind::outage) >= 1; });
  CHECK(w.code_of(b.mutex("other").try_lock()) == errc::unreachable);
  CHECK_FALSE(got.answer);
  w.promote();
  w.lead_to(w.second);
  w.until([&] { return got.succeeded(); });
  w.until([&] { return unlocked.answer.has_value(); });
  CHECK(unlocked.succeeded());
  w.run(got.answer->value().unlock());
  CHECK(w.to_second("EXISTS", "m") == 0);
  w.run(kept.renew());
  // A waiter listens at the new primary.
  started<lease> next(w, b.fenced_mutex("kept").lock());
  w.until([&] { return w.to_second("PUBSUB", "NUMSUB", "redisson_lock__channel:{kept}").array()[1] == 1; });
  w.run(kept.unlock());
  w.until([&] { return next.succeeded(); });
  w.run(next.answer->value().unlock());
  CHECK(w.heard->count(kind::lost) == 0);
  const auto events = w.heard->all();
  const auto demotions = std::count_if(events.begin(), events.end(), [](const auto& e) {
    return e.what == kind::outage && e.reason == errc::not_primary;
  });
  CHECK(demotions <= 2);  // once for each client
}

TEST_CASE("threads wait for a server that is a replica for a while, and their unlock reaches it") {
  blocking_world w;
  blocking::client a(w.settings_with([](config& c) { c.ttl = 60s; })), b(w.settings());
  auto held = a.mutex("m");
  held.lock();
  std::thread waiter([&] {
    auto m = b.mutex("m");
    const std::lock_guard section(m);
  });
  w.see_waiters("m");
  w.eye("REPLICAOF", "127.0.0.1", "1");
  held.unlock();  // not in time, of which the observer hears
  auto other = b.mutex("other");
  CHECK(client_side::code_of_call([&] { (void)other.try_lock(); }) == errc::unreachable);
  w.eye("REPLICAOF", "NO", "ONE");
  waiter.join();
  see([&] { return w.locks().empty(); });
  CHECK(w.heard->count(kind::lost) == 0);
}

TEST_CASE("a lock that had not reached the promoted replica is lost when its client is connected there") {
  two_servers w;
  auto a = w.make_behind(), b = w.make_behind();
  w.promote();  // before the lock: nothing is replicated any more
  auto held = w.run(a.mutex("m").lock());
  w.server.kill();
  w.lead_to(w.second);
  w.until([&] { return w.heard->count(kind::lost) == 1; });
  CHECK_FALSE(held.held());
  CHECK(w.run(b.mutex("m").try_lock()).has_value());
}

TEST_CASE("a release that had not reached the promoted replica is sent again when its client is connected there") {
  two_servers w;
  auto redis = w.make_behind();
  auto held = w.run(redis.mutex("m").lock());
  w.replicate();
  w.promote();
  w.run(held.unlock());  // answered by the one that is about to die
  REQUIRE(w.to_second("EXISTS", "m") == 1);
  w.server.kill();
  w.lead_to(w.second);
  w.run(w.run(redis.mutex("m").lock()).unlock());  // sooner than the TTL ends
  CHECK(w.heard->count(kind::released_late) == 1);
  CHECK(w.to_second("KEYS", "m").array().empty());
}

TEST_CASE("a count that had not reached the promoted replica is counted there, and no other one twice") {
  two_servers w;
  auto redis = w.make_behind();
  w.run(redis.latch("l").try_set(5));
  w.run(redis.latch("l").count_down());
  w.replicate();
  w.promote();
  w.run(redis.latch("l").count_down());  // answered by the one that is about to die
  REQUIRE(w.to_second("GET", "l") == "4");
  w.server.kill();
  w.lead_to(w.second);
  w.run(redis.latch("l").count_down());
  w.until([&] { return w.to_second("GET", "l") == "2"; });
  w.run(redis.shutdown(5s));
  CHECK(w.to_second("GET", "l") == "2");
}

TEST_CASE("the terms of an observer do not fall when a replica takes over that has missed an election") {
  two_servers w;
  auto redis = w.make_behind();
  const auto chief = redis.election("e");
  auto first = w.run(chief.campaign("one", {.ttl = 1s, .renew = false}));
  w.replicate();
  w.promote();
  w.run(first.unlock());
  auto second = w.run(chief.campaign("two", {.ttl = 1s, .renew = false}));  // known to the server that dies
  auto known = w.run(chief.leader());
  REQUIRE(known);
  CHECK(w.to_second("HGET", "e", "leader") == "one");
  w.server.kill();
  w.lead_to(w.second);
  const auto later = w.run(chief.next(known));
  CHECK_FALSE(later);  // the first one's lead has ended there, and was passed over
  const auto third = w.run(chief.campaign("three"));
  CHECK(third.token().value() > known->term);
  CHECK(w.run(chief.next(known))->term == third.token());
}
