// SPDX-License-Identifier: BSL-1.0
// A node of the simulated cluster against one of a real cluster: the same commands, the same answers.
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "sim/cluster.hpp"
#include "sim/values.hpp"
#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/real_cluster.hpp"
#include "support/seeded_random.hpp"
#include "support/skip.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using sim::arguments;
using sim::reply;

namespace {

/// The address in a redirect, and where in a script it failed, are the server's own.
std::string comparable(std::string text) {
  if (text.starts_with("MOVED ") || text.starts_with("ASK ")) return text.substr(0, text.find(' ', text.find(' ') + 1));
  return text.substr(0, text.find(" script: "));
}

std::string text_of(const test::value& v) {
  switch (v.type) {
    case test::value::kind::integer: return std::to_string(v.number);
    case test::value::kind::error: return "error: " + comparable(v.text);
    case test::value::kind::nil: return "nil";
    case test::value::kind::array: break;
    default: return v.text;
  }
  std::string all;
  for (const auto& e : v.elements) all += text_of(e) + ' ';
  return all;
}

/// Two primaries of each cluster, and a name of the first.
struct two_clusters {
  test::real_cluster real;
  test::seeded_random random{1};
  sim::scheduler plan;
  sim::trace log{nullptr};
  std::deque<sim::server> simulated;
  sim::replication data{plan, simulated_servers(), random};
  sim::cluster cluster{plan, simulated, data, random, log, {1s, 1ms, 1ms}};
  std::deque<test::raw_client> there;
  std::vector<sim::node::session_id> here;
  const std::string name = real.name_on(0);
  const unsigned slot = real.slot_of(name);

  two_clusters() {
    for (const std::size_t n : {0, 1}) {
      there.emplace_back(real.node(n));
      here.push_back(simulated[n].program().connect());
    }
  }
  ~two_clusters() { plan.clear(); }
  std::deque<sim::server>& simulated_servers() {
    for (unsigned i = 0; i < 6; ++i) simulated.emplace_back(plan, 1.0, std::string(1, static_cast<char>('A' + i)), i);
    return simulated;
  }

  void compare(std::size_t node, const arguments& a) {
    INFO("node " << node << ": " << a.front() << ' ' << a.at(1));
    auto expected = text_of(there[node].call(a));
    // Redis 8 has words of its own for a key that the script has not declared.
    if (const auto at = expected.find("Unable to execute command"); at != std::string::npos)
      expected.replace(at, std::string::npos, "Script attempted to access a non local key in a cluster node");
    CHECK(text_of(sim::as_value(simulated[node].program().execute(here[node], a).at(0))) == expected);
  }
  void compare_asking(std::size_t node, const arguments& a) {
    CHECK(text_of(there[node]("ASKING")) == "OK");
    simulated[node].program().execute(here[node], {"ASKING"});
    compare(node, a);
  }
  /// All that depends on where the keys are: this one, which is there at first, and one beside it, which is not.
  void compare_all(bool asking) {
    const auto beside = "{" + name + "}beside", third = "{" + name + "}third";
    const auto eval = [](const std::string& body, const arguments& keys) {
      arguments a{"EVAL", body, std::to_string(keys.size())};
      a.insert(a.end(), keys.begin(), keys.end());
      return a;
    };
    const arguments all[] = {
        {"GET", name},
        {"GET", beside},
        {"EXISTS", name, beside},
        {"EXISTS", beside, third},
        {"EVALSHA", std::string(40, '0'), "1", name},
        {"EVALSHA", std::string(40, '0'), "1", beside},
        eval("return 1", {name}),
        eval("return 1", {name, beside}),
        eval("return 1", {beside, third}),
        eval("return redis.call('get', ARGV[1])", {name, beside}),
        {"EVAL", "return redis.call('get', ARGV[1])", "1", name, beside},
        {"EVAL", "return redis.call('exists', KEYS[1], ARGV[1])", "1", name, beside},
        {"EVAL", "return redis.pcall('get', ARGV[1]).err", "1", name, name + "elsewhere"},
        {"EVAL", "return redis.call('spublish', ARGV[1], '0')", "1", name, beside},
        {"EVAL", "return redis.call('publish', ARGV[1], '0')", "1", name, beside},
        {"SPUBLISH", name, "x"},
        {"PUBLISH", name, "x"},
    };
    for (const std::size_t node : {0, 1})
      for (const auto& a : all) asking ? compare_asking(node, a) : compare(node, a);
  }
};

}  // namespace

TEST_CASE("a node of the simulated cluster answers as one of a real cluster before, while and after a slot moves") {
  if (!test::real_redis::available()) test::skip("no Redis server");
  two_clusters both;
  both.plan.run_until(both.plan.now() + 1s);
  const auto slot = static_cast<sim::slot_number>(both.slot);
  REQUIRE(sim::slot_of(both.name) == slot);
  both.compare(0, {"SET", both.name, "1"});
  both.compare(0, {"DEL", both.name, both.real.name_on(1)});
  both.compare(0, {"SSUBSCRIBE", both.real.name_on(1)});
  both.compare(0, {"SUNSUBSCRIBE", both.real.name_on(1)});
  both.compare_all(false);
  both.compare_all(true);

  both.real.begin_move(both.slot, 1);
  both.simulated[0].program().slots().migrate(slot, 1);
  both.simulated[1].program().slots().import(slot, 0);
  both.compare_all(false);
  both.compare_all(true);
  // A script that has taken a key away does not find its way back to it.
  both.compare(0, {"EVAL", "redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], '1')", "1", both.name});
  both.compare_all(false);
  both.compare_all(true);

  both.real.move_keys(both.slot, 1);
  both.real.end_move(both.slot, 1);
  for (const std::size_t node : {0, 1}) {
    both.simulated[node].program().slots().close(slot);
    both.simulated[node].program().slots().set_owner(slot, 1);
  }
  both.compare_all(false);
  both.compare_all(true);
}

TEST_CASE("an acquire that takes the last ended permit back while its slot moves answers as at any other time") {
  if (!test::real_redis::available()) test::skip("no Redis server");
  two_clusters both;
  both.plan.run_until(both.plan.now() + 1s);
  const auto key = [&](const std::string& part) { return "{" + both.name + "}" + part; };
  const auto on_both = [&](const arguments& a) {
    return std::vector<std::string>{text_of(both.there[0].call(a)),
                                    text_of(sim::as_value(both.simulated[0].program().execute(both.here[0], a).at(0)))};
  };
  const auto acquire = [&](const std::string& keeper) {
    return arguments{"EVAL",
                     std::string(detail::lua::permits_acquire.body),
                     "3",
                     key("counter" + keeper),
                     key("permits" + keeper),
                     key("door" + keeper),
                     "30000",
                     "3",
                     "600",
                     "publish",
                     "channel",
                     "1",
                     "1",
                     "mine"};
  };
  using texts = std::vector<std::string>;
  for (const std::string keeper : {"mine", "other"}) {
    on_both({"SET", key("counter" + keeper), "0"});
    on_both({"ZADD", key("permits" + keeper), "1", "ended"});
    on_both({"SET", key("door" + keeper), keeper, "PX", "100000"});
  }
  both.real.begin_move(both.slot, 1);
  both.simulated[0].program().slots().migrate(static_cast<sim::slot_number>(both.slot), 1);
  CHECK(on_both(acquire("mine")) == texts{"1 0 ", "1 0 "});
  CHECK(on_both({"GET", key("countermine")}) == texts{"0", "0"});
  for (const auto& text : on_both(acquire("other"))) CHECK(text.starts_with("-1 "));
  CHECK(on_both({"GET", key("counterother")}) == texts{"1", "1"});
}
