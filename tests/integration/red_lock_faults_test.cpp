// SPDX-License-Identifier: BSL-1.0
// A red_lock whose primaries die, hang, are cut off, are slow, or have a clock that is set.
#include "integration/cancellable_call.hpp"
#include "integration/red_world.hpp"
#include "support/stepped_clock.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;
using std::chrono::steady_clock;
using direction = proxy::direction;

namespace {

constexpr auto load = 10s;  // what a busy machine may add to an upper bound

/// How a primary is silent, and how it is back.
struct silence {
  const char* name;
  void (*begin)(proxied_red_world&, std::size_t n);
  void (*end)(proxied_red_world&, std::size_t n);
};

void heal(proxied_red_world& w, std::size_t n) { w.nets[n].heal(); }
void swallow(proxied_red_world& w, std::size_t n) {
  w.nets[n].swallow(direction::to_server);
  w.nets[n].swallow(direction::to_client);
}
void hold_commands(proxied_red_world& w, std::size_t n) { w.nets[n].hold(direction::to_server); }
void hold_answers(proxied_red_world& w, std::size_t n) { w.nets[n].hold(direction::to_client); }

const silence dead{"dead", [](proxied_red_world& w, std::size_t n) { w.node(n).kill(); },
                   [](proxied_red_world& w, std::size_t n) { w.restart(n); }};
const silence hung{"hung", [](proxied_red_world& w, std::size_t n) { w.node(n).stop(); },
                   [](proxied_red_world& w, std::size_t n) { w.node(n).cont(); }};
const silence cut_off{"cut off", swallow, heal};
const silence slow{"slow", hold_commands, heal};
const silence mute{"heard and not answered", hold_answers, heal};

/// The last `count` primaries.
std::vector<std::size_t> last(std::size_t count) {
  std::vector<std::size_t> all;
  for (std::size_t n = 5 - count; n < 5; ++n) all.push_back(n);
  return all;
}

/// A caller who waits for a silent primary waits for longer than a test may take.
void be_endlessly_patient(config& c) {
  c.ttl = c.red_lock.longest_ttl = 24h;
  c.command_timeout = c.connect_timeout = 60s;
}

void be_impatient(config& c) { c.command_timeout = 200ms; }

/// Each release calls one of these, whatever it finds; no acquire does.
bool was_asked_to_release(red_world& w, std::size_t n) { return w.calls(n, {"hdel", "del"}) > 0; }

/// Makes all connections, and tells the servers the scripts. What they are asked from now on counts.
void meet(red_world& w, client& redis, reentrancy nested) {
  auto held = w.run(redis.red_lock("first", nested).lock());
  w.until([&] { return w.where("first") == "ABCDE"; });
  w.run(held.unlock());
  w.until([&] { return w.where("first").empty(); });
  for (auto& eye : w.eyes) eye("CONFIG", "RESETSTAT");
}

/// The lock "m" of a client with a path of its own to each primary; all of them have it.
struct held_by_all : proxied_red_world {
  held_by_all(std::chrono::milliseconds ttl, reentrancy nested)
      : founder(founded()), redis(through([ttl](config& c) { c.ttl = ttl; })), held(lock(nested)) {
    until([&] { return where("m") == "ABCDE"; });
  }
  lease lock(reentrancy nested) {
    meet(*this, redis, nested);
    return run(redis.red_lock("m", nested).lock());
  }

  client founder, redis;
  lease held;
};

}  // namespace

TEST_CASE("nobody waits for a minority of primaries that is dead or hung or cut off") {
  for (const auto& way : {dead, hung, cut_off})
    for (const std::size_t count : {1, 2})
      for (const bool connected : {true, false})
        for (const auto nested : both) {
          INFO(count << " of 5 " << way.name << ", connected before: " << connected);
          proxied_red_world w;
          auto founder = w.founded(be_endlessly_patient);
          auto redis = w.through(be_endlessly_patient);
          if (connected) w.run(redis.connect());
          for (const auto n : last(count)) way.begin(w, n);
          if (!connected) w.run(redis.connect());
          auto lock = redis.red_lock("m", nested);
          auto held = w.run(lock.lock());
          CHECK_FALSE(w.run(founder.red_lock("m", nested).try_lock()));
          CHECK(w.run(lock.holder())->id == held.id());
          w.run(held.renew());
          w.run(held.unlock());
          // The founder's refused try gives back its shares in the background, so a single try may find one taken.
          auto again = w.run(lock.try_lock_for(load));
          REQUIRE(again);
          CHECK(w.run(lock.force_unlock()));
          CHECK(w.code_of(again->unlock()) == errc::lost);
          for (const auto n : last(count)) way.end(w, n);
          w.until([&] { return w.where("m").empty(); });
        }
}

TEST_CASE("a red_lock is renewed again and again while a minority of its primaries is dead or hung or cut off") {
  for (const auto& way : {dead, hung, cut_off})
    for (const auto nested : both) {
      INFO(way.name);
      held_by_all w(3s, nested);
      auto& held = w.held;
      for (const auto n : last(2)) way.begin(w, n);
      for (int renewals = 0; renewals < 2; ++renewals) {
        w.until([&] { return held.valid_for() < 2200ms; });
        w.until([&] { return held.valid_for() > 2300ms; });
      }
      CHECK(w.heard->count(kind::lost) == 0);
      w.run(held.unlock());
      for (const auto n : last(2)) way.end(w, n);
      w.until([&] { return w.where("m").empty(); });
    }
}

TEST_CASE("without a majority each silent primary is named, and asked for its release when it is back") {
  for (const auto& way : {hung, cut_off, slow, mute})
    for (const auto nested : both) {
      INFO(way.name);
      proxied_red_world w;
      auto founder = w.founded();
      auto redis = w.through(be_impatient);
      meet(w, redis, nested);
      for (const auto n : last(3)) way.begin(w, n);
      auto lock = redis.red_lock("m", nested);
      const auto failed = text_of_failure([&] { (void)w.run(lock.try_lock()); });
      INFO(failed);
      CHECK(failed.find(" of 5 primaries, and 3 are needed") != failed.npos);
      for (const auto n : last(3)) CHECK(failed.find(w.nets[n].socket_path()) != failed.npos);
      w.until([&] { return was_asked_to_release(w, 0) && was_asked_to_release(w, 1); });
      CHECK(w.eyes[0]("EXISTS", "m") == 0);
      CHECK(w.eyes[1]("EXISTS", "m") == 0);
      started<lease> waits(w, lock.lock());
      w.until([&] { return w.code_of(redis.red_lock("n", nested).try_lock_for(50ms)) == errc::quorum_failed; });
      CHECK(w.code_of(lock.is_locked()) == errc::quorum_failed);
      CHECK_FALSE(waits.answer);
      for (const auto n : last(3)) way.end(w, n);
      w.until([&] { return waits.succeeded(); });
      w.run(waits.answer->value().unlock());
      w.until([&] { return w.where("m").empty() && w.where("n").empty(); });
      for (std::size_t n = 0; n < 5; ++n) w.until([&] { return was_asked_to_release(w, n); });
    }
}

TEST_CASE(
    "grants of a majority that are answered too late to be used are given back while they are still on their way") {
  for (const auto nested : both) {
    proxied_red_world w;
    auto founder = w.founded();
    // A connection that is silent for the time of a vote, a fiftieth of the TTL, is not given up yet.
    auto redis = w.through([](config& c) { c.command_timeout = 5s; });
    auto lock = redis.red_lock("m", nested);
    meet(w, redis, nested);
    for (const auto n : last(3)) mute.begin(w, n);
    CHECK(w.code_of(lock.try_lock({.ttl = 20s})) == errc::quorum_failed);
    w.until([&] { return w.where("m").empty(); });
    for (const auto n : last(3)) mute.end(w, n);
    CHECK(w.run(lock.lock()).held());
    CHECK(w.heard->count(kind::acquired) == 2);
  }
}

TEST_CASE("a process that stood still until little was left of what a majority had granted gives it back everywhere") {
  for (const auto nested : both) {
    proxied_red_world w;
    auto founder = w.founded();
    auto redis = w.through();
    meet(w, redis, nested);
    for (auto& net : w.nets) net.at_reply({.what = proxy::rule::action::hold_rest});
    started<std::optional<lease>> call(w, redis.red_lock("m", nested).try_lock({.ttl = 1s}));
    const auto over = steady_clock::now() + 1s;
    const auto answered = [](const proxy& net) { return net.count().fired == 1; };
    w.until([&] { return std::all_of(w.nets.begin(), w.nets.end(), answered); });
    while (steady_clock::now() < over) w.eyes[0]("PING");  // our context does not run
    for (auto& net : w.nets) {
      const auto seen = net.count().bytes_to_client;
      net.release();
      REQUIRE(net.wait_until([&](const auto& c) { return c.bytes_to_client > seen; }));
    }
    w.until([&] { return call.answer.has_value(); });
    REQUIRE(call.answer->has_error());
    // The second: the machine was so busy that the attempt's time was over before it stood still.
    const auto& why = call.answer->error();
    CHECK((why == errc::unreachable || why == errc::quorum_failed));
    CHECK(w.heard->count(kind::acquired) == 1);  // that of meet()
    for (std::size_t n = 0; n < 5; ++n) w.until([&] { return was_asked_to_release(w, n); });
    CHECK(w.where("m").empty());
  }
}

TEST_CASE("renewals by a minority extend no validity, and one more extends it again") {
  for (const auto nested : both) {
    held_by_all w(3s, nested);
    auto& held = w.held;
    for (const auto n : last(3)) slow.begin(w, n);
    const auto left = held.valid_for() + 1ms;  // which cuts fractions
    const auto end = steady_clock::now() + left;
    for (const std::size_t n : {0, 1})  // renewed there: else the key lives on for little longer than is claimed
      w.until([&] { return w.eyes[n]("PTTL", "m").integer() * 1ms > held.valid_for() + 300ms; });
    w.until([&] { return held.state() == lease_state::suspended; });
    const auto now = steady_clock::now();
    CHECK(now + held.valid_for() <= end);
    slow.end(w, 2);
    w.until([&] { return held.state() == lease_state::held; });
    const auto later = steady_clock::now();
    CHECK(later + held.valid_for() > end);
    CHECK(w.heard->count(kind::lost) == 0);
    for (const auto n : last(2)) slow.end(w, n);
    w.run(held.unlock());
    w.until([&] { return w.where("m").empty(); });
  }
}

TEST_CASE("a red_lock that a minority alone renews is lost when its validity ends, without the network") {
  for (const auto nested : both) {
    held_by_all w(1500ms, nested);
    auto& held = w.held;
    for (const auto n : last(3)) slow.begin(w, n);
    const auto before = steady_clock::now();
    const auto end = before + held.valid_for();
    CHECK(w.code_of(held.renew()) == errc::quorum_failed);
    CHECK(held.held());
    w.until([&] { return w.heard->count(kind::lost) == 1; });
    CHECK(steady_clock::now() >= end);
    CHECK_FALSE(held.held());
    CHECK(held.state() == lease_state::lost);
    for (const auto n : last(3)) slow.end(w, n);
    CHECK(w.code_of(held.unlock()) == errc::lost);
    w.until([&] { return w.where("m").empty(); });
  }
}

namespace {

/// A row with a version, which refuses a write that was made for another: what a red_lock has in place of a token.
struct versioned_row {
  int version = 1;
  bool write(int read) { return read == version && ++version; }
};

/// Servers of which some have a clock that the test sets.
struct clock_world : red_world {
  explicit clock_world(const std::vector<std::size_t>& set) {
    for (const auto n : set) {
      node(n).options().environment = clock.environment();
      restart(n);
    }
  }
  stepped_clock clock{HOLDFAST_CLOCK_SHIM};
};

}  // namespace

TEST_CASE(
    "clocks that are set forward at a majority give the lock away, its holder is told, and a version refuses him") {
  for (const auto nested : both) {
    clock_world w({2, 3, 4});
    auto redis = w.founded(), other = w.make();
    meet(w, redis, nested);
    versioned_row row;
    auto held = w.run(redis.red_lock("m", nested).lock());
    w.until([&] { return w.where("m") == "ABCDE"; });
    const auto read = row.version;
    w.clock.step_to(40s);
    auto second = w.run(other.red_lock("m", nested).lock());
    CHECK(second.held());
    CHECK(held.held());  // two holders: the promise ends with the servers' clocks
    CHECK(row.write(row.version));
    CHECK_FALSE(row.write(read));
    CHECK(w.code_of(held.renew()) == errc::lost);
    CHECK_FALSE(held.held());
    CHECK(w.code_of(held.unlock()) == errc::lost);
    CHECK(second.held());
    CHECK_FALSE(second.token());
  }
}

TEST_CASE(
    "one clock that is set forward gives a lock away where it was one of a bare majority, and else costs nothing") {
  for (const auto nested : both)
    for (const bool bare : {true, false}) {
      INFO("of a bare majority: " << bare);
      clock_world w({2});
      w.founded();
      auto redis = bare ? w.that_sees({0, 1, 2}) : w.make();
      if (!bare) meet(w, redis, nested);
      auto other = w.that_sees({2, 3, 4});
      auto held = w.run(redis.red_lock("m", nested).lock());
      w.until([&] { return w.where("m").size() == (bare ? 3 : 5); });
      w.clock.step_to(40s);
      auto second = w.run(other.red_lock("m", nested).try_lock());
      CHECK(second.has_value() == bare);
      CHECK(held.held());
      w.eyes[2]("CLIENT", "KILL", "TYPE", "normal");  // so that its word is asked for at once
      bare ? w.until([&] { return w.heard->count(kind::lost) == 1; }) : w.run(held.renew());
      CHECK(held.held() == !bare);
      CHECK(w.heard->count(kind::lost) == (bare ? 1 : 0));
    }
}

TEST_CASE("a client ends in good order while two of five primaries are silent, and leaves no key on the others") {
  enum class end { drain, shutdown, destructor };
  for (const auto how : {end::drain, end::shutdown, end::destructor})
    for (const auto& way : {hung, cut_off}) {
      INFO("end " << static_cast<int>(how) << ", " << way.name);
      proxied_red_world w;
      auto founder = w.founded();
      std::optional<client> redis = w.through([](config& c) { c.command_timeout = 1s; });
      meet(w, *redis, reentrancy::reentrant);
      std::vector<lease> held;
      for (const auto* name : {"a", "b", "c"}) held.push_back(w.run(redis->red_lock(name).lock()));
      for (const auto* name : {"a", "b", "c"}) w.until([&] { return w.where(name) == "ABCDE"; });
      for (const auto n : last(2)) way.begin(w, n);
      const auto begun = steady_clock::now();
      if (how == end::drain) {
        started<void> drained(w, redis->drain(1h));
        for (auto& each : held) CHECK_FALSE(w.code_of(each.unlock()));
        w.until([&] { return drained.answer.has_value(); });
      } else if (how == end::shutdown) {
        w.run(redis->shutdown(1s));
        CHECK(steady_clock::now() - begun < 1s + load);
      } else {
        redis.reset();
        CHECK_FALSE(held.front().held());
        drain(w.io);
      }
      for (const auto* name : {"a", "b", "c"})
        for (std::size_t n = 0; n < 3; ++n) w.until([&] { return w.eyes[n]("EXISTS", name) == 0; });
      for (const auto n : last(2)) way.end(w, n);
    }
}

TEST_CASE("a waiter that gives up while primaries are silent leaves nothing on any of them") {
  enum class end { cancelled, deadline };
  for (const auto how : {end::cancelled, end::deadline})
    for (const auto& way : {hung, cut_off, slow, mute})
      for (const std::size_t silent : {2, 3})
        for (const auto nested : both) {
          INFO("end " << static_cast<int>(how) << ", " << silent << " of 5 " << way.name);
          proxied_red_world w;
          auto founder = w.founded();
          auto redis = w.through(be_impatient), other = w.make();
          meet(w, redis, nested);
          // Contention where a majority answers; else the silence alone is what is waited for.
          std::optional<lease> held;
          if (silent == 2) held = w.run(other.red_lock("m", nested).lock());
          for (const auto n : last(silent)) way.begin(w, n);
          for (const std::size_t n : {0, 1}) w.eyes[n]("CONFIG", "RESETSTAT");
          auto lock = redis.red_lock("m", nested);
          if (how == end::deadline) {
            const auto said = w.run(as_result(lock.try_lock_for(300ms)));
            CHECK((said ? !*said : said.error() == errc::quorum_failed));
          } else {
            cancellable_call<lease> call(w, lock.lock());
            w.until([&] { return w.calls(0, {"exists", "set"}) > 0; });  // it was asked
            call.cancel();
            w.until([&] { return call.answer.has_value(); });
            CHECK(call.answer->error() == asio::error::operation_aborted);
          }
          held.reset();  // it is given back in the background
          for (const auto n : last(silent)) way.end(w, n);
          w.until([&] { return w.where("m").empty(); });
          w.run(redis.shutdown(10s));
          CHECK(w.where("m").empty());
          for (std::size_t n = 0; n < 5; ++n)
            w.until([&] { return w.eyes[n]("PUBSUB", "CHANNELS", of_locks).array().empty(); });
        }
}
