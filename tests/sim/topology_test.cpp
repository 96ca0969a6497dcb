// SPDX-License-Identifier: BSL-1.0
// The simulated servers that are more than one: replicas, sentinels, a cluster.
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "lua_scripts.hpp"
#include "sim/cluster.hpp"
#include "sim/sentinels.hpp"
#include "support/catch.hpp"
#include "support/seeded_random.hpp"

using namespace holdfast::sim;
using namespace std::chrono_literals;
namespace lua = holdfast::detail::lua;
namespace test = holdfast::test;

namespace {

struct machines {
  test::seeded_random random{7};
  scheduler plan;
  trace log{nullptr};
  std::deque<server> all;
  explicit machines(std::size_t n) {
    for (unsigned i = 0; i < n; ++i) all.emplace_back(plan, 1.0, std::string(1, static_cast<char>('A' + i)), i);
  }
  ~machines() { plan.clear(); }

  reply ask(std::size_t n, const arguments& a) { return sessions(n, a); }
  void after(nanoseconds d) { plan.run_until(plan.now() + d); }

 private:
  reply sessions(std::size_t n, const arguments& a) {
    auto& program = all[n].program();
    const auto id = program.connect();
    const auto answers = program.execute(id, a);
    program.disconnect(id);
    return answers.at(0);
  }
};

struct sentinel_rig : machines {
  replication data{plan, all, random};
  sentinels watch{plan, all, data, random, log, {500ms, 1s, 10s}};
  sentinel_rig() : machines(6) { data.lag = 5ms; }
  reply master(std::size_t sentinel) { return ask(3 + sentinel, {"SENTINEL", "MASTER", "mymaster"}); }
  std::string field(const reply& r, std::string_view name) {
    for (std::size_t i = 0; i + 1 < r.elements.size(); i += 2)
      if (r.elements[i].text == name) return r.elements[i + 1].text;
    return {};
  }
};

struct cluster_rig : machines {
  replication data{plan, all, random};
  cluster nodes{plan, all, data, random, log, {1s, 50ms, 5ms}};
  cluster_rig() : machines(6) { data.lag = 5ms; }
  std::string key_of_shard(std::size_t shard) {
    for (int i = 0;; ++i)
      if (const auto k = "k" + std::to_string(i); nodes.shard_of(slot_of(k)) == shard) return k;
  }
};

arguments eval(const std::string& body, const arguments& keys) {
  arguments a{"EVAL", body, std::to_string(keys.size())};
  a.insert(a.end(), keys.begin(), keys.end());
  return a;
}

}  // namespace

TEST_CASE("a replica has a write after a lag, and refuses to write itself") {
  sentinel_rig r;
  r.after(1s);
  r.ask(0, {"SET", "a", "1"});
  CHECK(r.ask(1, {"GET", "a"}).type == reply::kind::nil);
  r.after(10ms);
  CHECK(r.ask(1, {"GET", "a"}).text == "1");
  CHECK(r.ask(1, {"SET", "a", "2"}).text == "READONLY You can't write against a read only replica.");
  const auto script = r.ask(1, eval("return redis.call('set', KEYS[1], '1')", {"a"})).text;
  CHECK(script.starts_with("READONLY You can't write against a read only replica. script: "));
  CHECK(script.ends_with(", on @user_script:1."));
  CHECK(r.ask(1, {"ROLE"}).elements.at(0).text == "slave");
  CHECK(r.ask(1, {"ROLE"}).elements.at(1).text == "10.0.0.1");
  CHECK(r.ask(0, {"ROLE"}).elements.at(2).elements.size() == 2);
}

TEST_CASE("sentinels put a replica in the place of a dead primary, tell of it one after the other, with a new epoch") {
  sentinel_rig r;
  std::set<std::pair<std::string, std::string>> said;
  const auto listen = [&] {
    for (std::size_t i = 0; i < 3; ++i) said.emplace(r.field(r.master(i), "config-epoch"), r.field(r.master(i), "ip"));
  };
  r.after(1s);
  r.ask(0, {"SET", "a", "1"});
  r.after(10ms);
  r.ask(0, {"SET", "b", "1"});  // nobody else will ever have it
  r.all[0].shut_down();
  r.data.lose_what_is_on_its_way_from(0);
  r.watch.look();
  r.after(400ms);
  CHECK(r.watch.primary() == 0);
  for (int i = 0; i < 20; ++i) listen(), r.after(100ms);
  const auto now = r.watch.primary();
  REQUIRE(now != 0);
  CHECK(said == std::set<std::pair<std::string, std::string>>{{"0", "10.0.0.1"}, {"1", r.all[now].at().host}});
  CHECK(r.ask(now, {"GET", "a"}).text == "1");
  CHECK(r.ask(now, {"GET", "b"}).type == reply::kind::nil);
  CHECK(r.ask(now, {"SET", "c", "1"}).text == "OK");
  CHECK(r.watch.settled());
}

TEST_CASE("an old primary answers for a while, and then has what the new one has") {
  sentinel_rig r;
  r.after(1s);
  REQUIRE(r.watch.fail_over());
  r.after(500ms);
  const auto now = r.watch.primary();
  REQUIRE(now != 0);
  CHECK(r.ask(0, {"SET", "a", "stale"}).text == "OK");
  r.ask(now, {"SET", "a", "new"});
  const auto listener = r.all[0].program().connect();
  r.after(11s);
  CHECK_FALSE(r.all[0].program().connected(listener));
  CHECK(r.ask(0, {"SET", "a", "x"}).text.starts_with("READONLY"));
  CHECK(r.ask(0, {"GET", "a"}).text == "new");
}

TEST_CASE("a sentinel that is cut off keeps an older epoch until it is reached again") {
  sentinel_rig r;
  r.after(1s);
  r.data.isolate(5, true);
  REQUIRE(r.watch.fail_over());
  r.after(5s);
  CHECK(r.field(r.master(2), "config-epoch") == "0");
  r.data.isolate(5, false);
  r.watch.look();
  r.after(2s);
  CHECK(r.field(r.master(2), "config-epoch") == "1");
}

TEST_CASE("most sentinels must run for a failover") {
  sentinel_rig r;
  r.after(1s);
  r.all[3].shut_down();
  r.all[4].stop();
  r.all[0].shut_down();
  r.watch.look();
  r.after(10s);
  CHECK(r.watch.primary() == 0);
  r.all[4].resume();
  r.watch.look();
  r.after(10s);
  CHECK(r.watch.primary() != 0);
}

TEST_CASE("a node of a cluster answers for its own slots, and says who has the others") {
  cluster_rig r;
  r.after(1s);
  const auto mine = r.key_of_shard(0), other = r.key_of_shard(1);
  CHECK(r.ask(0, {"SET", mine, "1"}).text == "OK");
  CHECK(r.ask(0, {"SET", other, "1"}).text == "MOVED " + std::to_string(slot_of(other)) + " 10.0.0.2:6379");
  CHECK(r.ask(3, {"GET", mine}).text == "MOVED " + std::to_string(slot_of(mine)) + " 10.0.0.1:6379");
  CHECK(r.ask(0, {"DEL", mine, other}).text == "CROSSSLOT Keys in request don't hash to the same slot");
  CHECK(r.ask(0, eval("return redis.call('get', ARGV[1])", {mine, other})).text.starts_with("CROSSSLOT"));
  const auto slots = r.ask(4, {"CLUSTER", "SLOTS"});
  REQUIRE(slots.elements.size() == 3);
  CHECK(slots.elements[1].elements[2].elements[0].text == "10.0.0.2");
  CHECK(slots.elements[1].elements[3].elements[0].text == "10.0.0.5");
}

TEST_CASE("a slot moves key by key, and both ends say so") {
  cluster_rig r;
  r.after(1s);
  const auto key = r.key_of_shard(0);
  const auto token = "t{" + key + "}";
  const auto slot = std::to_string(slot_of(key));
  r.ask(0, {"SET", key, "1", "PX", "60000"});
  auto& source = r.all[0].program();
  auto& target = r.all[1].program();
  const auto listener = source.connect();
  source.execute(listener, {"SSUBSCRIBE", key});
  source.slots().migrate(slot_of(key), 1);
  target.slots().import(slot_of(key), 0);
  CHECK(r.ask(0, {"GET", key}).text == "1");
  CHECK(r.ask(0, {"GET", token}).text == "ASK " + slot + " 10.0.0.2:6379");
  CHECK(r.ask(0, eval("return 1", {key, token})).text == "TRYAGAIN Multiple keys request during rehashing of slot");
  CHECK(r.ask(0, {"SPUBLISH", key, "x"}).integer == 1);
  CHECK(r.ask(1, {"GET", token}).text == "MOVED " + slot + " 10.0.0.1:6379");
  CHECK(r.ask(0, eval("redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], 1)", {key}))
            .text.starts_with("ERR Script attempted to access a non local key in a cluster node"));
  const auto id = target.connect();
  const auto asking = [&](const arguments& a) {
    target.execute(id, {"ASKING"});
    return target.execute(id, a).at(0);
  };
  CHECK(asking({"GET", token}).type == reply::kind::nil);
  CHECK(target.execute(id, {"GET", token}).at(0).text.starts_with("MOVED"));
  CHECK(asking(eval("return 1", {key, token})).text.starts_with("TRYAGAIN"));
  CHECK(asking({"EVALSHA", std::string(40, '0'), "1", token}).text.starts_with("NOSCRIPT"));
  CHECK(target.execute(id, eval("return 1", {token})).at(0).text.starts_with("MOVED"));
  CHECK(asking({"SPUBLISH", key, "x"}).integer == 0);
}

TEST_CASE("a release of a fair mutex takes the lock for the next waiter also while its slot is being moved") {
  cluster_rig r;
  r.after(1s);
  const auto name = r.key_of_shard(0);
  const std::string client = "00000000-0000-8000-8000-0000000000aa", place = client + ":1000000000";
  const auto queue = "redisson_lock_queue:{" + name + "}", deadlines = "redisson_lock_timeout:{" + name + "}";
  r.ask(0, {"HSET", name, client + ":1", "1"});
  r.ask(0, {"PEXPIRE", name, "60000"});
  r.ask(0, {"RPUSH", queue, place});
  r.ask(0, {"ZADD", deadlines, "1", place});
  r.all[0].program().slots().migrate(slot_of(name), 1);
  r.all[1].program().slots().import(slot_of(name), 0);
  const auto answer = r.ask(0, {"EVAL", std::string(lua::fair_release.body), "3", name, queue, deadlines, "publish",
                                client + ":1", client + ":2", "60000"});
  INFO(answer.text);
  REQUIRE(answer.elements.size() == 3);
  CHECK(answer.elements[0].integer == 2);
  CHECK(answer.elements[1].text == place);
  CHECK(r.ask(0, {"HGET", name, client + ":2"}).text == "1");
  CHECK(r.ask(0, {"HLEN", name}).integer == 1);
}

TEST_CASE("a slot that has moved has its keys at the other end, and its subscriptions are over") {
  cluster_rig r;
  r.after(1s);
  const auto key = r.key_of_shard(0);
  r.ask(0, {"SET", key, "1", "PX", "60000"});
  auto& source = r.all[0].program();
  const auto listener = source.connect();
  source.execute(listener, {"SSUBSCRIBE", key});
  REQUIRE(r.nodes.move(slot_of(key), 1));
  r.after(1s);
  CHECK_FALSE(r.nodes.moves(slot_of(key)));
  CHECK(r.nodes.owner(key) == 1);
  CHECK(r.ask(1, {"GET", key}).text == "1");
  const auto left = r.ask(1, {"PTTL", key}).integer;
  CHECK((left > 58'000 && left <= 60'001));
  CHECK(r.ask(0, {"GET", key}).text.starts_with("MOVED"));
  CHECK(r.ask(2, {"GET", key}).text == "MOVED " + std::to_string(slot_of(key)) + " 10.0.0.2:6379");
  CHECK(source.subscriptions() == 0);
  CHECK(r.nodes.settled());
}

TEST_CASE("a shard that dies stops the whole cluster until its replica has its place") {
  cluster_rig r;
  r.after(1s);
  const auto lost = r.key_of_shard(0), other = r.key_of_shard(1);
  r.ask(0, {"SET", lost, "1"});
  r.after(10ms);
  r.all[0].shut_down();
  r.nodes.look();
  r.after(900ms);
  CHECK(r.ask(1, {"SET", other, "1"}).text == "OK");
  bool stopped = false;
  for (int i = 0; i < 100; ++i)
    stopped |= r.ask(1, {"SET", other, "1"}).text == "CLUSTERDOWN The cluster is down", r.after(20ms);
  CHECK(stopped);
  CHECK(r.ask(1, {"SET", other, "1"}).text == "OK");
  CHECK(r.ask(3, {"GET", lost}).text == "1");
  r.all[0].start(true);
  r.nodes.look();
  r.after(1s);
  CHECK(r.ask(0, {"GET", lost}).text == "MOVED " + std::to_string(slot_of(lost)) + " 10.0.0.4:6379");
  CHECK(r.nodes.settled());
}

TEST_CASE("a primary that the others do not reach serves on until the timeout, and follows when they reach it again") {
  cluster_rig r;
  r.after(1s);
  const auto key = r.key_of_shard(0);
  r.data.isolate(0, true);
  r.nodes.look();
  r.after(500ms);
  CHECK(r.ask(0, {"SET", key, "stale"}).text == "OK");
  r.after(3s);
  CHECK(r.ask(0, {"GET", key}).text == "CLUSTERDOWN The cluster is down");
  CHECK(r.ask(3, {"SET", key, "new"}).text == "OK");
  r.data.isolate(0, false);
  r.nodes.look();
  r.after(2s);
  CHECK(r.ask(0, {"GET", key}).text.starts_with("MOVED"));
  CHECK(r.all[0].program().keys().find(key)->text()->starts_with("new"));
}

TEST_CASE("a failover that somebody asks for loses nothing") {
  cluster_rig r;
  r.after(1s);
  const auto key = r.key_of_shard(2);
  r.ask(2, {"SET", key, "1"});
  REQUIRE(r.nodes.fail_over(2));
  r.after(100ms);
  CHECK(r.nodes.owner(key) == 5);
  CHECK(r.ask(5, {"GET", key}).text == "1");
  CHECK(r.ask(2, {"GET", key}).text.starts_with("MOVED"));
}
