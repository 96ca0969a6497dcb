// SPDX-License-Identifier: BSL-1.0
// Loses the first, second, … reply of a whole script, until the script ends before the fault comes: every point at
// which the answer may get lost, found by the test itself. And the messages that waiters hope for: late, lost, false,
// in floods.
#include <iostream>

#include "integration/wire_fault.hpp"
#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;
using std::chrono::steady_clock;
using texts = std::vector<std::string>;

namespace {

const std::string channel = "redisson_lock__channel:{m}";
const std::string stranger = "c6ae660e-4bf6-8605-ae66-59d052e0c483:1";  // takes turns
constexpr auto soon = 3s;  // for what must not wait for the poll cap of 5 s

/// What the caller saw.
struct life {
  error_code renewed, lowered, freed;
  std::optional<lease> outer, inner;
  bool ended = false;
};

texts counts(world& w) { return w.eye("HVALS", "m").strings(); }

/// Nobody waits for a count; the last unlock frees however often it is counted.
bool counted_once_or_twice(world& w) {
  const auto now = counts(w);
  return now == texts{"1"} || now == texts{"2"};
}

/// lock – re-enter – renew – unlock – unlock, and what each leaves in the hash.
asio::awaitable<void> live(world& w, client& redis, life& l) {
  const owner me;
  auto mutex = redis.mutex("m", me);
  l.outer = co_await mutex.lock();
  CHECK(counts(w) == texts{"1"});
  l.inner = co_await mutex.lock();
  l.renewed = (co_await as_result(l.inner->renew())).error();
  CHECK(counted_once_or_twice(w));
  CHECK(l.inner->held());
  l.lowered = (co_await as_result(l.inner->unlock())).error();
  CHECK(counted_once_or_twice(w));
  CHECK(l.outer->held());
  l.freed = (co_await as_result(l.outer->unlock())).error();
  l.ended = true;
}

/// One life with the n-th unit lost; false when it ended before. All of it with a world of its own would take ten times
/// as long.
bool live_with(const wire_fault& f, std::size_t n, world& w, proxy& net) {
  INFO(f.name << ", number " << n);
  const auto fired_before = net.count().fired, lost_before = w.heard->count(kind::lost);
  const auto fired = [&] { return net.count().fired > fired_before; };
  const auto begun = steady_clock::now();
  w.eye("SCRIPT", "FLUSH");  // so that each script is sent twice
  {
    auto redis = w.make([&](config& c) {
      c.url = net.url();
      c.ttl = f.silent ? 3s : 10s;
      c.command_timeout = f.silent ? 60ms : 2s;
      c.connect_timeout = f.silent ? 100ms : 2s;
    });
    f.to_server ? net.at_command({.what = f.done, .n = n}) : net.at_reply({.what = f.done, .n = n});
    life l;
    asio::co_spawn(w.io, live(w, redis, l), asio::detached);
    std::optional<steady_clock::time_point> since;
    w.until([&] {
      if (!since && fired()) since = steady_clock::now();
      if (since && steady_clock::now() > *since + 90ms) net.release();
      return l.ended;
    });
    CHECK((!l.renewed || (f.silent && l.renewed == errc::unreachable)));
    CHECK_FALSE(l.lowered);
    CHECK((!l.freed || (f.silent && l.freed == errc::unconfirmed)));
    if (!l.freed) CHECK(w.keys().empty());
    w.until([&] { return w.keys().empty(); }, 2s);
    net.release();
    drain(w.io, 5s);
  }
  drain(w.io, 5s);
  CHECK(w.heard->count(kind::lost) == lost_before);
  CHECK(w.keys().empty());
  CHECK(w.eye("PUBSUB", "CHANNELS", of_locks).array().empty());
  CHECK(steady_clock::now() - begun < 10s);
  const bool done = !fired();
  net.heal();
  return !done;
}

void hold_by_hand(raw_client& eye, std::chrono::milliseconds ttl = 60s) {
  eye("HSET", "m", stranger, 1);
  eye("PEXPIRE", "m", ttl.count());
}
void free_by_hand(raw_client& eye) {
  eye("HDEL", "m", stranger);
  eye("PUBLISH", channel, "0");
}
redis_options durable() {
  redis_options o;
  o.arguments = {"--appendonly", "yes", "--appendfsync", "always"};
  return o;
}
bool subscribed(raw_client& eye) { return eye("PUBSUB", "NUMSUB", channel).array()[1] == 1; }

}  // namespace

TEST_CASE("an answer lost anywhere costs no lock and leaves no key and no false alarm") {
  const auto& f = wire_faults[GENERATE(range(0, 6))];
  world w;
  proxy net(w.server);
  std::size_t n = 1;
  while (live_with(f, n, w, net)) REQUIRE(++n < 100);
  std::cout << f.name << ": " << n - 1 << " points\n";
  CHECK(n > 10);
}

TEST_CASE("a waiter whose connections are killed is woken all the same") {
  const std::string type = GENERATE("pubsub", "normal");
  world w;
  auto redis = w.make();
  hold_by_hand(w.eye);
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return subscribed(w.eye); });
  CHECK(w.eye("CLIENT", "KILL", "TYPE", type).integer() >= 1);
  w.until([&] { return subscribed(w.eye); });
  w.pass(30ms);
  CHECK_FALSE(got.answer);
  free_by_hand(w.eye);
  w.until([&] { return got.succeeded(); }, soon);
}

TEST_CASE("a subscription whose acknowledgement is swallowed is made again") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(), c.command_timeout = 60ms; });
  hold_by_hand(w.eye);
  net.at_reply({.what = action::drop_rest, .command = "subscribe"});
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return net.count().commands["SUBSCRIBE"] == 2 && subscribed(w.eye); });
  free_by_hand(w.eye);
  w.until([&] { return got.succeeded(); }, soon);
}

TEST_CASE("an unlock between the attempt and the acknowledgement of the subscription is not missed") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(); });
  hold_by_hand(w.eye);
  net.at_command({.what = action::hold_rest, .command = "SUBSCRIBE"});
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return net.count().fired == 1; });
  free_by_hand(w.eye);  // nobody listens yet
  CHECK_FALSE(got.answer);
  net.release();
  w.until([&] { return got.succeeded(); }, soon);
}

TEST_CASE("a message that is dropped costs a waiter no more than the poll cap") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(), c.poll_cap = 200ms; });
  hold_by_hand(w.eye);
  net.at_reply({.what = action::drop, .times = proxy::always, .command = "message"});
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return net.count().commands["EVALSHA"] == 2; });  // the second attempt comes after the acknowledgement
  w.pass(20ms);
  free_by_hand(w.eye);
  CHECK(net.wait_for_fired());
  CHECK_FALSE(got.answer);
  w.until([&] { return got.succeeded(); }, 200ms + soon);
}

TEST_CASE("a holder that dies without a message is followed at the end of its ttl and not before") {
  world w;
  auto redis = w.make();
  const auto begun = steady_clock::now();
  hold_by_hand(w.eye, 400ms);
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return got.succeeded(); }, soon);
  CHECK(steady_clock::now() - begun >= 399ms);  // of the server's clock, in whole milliseconds
}

TEST_CASE("messages of any content wake a waiter and free nothing") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(); });
  hold_by_hand(w.eye);
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return subscribed(w.eye); });
  w.until([&] { return net.count().commands["EVALSHA"] == 2; });
  std::size_t attempts = 2;
  for (const auto& garbage :
       {std::string(), std::string("1"), std::string("\0\xff\r\n$-1\r\n", 9), std::string(900, '*')}) {
    w.eye("PUBLISH", channel, garbage);
    ++attempts;
    w.until([&] { return net.count().commands["EVALSHA"] == attempts; });
  }
  w.eye("PUBLISH", channel, std::string(100'000, 'x'));
  w.eye("PUBLISH", channel + "x", "0");
  w.pass(30ms);
  CHECK_FALSE(got.answer);
  CHECK(w.eye("HGETALL", "m").strings() == texts{stranger, "1"});
  CHECK(net.count().connections == 2);
  free_by_hand(w.eye);
  w.until([&] { return got.succeeded(); }, soon);
}

TEST_CASE("a flood of messages costs few attempts") {
  world w;
  auto redis = w.make();
  hold_by_hand(w.eye);
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return subscribed(w.eye); });
  w.pass(30ms);
  w.eye("CONFIG", "RESETSTAT");
  for (int i = 0; i < 1000; ++i) w.eye.send({"PUBLISH", channel, "0"});
  for (int i = 0; i < 1000; ++i) CHECK(w.eye.receive(10s).value() == 1);
  w.pass(200ms);
  const auto statistics = w.eye("INFO", "commandstats").to_string();
  const auto at = statistics.find("cmdstat_evalsha:calls=");
  REQUIRE(at != statistics.npos);
  CHECK(std::stoi(statistics.substr(at + 22)) <= 50);
  CHECK_FALSE(got.answer);
  free_by_hand(w.eye);
  w.until([&] { return got.succeeded(); }, soon);
}

TEST_CASE("a server that comes back with its data keeps the hold and lets the waiter wait") {
  world w(durable());
  auto a = w.make(), b = w.make();
  auto held = w.run(a.mutex("m").lock());
  started<lease> got(w, b.mutex("m").lock());
  w.until([&] { return subscribed(w.eye); });
  w.server.restart();
  w.eye = raw_client(w.server);
  w.until([&] { return w.heard->count(kind::restored) == 1 && subscribed(w.eye); });
  CHECK(held.held());
  CHECK(w.heard->count(kind::lost) == 0);
  CHECK_FALSE(got.answer);
  w.run(held.unlock());
  w.until([&] { return got.succeeded(); }, soon);
}

TEST_CASE("a server that comes back empty ends the hold and gives the lock to the waiter") {
  world w;
  auto a = w.make(), b = w.make();
  auto held = w.run(a.mutex("m").lock());
  started<lease> got(w, b.mutex("m").lock());
  w.until([&] { return subscribed(w.eye); });
  w.server.restart_empty();
  w.eye = raw_client(w.server);
  w.until([&] { return w.heard->count(kind::lost) == 1 && got.succeeded(); }, soon);
  CHECK_FALSE(held.held());
  CHECK(w.code_of(held.unlock()) == errc::lost);
  CHECK(got.answer->value().held());
  CHECK(w.eye("HLEN", "m") == 1);
}

TEST_CASE("a server that is killed while a script runs has done none of it and costs no lock and no count") {
  const bool keeps_its_data = GENERATE(true, false);
  world w(durable());
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(); });
  w.run(w.run(redis.mutex("m").lock()).unlock());  // connected, scripts known
  raw_client hog(w.server);
  hog.send(
      {"EVAL", "redis.call('set', 'half', 1) redis.log(redis.LOG_WARNING, 'it runs') while true do end", "1", "half"});
  w.until([&] { return w.server.log().find("it runs") != std::string::npos; });
  const auto before = net.count();
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return net.count().bytes_to_server > before.bytes_to_server; });
  w.server.kill();
  CHECK_FALSE(got.answer);
  keeps_its_data ? w.server.restart() : w.server.restart_empty();
  w.eye = raw_client(w.server);
  w.until([&] { return got.succeeded(); }, 5s + soon);
  CHECK(w.keys() == texts{"m"});
  CHECK(counts(w) == texts{"1"});
  w.run(got.answer->value().unlock());
  CHECK(w.keys().empty());
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("a server that is killed after a script and before its answer keeps one hold with one count") {
  world w(durable());
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(); });
  w.run(w.run(redis.mutex("m").lock()).unlock());  // connected, scripts known
  net.at_reply({.what = action::drop_rest});
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return net.count().fired == 1; });
  CHECK(w.eye("EXISTS", "m") == 1);
  w.server.restart();
  w.eye = raw_client(w.server);
  w.until([&] { return got.succeeded(); }, 5s + soon);
  CHECK(counts(w) == texts{"1"});
  w.run(got.answer->value().unlock());
  CHECK(w.keys().empty());
  drain(w.io);
  CHECK(w.keys().empty());
}
