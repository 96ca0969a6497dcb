// SPDX-License-Identifier: BSL-1.0
// The simulated node against a real server: the same commands, the same replies.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ranges>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "sim/values.hpp"
#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"
#include "support/seeded_random.hpp"
#include "support/server_version.hpp"
#include "support/skip.hpp"
#include "testing/sim/node.hpp"

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using sim::arguments;
using sim::as_value;
using sim::reply;
using test::value;

/// TTLs are long, or waited for: the two are asked one after the other, and a loaded machine may take its time between.
/// They lie so far apart that a TTL which was not set is not taken for one that was.
constexpr long long ttls[] = {100'000, 300'000, 1'000'000}, least_ttl = ttls[0], tolerance_ms = 50'000;
/// Tokens are times in microseconds, the ends of permits in milliseconds.
constexpr long long least_token = 1'000'000'000'000'000, tolerance_us = tolerance_ms * 1000;

std::int64_t wall_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

bool same_number(long long a, long long b) {
  const auto size = a < 0 ? -(a + 1) : a;  // a TTL may be in a negative number
  const auto tolerance = size > least_token ? tolerance_us : size > least_ttl / 2 ? tolerance_ms : 0;
  return std::abs(a - b) <= tolerance;
}

bool same_text(const std::string& a, const std::string& b) {
  long long left = 0, right = 0;
  return a == b || (sim::to_integer(a, left) && sim::to_integer(b, right) && same_number(left, right));
}

/// Equal, except in what two servers may differ in: the clock, and the words of an error inside a script.
bool same(const value& a, const value& b, bool exact_errors) {
  if (a.type != b.type || a.elements.size() != b.elements.size()) return false;
  for (std::size_t i = 0; i < a.elements.size(); ++i)
    if (!same(a.elements[i], b.elements[i], exact_errors)) return false;
  switch (a.type) {
    case value::kind::integer: return same_number(a.number, b.number);
    case value::kind::error: return exact_errors ? a.text == b.text : first_word(a.text) == first_word(b.text);
    default: return same_text(a.text, b.text);
  }
}

/// Conversions and errors that our own scripts do not meet.
constexpr std::string_view odd_scripts[] = {
    "return {1, 2, nil, 4}",
    "return {1, {2, 'three', {}}, false, true}",
    "return 3.99",
    "return -3.99",
    "return '\\0\\r\\n'",
    "return {ok = 'fine'}",
    "return {err = 'MINE says so'}",
    "return redis.error_reply('MINE says so')",
    "return redis.error_reply('-MINE says so')",
    "return redis.status_reply('fine')",
    "return redis.call('hgetall', KEYS[1])",
    "return redis.call('zrange', KEYS[1], 0, -1, 'withscores')",
    "return redis.call('zadd', KEYS[1], 1e12 + 7, ARGV[1])",
    "return type(redis.call('zscore', KEYS[1], ARGV[1]))",
    "return redis.call('hmget', KEYS[1], 'f0', 'none')",
    "return type(redis.call('hmget', KEYS[1], 'none')[1])",
    "return type(redis.call('zrank', KEYS[1], ARGV[1]))",
    "return type(redis.call('zpopmin', KEYS[1])[2])",
    "return redis.call('pubsub', 'numsub', KEYS[1])",
    "return redis.pcall('pubsub', 'nosuch', KEYS[1])",
    "return redis.pcall('incr', KEYS[1])",
    "return redis.call('incr', KEYS[1])",
    "return redis.pcall('nosuch', KEYS[1])",
    "return redis.call('get')",
    "return redis.pcall('get', {})",
    "return redis.call()",
    "return type(redis.call('get', KEYS[1]))",
    "return type(redis.call('hget', KEYS[1], 'f0'))",
    "return type(redis.call('type', KEYS[1])) .. redis.call('type', KEYS[1])['ok']",
    "return #redis.call('time')",
    "return redis.sha1hex('abc')",
    "return string.format('%.0f', tonumber(ARGV[1]) or -1)",
    "return redis.call('hset', KEYS[1], ARGV[1], 1.5)",
    "return redis.call('hset', KEYS[1], ARGV[1], 2^53)",
    "local r = redis.pcall('hget', KEYS[1], 'f0') if type(r) == 'table' then return r.err end return r",
    "error('on purpose')",
    "return nosuchfunction()",
    "this does not compile",
    "return #KEYS .. ' ' .. #ARGV",
};

/// Random commands, good and bad.
class command_maker {
 public:
  explicit command_maker(std::uint64_t seed) : random_(seed) {}

  arguments next() {
    const auto dice = below(100);
    if (dice < 30) return script_of_ours();
    if (dice < 40) return {"EVAL", std::string(pick(odd_scripts)), "1", key(), word()};
    if (dice < 42) return control();
    return plain();
  }
  std::size_t below(std::size_t n) { return random_.next() % n; }
  std::string key() { return pick(keys); }

 private:
  // Long ones where Lua takes them for numbers: they become TTLs.
  static constexpr std::string_view bad_numbers[] = {"",
                                                     "0",
                                                     "-1",
                                                     "2e5",
                                                     " 200000",
                                                     "200000 ",
                                                     "0x30d40",
                                                     "200000.5",
                                                     "abc",
                                                     "00",
                                                     "-0",
                                                     "+200000",
                                                     "9223372036854775807",
                                                     "99999999999999999999",
                                                     "86400001"};
  inline static const std::string keys[] = {"lock", "other", "text", "token", std::string("\0{\r\n", 4)};

  inline static const std::string queue = "redisson_lock_queue:{x}", deadlines = "redisson_lock_timeout:{x}";

  template <class Range>
  std::ranges::range_value_t<Range> pick(const Range& all) {
    return all[below(std::size(all))];
  }
  std::string field() { return "f" + std::to_string(below(3)); }
  std::string reader() { return field() + ":"; }
  std::string client() { return "00000000-0000-8000-8000-00000000000" + std::to_string(below(2)); }
  std::string place() { return client() + ":100000000" + std::to_string(below(3)); }
  std::string flag() { return std::to_string(below(2)); }
  std::string ttl() { return below(100) < 80 ? std::to_string(pick(ttls)) : std::string(pick(bad_numbers)); }
  std::string count() { return below(100) < 85 ? std::to_string(below(4)) : std::string(pick(bad_numbers)); }
  std::string publish_word() { return pick(std::array{"publish", "spublish", "auto", "both"}); }
  std::string word() { return below(2) ? field() : count(); }
  std::string score() {
    return below(100) < 85 ? pick(std::array{"1", "2", "2", "-3", "1.5", "inf", "-inf"})
                           : std::string(pick(bad_numbers));
  }
  std::string bound() { return (below(4) ? "" : "(") + score(); }

  arguments script_of_ours() {
    namespace lua = detail::lua;
    struct one {
      lua::script_text text;
      arguments keys, args;
    };
    const auto k = key();
    // No plain command reads it: two servers may order permits of one millisecond differently.
    const std::string set = "{p}:timeout";
    const one all[] = {
        {lua::acquire, {k}, {ttl(), field()}},
        {lua::acquire_fenced, {k, "token"}, {ttl(), field()}},
        {lua::acquire_fenced, {k, "token"}, {ttl(), field(), count()}},
        {lua::acquire_fenced, {k, "token"}, {ttl(), field(), count(), ttl()}},
        {lua::acquire_any, {k, key()}, {ttl(), field()}},
        {lua::acquire_any_fenced, {k, key(), "token", "other token"}, {ttl(), field()}},
        {lua::acquire_any_fenced, {k, key(), "token", "other token"}, {ttl(), field(), ttl()}},
        {lua::simple_acquire_any, {k, key()}, {ttl(), field()}},
        {lua::acquire_all, {k, key()}, {ttl(), field(), field()}},
        {lua::acquire_all_fenced, {k, key(), "token", "other token"}, {ttl(), field(), field()}},
        {lua::acquire_all_fenced, {k, key(), "token", "other token"}, {ttl(), field(), field(), ttl()}},
        {lua::simple_acquire_all, {k, key()}, {ttl(), field(), field()}},
        {lua::set_hold_count, {k}, {ttl(), field(), count()}},
        {lua::set_hold_count, {k}, {ttl(), field(), count(), ttl()}},
        {lua::renew, {k, key()}, {ttl(), ttl(), field(), field()}},
        {lua::renew, {k, key()}, {ttl(), ttl(), field(), field(), ttl(), ttl()}},
        {lua::release, {k}, {publish_word(), "channel", field()}},
        {lua::force_release, {k}, {publish_word(), "channel"}},
        {lua::simple_release, {k}, {publish_word(), "channel", field()}},
        {lua::simple_force_release, {k}, {publish_word(), "channel"}},
        {lua::holder, {k}, {}},
        {lua::permits_acquire, {"p", set, "d"}, {ttl(), "3", ttl(), publish_word(), "c", "1", "1", field()}},
        {lua::permits_acquire, {"p", set, "d"}, {ttl(), "3", ttl(), publish_word(), "c", "1", "2", "f0", "f1"}},
        {lua::permits_acquire, {k, set, "d"}, {ttl(), count(), "0", publish_word(), "c", "2", "1", "1", "f2", "f0"}},
        {lua::permits_renew, {set, k}, {"2", "1", "2", ttl(), ttl(), field(), "f1", "f2"}},
        {lua::permits_release, {"p", set, "d"}, {publish_word(), "c", field(), field()}},
        {lua::permits_set, {"p", set}, {count(), publish_word(), "c"}},
        {lua::permits_force, {k, set}, {count(), publish_word(), "c"}},
        {lua::latch_set, {k, "mark"}, {count(), ttl(), publish_word(), "c"}},
        {lua::latch_set, {"p", k}, {count(), ttl(), publish_word(), "c"}},
        {lua::count_down, {k, "mark"}, {count(), ttl(), publish_word(), "c"}},
        {lua::count_down, {"p", k}, {count(), ttl(), publish_word(), "c"}},
        {lua::campaign, {k, "token"}, {ttl(), field(), "v", publish_word(), "c"}},
        {lua::campaign, {k, "token"}, {ttl(), field(), "v", publish_word(), "c", ttl()}},
        {lua::proclaim, {k}, {field(), "w", publish_word(), "c"}},
        {lua::resign, {k}, {publish_word(), "c", "d", field()}},
        {lua::election_force, {k}, {publish_word(), "c", "d"}},
        {lua::observe, {k, "token"}, {}},
        {lua::read_acquire, {k, "deadline", "q", "rs", "t"}, {ttl(), reader(), publish_word(), "c", flag()}},
        {lua::write_acquire, {k, "q", "rs", "t"}, {ttl(), reader() + ":write", publish_word(), "{x}", count()}},
        {lua::read_release, {k, "deadline", "q", "rs", "t"}, {publish_word(), "c", reader(), ttl(), flag()}},
        {lua::write_release, {k, "q", "rs", "t"}, {publish_word(), "c", reader() + ":write", ttl(), count()}},
        {lua::shared_renew, {k, "deadline", k, k}, {ttl(), ttl(), reader(), reader() + ":write"}},
        {lua::shared_renew, {k, "deadline"}, {ttl(), reader(), ttl()}},
        {lua::downgrade, {k, "deadline", "rs", "t"}, {ttl(), reader(), publish_word(), "c", ttl()}},
        {lua::fair_acquire, {k, queue, deadlines}, {ttl(), client() + ":1", publish_word()}},
        {lua::fair_acquire, {k, queue, deadlines}, {ttl(), client() + ":2", publish_word(), place()}},
        {lua::fair_stand, {k, queue, deadlines}, {publish_word(), client(), "1000000001", "1000000000"}},
        {lua::fair_stand, {k, queue, deadlines}, {publish_word(), client()}},
        {lua::fair_release, {k, queue, deadlines}, {publish_word(), client() + ":1"}},
        {lua::fair_release, {k, queue, deadlines}, {publish_word(), client() + ":1", client() + ":2", ttl()}},
        {lua::fair_acquire, {"lock", k, key()}, {ttl(), client() + ":1", publish_word()}},
        {lua::fair_stand, {"lock", k, key()}, {publish_word(), client(), "1000000001", "1000000000"}},
        {lua::fair_release, {"lock", k, key()}, {publish_word(), client() + ":1", client() + ":2", ttl()}},
        {lua::fair_force, {k, queue, deadlines}, {publish_word()}},
        {lua::shared_force, {k}, {publish_word(), "c"}},
        {lua::shared_holder, {k}, {}},
    };
    const auto& chosen = pick(all);
    const bool digest = below(2);
    arguments a{digest ? "EVALSHA" : "eval", std::string(digest ? chosen.text.sha1 : chosen.text.body),
                std::to_string(chosen.keys.size())};
    a.insert(a.end(), chosen.keys.begin(), chosen.keys.end());
    a.insert(a.end(), chosen.args.begin(), chosen.args.end());
    if (below(50) == 0) a.pop_back();
    if (below(50) == 0) a[2] = pick(bad_numbers);
    return a;
  }

  arguments control() {
    const arguments all[] = {{"SCRIPT", "FLUSH"},
                             {"FLUSHALL"},
                             {"SCRIPT", "EXISTS", std::string(detail::lua::acquire.sha1), "no"},
                             {"SCRIPT", "LOAD", std::string(detail::lua::release.body)},
                             {"script", "load", "no lua"},
                             {"PING"},
                             {"PING", "x"},
                             {"EVAL", "return 1"}};
    return pick(all);
  }

  arguments plain() {
    const auto k = key();
    const arguments all[] = {
        {"EXISTS", k, key()},
        {"DEL", k},
        {"TYPE", k},
        {"GET", k},
        {"SET", k, word()},
        {"SET", k, word(), "PX", ttl()},
        {"SET", k, word(), "nx"},
        {"SET", k, word(), "keepttl"},
        {"SET", k, word(), "px", ttl(), "keepttl"},
        {"SET", k, word(), "keepttl", "px", ttl()},
        {"SET", k, word(), "NX", "PX", ttl()},
        {"SET", k, word(), "XX"},
        {"SET", k, word(), "what"},
        {"INCR", k},
        {"HGET", k, field()},
        {"HMGET", k, field(), field(), "none"},
        {"HSET", k, field(), word()},
        {"HSET", k, field(), word(), field(), word()},
        {"HSET", k, field(), word(), field()},
        {"hdel", k, field()},
        {"HDEL", k, field(), field()},
        {"HEXISTS", k, field()},
        {"HINCRBY", k, field(), count()},
        {"HINCRBY", k, field(), "-1"},
        {"HLEN", k},
        {"HGETALL", k},
        {"PEXPIRE", k, ttl()},
        {"PTTL", k},
        {"PERSIST", k},
        {"DEL", "p"},
        {"SET", "p", count()},
        {"GET", "p"},
        {"GET", "d"},
        {"ZCARD", "{p}:timeout"},
        {"INCRBY", k, count()},
        {"DECRBY", k, count()},
        {"INCRBY", k, "-9223372036854775808"},
        {"DECRBY", k, "-9223372036854775808"},
        {"ZADD", k, score(), field()},
        {"ZADD", k, score(), field(), score(), field()},
        {"ZADD", k, score(), field(), score()},
        {"ZADD", k, "NX", score(), field(), score(), field()},
        {"ZADD", k, "xx", score(), field(), score(), field()},
        {"ZADD", k, "GT", score(), field(), score(), field()},
        {"ZADD", k, "XX", "gt", score(), field(), score(), field()},
        {"ZADD", k, "NX", "GT", score(), field()},
        {"ZADD", k, "NX", "XX", score(), field()},
        {"ZADD", k, "NX"},
        {"ZREM", k, field()},
        {"ZREM", k, field(), field(), ""},
        {"ZSCORE", k, field()},
        {"ZCARD", k},
        {"ZCOUNT", k, bound(), bound()},
        {"ZPOPMIN", k},
        {"ZRANK", k, field()},
        {"ZRANGE", k, count(), count()},
        {"ZRANGE", k, "-2", "-1", "WITHSCORES"},
        {"ZRANGE", k, "0", count(), "what"},
        {"ZRANGEBYSCORE", k, bound(), bound()},
        {"ZRANGEBYSCORE", k, "-inf", bound(), "LIMIT", count(), count()},
        {"ZRANGEBYSCORE", k, bound(), "inf", "LIMIT", "0", "-1", "withscores"},
        {"ZRANGEBYSCORE", k, bound(), bound(), "LIMIT", "0"},
        {"ZINCRBY", k, score(), field()},
        {"RPUSH", k, word()},
        {"RPUSH", k, field(), field(), field()},
        {"RPUSH", queue, "f0"},
        {"RPUSH", queue, place(), place()},
        {"ZADD", deadlines, std::to_string(below(2)), "f0"},
        {"LINDEX", k, count()},
        {"LINDEX", k, "-1"},
        {"LLEN", k},
        {"LPOP", k},
        {"LRANGE", k, count(), count()},
        {"LRANGE", k, "-2", "-1"},
        {"LREM", k, count(), field()},
        {"LREM", k, "-1", field()},
        {"LRANGE", queue, "0", "-1"},
        {"ZCARD", deadlines},
        {"PUBLISH", "channel", word()},
        {"GET"},
        {"HGET", k},
        {"HMGET", k},
        {"ZRANK", k},
        {"ZPOPMIN"},
        {"PUBSUB"},
        {"PUBSUB", "numsub"},
        {"PUBSUB", "SHARDNUMSUB", k, field()},
        {"PUBSUB", "what", k},
        {"DEL"},
        {"PEXPIRE", k},
        {"ZADD", k},
        {"ZRANGE", k},
        {"RPUSH", k},
        {"LPOP"},
        {"LREM", k, "0"},
    };
    return pick(all);
  }

  test::seeded_random random_;
};

std::string text_of(const arguments& a) {
  std::string text;
  for (const auto& word : a) (text += word) += ' ';
  return text;
}

struct two_servers {
  test::real_redis real;
  test::raw_client there{real};
  std::vector<std::pair<sim::node::session_id, reply>> sent;
  sim::node node{wall_us, [this](sim::node::session_id to, const reply& r) { sent.emplace_back(to, r); },
                 [](sim::node::session_id) {}};
  sim::node::session_id here = node.connect();
  sim::refusal refuses = sim::refusal::none;

  void compare(const arguments& a) {
    // A failed compilation and what a script raises are worded by the server's Lua; an unknown command quotes its
    // arguments.
    const bool exact = a[0] != "EVAL" && a[0] != "eval" && a[0] != "EVALSHA" && a[0] != "script" && a[0] != "SCRIPT";
    const auto expected = there.call(a);
    const auto got = as_value(node.execute(here, a).at(0));
    if (same(expected, got, exact)) return make_equal(a, expected, got);
    std::ostringstream values;
    for (const auto& word : a) {
      const arguments read{"GET", word};
      values << "\nGET " << word.substr(0, 20) << ": Redis " << there.call(read) << ", node "
             << as_value(node.execute(here, read).at(0));
    }
    INFO(text_of(a) << "\nRedis: " << expected << "\n node: " << got << values.str());
    FAIL();
  }
  /// A counter that began at the time differs by the time between the two servers. Beyond 2^53 its last digits decide
  /// whether a script can hold it, so it is the same in both before a script reads it.
  void make_equal(const arguments& a, const value& expected, const value& got) {
    if (expected.type != value::kind::integer || expected.number == got.number) return;
    if (a[0] != "INCR" && a[0] != "INCRBY" && a[0] != "DECRBY") return;
    REQUIRE(node.execute(here, {"SET", a[1], std::to_string(expected.number), "KEEPTTL"}).at(0).text == "OK");
  }
  /// Both are in this state from now on.
  void enter(sim::refusal why) {
    using sim::refusal;
    there("CONFIG", "SET", "maxmemory", why == refusal::out_of_memory ? "1" : "0");
    there("CONFIG", "SET", "min-replicas-to-write", why == refusal::no_replicas ? "1" : "0");
    const bool replica = why == refusal::replica;  // of nobody: port 1 does not answer
    there("REPLICAOF", replica ? "127.0.0.1" : "NO", replica ? "1" : "ONE");
    node.refuse(why);
    refuses = why;
  }
  /// Both have it expire, and both have noticed; if they take a TTL at present.
  void let_expire(const std::string& key) {
    if (refuses != sim::refusal::none && refuses != sim::refusal::out_of_memory) return;
    const arguments soon{"PEXPIRE", key, "1"};
    there.call(soon);
    node.execute(here, soon);
    const auto limit = std::chrono::steady_clock::now() + 10s;
    while (there("EXISTS", key) == 1 || node.execute(here, {"EXISTS", key}).at(0).integer == 1)
      REQUIRE(std::chrono::steady_clock::now() < limit);
  }
};

/// A client that tracks keys, another that gets the pushes, and a third that changes keys: of each server.
struct two_tracking_servers : two_servers {
  explicit two_tracking_servers(bool no_loop) {
    const auto id = listener("CLIENT", "ID").integer();
    listener.send({"SUBSCRIBE", std::string(channel)});
    REQUIRE(listener.receive(10s));
    node.execute(listener_here, {"SUBSCRIBE", std::string(channel)});
    there.call(tracking(id, no_loop));
    REQUIRE(node.execute(here, tracking(listener_here, no_loop)).at(0).text == "OK");
  }
  static arguments tracking(long long id, bool no_loop) {
    arguments a{"CLIENT", "TRACKING", "ON", "REDIRECT", std::to_string(id), "OPTIN"};
    if (no_loop) a.emplace_back("NOLOOP");
    return a;
  }
  void by_foreigner(const arguments& a) {
    foreigner.call(a);
    node.execute(foreigner_here, a);
  }
  /// What was pushed since, on both. The answer to PING comes after it.
  void compare_pushes(const std::string& after) {
    std::vector<std::string> expected, got;
    listener.send({"PING"});
    for (;;) {
      const auto next = listener.receive(10s);
      REQUIRE(next);
      if (next->elements.at(0) == "pong") break;
      expected.push_back(next->to_string());
    }
    for (const auto& [to, r] : std::exchange(sent, {}))
      if (to == listener_here) got.push_back(as_value(r).to_string());
    // A renewal within the same millisecond changes nothing, and the two are asked one after the other.
    for (auto* all : {&expected, &got})
      std::erase_if(*all, [](const std::string& text) { return text.find("{p}:timeout") != text.npos; });
    std::sort(expected.begin(), expected.end());
    std::sort(got.begin(), got.end());
    INFO(after);
    REQUIRE(expected == got);
    pushed += got.size();
  }

  static constexpr std::string_view channel = "__redis__:invalidate";
  test::raw_client listener{real}, foreigner{real};
  sim::node::session_id listener_here = node.connect(), foreigner_here = node.connect();
  std::size_t pushed = 0;
};

}  // namespace

TEST_CASE("the simulated node answers a hundred thousand random commands as Redis does") {
  if (!test::real_redis::available()) test::skip("no Redis server");
  constexpr int commands = 100'000, commands_between_expiries = 50, commands_between_refusals = 1'000,
                commands_refused = 200;
  constexpr std::array refusals{sim::refusal::out_of_memory, sim::refusal::no_replicas, sim::refusal::replica};
  const char* chosen = std::getenv("HOLDFAST_SIM_SEED");
  const auto seed = chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  two_servers both;
  command_maker make(seed);
  for (int i = 0; i < commands; ++i) {
    INFO("HOLDFAST_SIM_SEED=" << seed << ", command " << i);
    const auto round = static_cast<std::size_t>(i / commands_between_refusals);
    if (i % commands_between_refusals == 0) both.enter(refusals[round % refusals.size()]);
    if (i % commands_between_refusals == commands_refused) both.enter(sim::refusal::none);
    both.compare(make.next());
    if (i % commands_between_expiries == 0) both.let_expire(make.key());
  }
}

TEST_CASE("the simulated node subscribes and publishes as Redis does") {
  if (!test::real_redis::available()) test::skip("no Redis server");
  two_servers both;
  for (const auto& a : std::vector<arguments>{{"SUBSCRIBE"},
                                              {"UNSUBSCRIBE"},
                                              {"UNSUBSCRIBE", "a"},
                                              {"SUBSCRIBE", "a"},
                                              {"SUBSCRIBE", "a"},
                                              {"PING"},
                                              {"PING", "x"},
                                              {"SUBSCRIBE", "b"},
                                              {"UNSUBSCRIBE", "a"},
                                              {"UNSUBSCRIBE"},
                                              {"PING"},
                                              {"SSUBSCRIBE"},
                                              {"SUNSUBSCRIBE"},
                                              {"SSUBSCRIBE", "a"},
                                              {"SUBSCRIBE", "a"},
                                              {"SSUBSCRIBE", "b"},
                                              {"SUNSUBSCRIBE", "c"},
                                              {"UNSUBSCRIBE"},
                                              {"PING"},
                                              {"SUNSUBSCRIBE", "b"},
                                              {"SUNSUBSCRIBE"},
                                              {"PING"}})
    both.compare(a);
}

TEST_CASE("the simulated node counts the subscribers of a channel as Redis does, by the way they listen") {
  if (!test::real_redis::available()) test::skip("no Redis server");
  two_servers both;
  test::raw_client listener(both.real), shard_listener(both.real);
  const auto here = both.node.connect(), shard_here = both.node.connect();
  const auto count = [&] {
    for (const auto* how : {"NUMSUB", "shardnumsub"}) both.compare({"PUBSUB", how, "a", "b", "a", "nobody's"});
  };
  const auto both_do = [&](test::raw_client& there, sim::node::session_id session, const arguments& a) {
    there.call(a);
    both.node.execute(session, a);
    count();
  };
  count();
  both_do(listener, here, {"SUBSCRIBE", "a"});
  both_do(shard_listener, shard_here, {"SSUBSCRIBE", "a"});
  both_do(shard_listener, shard_here, {"SUBSCRIBE", "a"});
  both_do(listener, here, {"SUBSCRIBE", "b"});
  both_do(shard_listener, shard_here, {"SUNSUBSCRIBE", "a"});
  both_do(listener, here, {"UNSUBSCRIBE", "a"});
}

TEST_CASE("the simulated node refuses to track what Redis refuses") {
  if (!test::real_redis::available()) test::skip("no Redis server");
  test::need_redis_7("the words of these refusals");
  two_servers both;
  const auto id = std::to_string(both.there("CLIENT", "ID").integer());
  REQUIRE(both.node.execute(both.here, {"CLIENT", "ID"}).at(0).integer == both.here);
  for (const auto& a : std::vector<arguments>{{"CLIENT", "CACHING", "YES"},
                                              {"CLIENT", "TRACKING"},
                                              {"CLIENT", "TRACKING", "what"},
                                              {"CLIENT", "TRACKING", "ON", "what"},
                                              {"CLIENT", "TRACKING", "ON", "REDIRECT"},
                                              {"CLIENT", "TRACKING", "ON", "REDIRECT", "x"},
                                              {"CLIENT", "TRACKING", "ON", "REDIRECT", "999999"},
                                              {"client", "tracking", "on"},
                                              {"CLIENT", "CACHING"},
                                              {"CLIENT", "TRACKING", "OFF"},
                                              {"CLIENT", "CACHING", "YES"},
                                              {"CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP"},
                                              {"CLIENT", "CACHING", "NO"},
                                              {"CLIENT", "CACHING", "what"},
                                              {"CLIENT", "CACHING", "YES", "x"},
                                              {"CLIENT", "CACHING", "yes"}})
    both.compare(a);
}

TEST_CASE("the simulated node pushes the changes of tracked keys as Redis does") {
  if (!test::real_redis::available()) test::skip("no Redis server");
  constexpr int commands = 20'000, commands_between_expiries = 50;
  const bool no_loop = GENERATE(true, false);
  const char* chosen = std::getenv("HOLDFAST_SIM_SEED");
  const auto seed = chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  two_tracking_servers both(no_loop);
  if (both.there("INFO", "server").to_string().find("redis_version:7.0.") == std::string::npos)
    test::skip("later servers track other keys of a script");
  command_maker make(seed);
  for (int i = 0; i < commands; ++i) {
    INFO("HOLDFAST_SIM_SEED=" << seed << ", command " << i);
    const auto a = make.next();
    const auto dice = make.below(4);
    if (dice < 2) both.compare({"CLIENT", "CACHING", "YES"});
    if (dice < 2 || i % 8 == 0)
      both.compare(a);
    else
      both.by_foreigner(a);
    both.compare_pushes(text_of(a));
    if (i % commands_between_expiries == 0) {
      both.let_expire(make.key());
      both.compare_pushes("expiry");
    }
  }
  CHECK(both.pushed > commands / 100);
}
