// SPDX-License-Identifier: BSL-1.0
// The scripts of a semaphore in each state of its keys, and in a long random walk: the counter and the permits that are
// out make the total after each of them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "sim/script_rig.hpp"
#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"
#include "support/seeded_random.hpp"

namespace {

using namespace holdfast;
using namespace test::scripts;
using test::value;
namespace lua = detail::lua;

/// Numbers lie so far apart that a slow machine mixes none up.
constexpr long long ttl = 300'000, door_ttl = 1'000'000, tolerance = 90'000, far_ms = 100'000'000'000;
const std::string ms = std::to_string(ttl), door_ms = std::to_string(door_ttl);
/// Ends by the server's clock.
const std::string ended = "1", far = "9000000000000";

const std::string counter = "m", permits = "{m}:timeout", door = "holdfast_turn:{m}";
const arguments keys{counter, permits, door}, without_door{counter, permits};
const std::string my1 = "mine::0000000001", my2 = "mine::0000000002", my3 = "mine::0000000003",
                  my4 = "mine::0000000004", other1 = "other:0000000001", other2 = "other:0000000002",
                  other3 = "other:0000000003";

const std::vector<state> states{
    {"never used", {}},
    {"one is out", {{"SET", counter, "2"}, {"ZADD", permits, far, other1}}},
    {"mine", {{"SET", counter, "2"}, {"ZADD", permits, far, my1}}},
    {"all are out", {{"SET", counter, "0"}, {"ZADD", permits, far, other1, far, other2, far, other3}}},
    {"one has ended", {{"SET", counter, "0"}, {"ZADD", permits, ended, other1, far, other2, far, other3}}},
    {"the counter is lost", {{"ZADD", permits, far, other1, far, other2}}},
    {"another's door", {{"SET", counter, "3"}, {"SET", door, other1, "PX", door_ms}}},
    {"my door", {{"SET", counter, "3"}, {"SET", door, my1, "PX", door_ms}}},
    {"somebody's string", {{"SET", counter, "text"}}},
    {"not a string", {{"HSET", counter, "f", "v"}}},
    {"not a sorted set", {{"SET", counter, "3"}, {"SET", permits, "text"}}},
};
constexpr const char *wrong = "WRONGTYPE", *no_lock = "HOLDFAST no lock";

arguments acquire(const std::string& ms_of_door, const arguments& waiters) {
  arguments all{ms, "3", ms_of_door, "publish", "channel"};
  all.insert(all.end(), waiters.begin(), waiters.end());
  return eval(lua::permits_acquire, keys, all);
}
arguments release(const std::string& word, const arguments& ids) {
  arguments all{word, "channel"};
  all.insert(all.end(), ids.begin(), ids.end());
  return eval(lua::permits_release, keys, all);
}

const std::vector<bool> never(11, false),
    always(11, true), of_foreign_keys{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}, of_foreign_counters{0, 0, 0, 0, 0, 0,
                                                                                            0, 0, 1, 1, 0};

/// Among the answers "far", "long" and "ttl" stand for such numbers.
const std::vector<row> rows{
    {"acquire one",
     acquire("0", {"1", "1", my1}),
     {"[1, 2]", "[1, 1]", "[1, 2]", "[0, far]", "[1, 0]", "[1, 0]", "[-1, long]", "[1, 2]", no_lock, wrong, wrong},
     {0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1},
     {1, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0}},
    {"acquire two, and close the door",
     acquire("600", {"1", "2", my1, my2}),
     {"[1, 1]", "[1, 0]", "[1, 1]", "[0, far]", "[0, far]", "[0, far]", "[-1, long]", "[1, 1]", no_lock, wrong, wrong},
     {0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1},
     {1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0}},
    {"acquire for three waiters",
     acquire("0", {"3", "1", "2", "1", my1, my2, my3, my4}),
     {"[2, ttl]", "[1, ttl]", "[2, ttl]", "[0, far]", "[1, ttl]", "[1, ttl]", "[-1, long]", "[2, ttl]", no_lock, wrong,
      wrong},
     {0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1},
     {1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 0}},
    {"renew",
     eval(lua::permits_renew, {permits}, {"1", "1", ms, my1}),
     {"[0]", "[0]", "[1]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]"},
     never,
     never},
    {"renew two claims",
     eval(lua::permits_renew, {permits, "n"}, {"2", "1", "2", ms, ms, my1, my2, my3}),
     {"[0, 0]", "[0, 0]", "[1, 0]", "[0, 0]", "[0, 0]", "[0, 0]", "[0, 0]", "[0, 0]", "[0, 0]", "[0, 0]", "[0, 0]"},
     never,
     never},
    {"release",
     release("publish", {my1}),
     {"(nil)", "(nil)", "[1, 0]", "(nil)", "(nil)", "(nil)", "(nil)", "(nil)", no_lock, wrong, wrong},
     of_foreign_counters,
     never},
    {"release of two, which opens their door",
     release("publish", {my1, my2}),
     {"(nil)", "(nil)", "(nil)", "(nil)", "(nil)", "(nil)", "(nil)", "(nil)", no_lock, wrong, wrong},
     of_foreign_counters,
     never},
    {"release, told by spublish",
     release("spublish", {my1}),
     {"(nil)", "(nil)", "[1, 0]", "(nil)", "(nil)", "(nil)", "(nil)", "(nil)", no_lock, wrong, wrong},
     of_foreign_counters,
     never},
    {"release, told by auto",
     release("auto", {my1}),
     {"(nil)", "(nil)", "[1, 0]", "(nil)", "(nil)", "(nil)", "(nil)", "(nil)", no_lock, wrong, wrong},
     of_foreign_counters,
     never},
    {"release, told by both",
     release("both", {my1}),
     {"(nil)", "(nil)", "[1, 0]", "(nil)", "(nil)", "(nil)", "(nil)", "(nil)", no_lock, wrong, wrong},
     of_foreign_counters,
     never},
    {"set to more",
     eval(lua::permits_set, without_door, {"5", "publish", "channel"}),
     {"[5, 0]", "[4, 0]", "[4, 0]", "[2, 0]", "[2, 0]", "[3, 0]", "[5, 0]", "[5, 0]", no_lock, wrong, wrong},
     of_foreign_keys,
     {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0}},
    {"set to fewer",
     eval(lua::permits_set, without_door, {"1", "both", "channel"}),
     {"[1, 0]", "[0, 0]", "[0, 0]", "[-2, 0]", "[-2, 0]", "[-1, 0]", "[1, 0]", "[1, 0]", no_lock, wrong, wrong},
     of_foreign_keys,
     {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0}},
    {"force",
     eval(lua::permits_force, without_door, {"3", "publish", "channel"}),
     {"[0, 0]", "[1, 0]", "[1, 0]", "[3, 0]", "[2, 0]", "[2, 0]", "[0, 0]", "[0, 0]", no_lock, wrong, wrong},
     of_foreign_keys,
     never},
    {"force, told by both",
     eval(lua::permits_force, without_door, {"3", "both", "channel"}),
     {"[0, 0]", "[1, 0]", "[1, 0]", "[3, 0]", "[2, 0]", "[2, 0]", "[0, 0]", "[0, 0]", no_lock, wrong, wrong},
     of_foreign_keys,
     never},
    {"query",
     eval(lua::permits_query, without_door, {"3", my1}),
     {"[3, 0, -1, , 0]", "[2, 1, far, other:0000000001, 0]", "[2, 1, far, mine::0000000001, 1]",
      "[0, 3, far, other:0000000001, 0]", "[1, 2, far, other:0000000002, 0]", "[1, 2, far, other:0000000001, 0]",
      "[3, 0, -1, , 0]", "[3, 0, -1, , 0]", no_lock, wrong, wrong},
     always,
     never},
};

std::string text_of(const value& v) {
  if (v.type == value::kind::integer && v.number > far_ms) return "far";
  if (v.type == value::kind::integer && v.number > door_ttl - tolerance && v.number <= door_ttl) return "long";
  if (v.type == value::kind::integer && v.number > ttl - tolerance && v.number <= ttl) return "ttl";
  if (v.type != value::kind::array) return v.to_string();
  std::string text;
  for (const auto& element : v.elements) text += (text.empty() ? "" : ", ") + text_of(element);
  return "[" + text + "]";
}

bool fits(const value& v, std::string_view expected) {
  return v.is_error() ? v.text.starts_with(expected) : text_of(v) == expected;
}

const std::vector<table> permit_table{{states, rows, fits}};

/// The numbers of one semaphore, as a server has them.
struct semaphore {
  const asked& ask;

  long long number(const arguments& command) const { return ask(command).integer(); }
  bool has_counter() const { return number({"EXISTS", counter}) == 1; }
  long long left() const { return number({"GET", counter}); }
  long long out() const { return number({"ZCARD", permits}); }
  long long sum() const { return left() + out(); }
  bool is_out(const std::string& id) const { return !ask({"ZSCORE", permits, id}).is_nil(); }
  long long ends(const std::string& id) const { return number({"ZSCORE", permits, id}); }
  long long now() const {
    const auto time = ask({"TIME"}).strings();
    return std::stoll(time.at(0)) * 1000 + std::stoll(time.at(1)) / 1000;
  }
};

const state& state_named(std::string_view name) { return named(states, name); }

/// All that a foreign value could lose.
std::string contents(const asked& ask) {
  return ask({"TYPE", counter}).to_string() + ask({"GET", counter}).to_string() +
         ask({"HGETALL", counter}).to_string() + ask({"TYPE", permits}).to_string() +
         ask({"GET", permits}).to_string() + ask({"EXISTS", door}).to_string();
}

void check_foreign_values(const servers& all) {
  for (const auto* found : {"somebody's string", "not a string", "not a sorted set"})
    for (const auto& r : rows) {
      INFO(r.name << ", " << found);
      make(all, state_named(found));
      const auto before = contents(all.primary);
      all.primary(r.call);
      CHECK(contents(all.primary) == before);
    }
  // Lua reads each of these as a number, and INCRBY refuses it. A script must not have given anything back by then.
  const semaphore of{all.primary};
  for (const auto* number : {"007", "10\n", "1e3", "5.0"})
    for (const auto& r : rows) {
      INFO(r.name << ", " << number);
      make(all, state_named("mine"));
      all.primary({"SET", counter, number});
      const auto before = contents(all.primary);
      all.primary(r.call);
      CHECK(contents(all.primary) == before);
      CHECK(of.out() == 1);
    }
}

void check_second_copies(const servers& all) {
  const semaphore of{all.primary};
  for (const auto& r : rows)
    for (std::size_t s = 0; s < 8; ++s) {
      INFO(r.name << ", " << states[s].name);
      make(all, states[s]);
      const auto first = text_of(all.primary(r.call));
      const auto sum = of.has_counter() ? of.sum() : -1;
      const auto out = of.out();
      const auto second = text_of(all.primary(r.call));
      if (of.has_counter()) CHECK(of.sum() == sum);
      CHECK(of.out() == out);
      const std::string_view name = r.name;
      if (name.starts_with("release")) CHECK(second == "(nil)");
      if (name.starts_with("force")) CHECK(second == "[0, 0]");
      if (name.starts_with("acquire") || name.starts_with("renew") || name.starts_with("set")) CHECK(second == first);
    }
}

void check_wire(const servers& all) {
  const semaphore of{all.primary};
  make(all, state_named("never used"));
  const auto before = of.now();
  CHECK(text_of(all.primary(named(rows, "acquire two, and close the door").call)) == "[1, 1]");
  const auto after = of.now();
  CHECK(all.primary({"TYPE", counter}) == "string");
  CHECK(all.primary({"GET", counter}) == "1");
  CHECK(of.number({"PTTL", counter}) == -1);
  CHECK(all.primary({"TYPE", permits}) == "zset");
  CHECK(all.primary({"ZRANGE", permits, "0", "-1"}).strings() == std::vector{my1, my2});
  for (const auto& id : {my1, my2}) {
    CHECK(of.ends(id) >= before + ttl);
    CHECK(of.ends(id) <= after + ttl);
  }
  CHECK(of.number({"EXISTS", door}) == 0);
}

void check_ends(const servers& all) {
  const semaphore of{all.primary};
  const auto soon = [&] { return std::to_string(of.now() + ttl / 3); };
  for (const auto* script : {"acquire one", "renew"}) {
    CAPTURE(script);
    make(all, state_named("mine"));
    all.primary(named(rows, script).call);
    CHECK(std::to_string(of.ends(my1)) == far);
    all.primary({"ZADD", permits, soon(), my1});
    CHECK(text_of(all.primary(named(rows, script).call)).starts_with("[1"));
    CHECK(of.ends(my1) > of.now() + ttl / 2);
  }
  // A hold with a missing permit is not prolonged.
  make(all, state_named("mine"));
  const auto end = soon();
  all.primary({"ZADD", permits, end, my1});
  CHECK(text_of(all.primary(eval(lua::permits_renew, {permits}, {"1", "2", ms, my1, my2}))) == "[0]");
  CHECK(std::to_string(of.ends(my1)) == end);
  all.primary({"ZADD", permits, end, my1, ended, my2});
  CHECK(text_of(all.primary(eval(lua::permits_renew, {permits}, {"1", "2", ms, my1, my2}))) == "[0]");
  CHECK(std::to_string(of.ends(my1)) == end);
  CHECK(std::to_string(of.ends(my2)) == ended);
}

void check_sweep(const servers& all) {
  const semaphore of{all.primary};
  make(all, {"150 have ended", {{"SET", counter, "0"}}});
  arguments add{"ZADD", permits};
  for (int i = 0; i < 150; ++i) {
    add.push_back(ended);
    add.push_back("gone:" + std::to_string(i));
  }
  all.primary(add);
  const auto one = [](const std::string& id) {
    return eval(lua::permits_acquire, keys, {ms, "150", "0", "publish", "channel", "1", "1", id});
  };
  CHECK(text_of(all.primary(one(my1))) == "[1, 99]");
  CHECK(of.out() == 51);
  CHECK(of.sum() == 150);
  // Where enough are left, nobody is taken back.
  CHECK(text_of(all.primary(one(my2))) == "[1, 98]");
  CHECK(of.out() == 52);
  all.primary(eval(lua::permits_set, without_door, {"52", "publish", "channel"}));
  CHECK(text_of(all.primary(one(my3))) == "[1, 49]");
  CHECK(of.out() == 3);
  CHECK(of.sum() == 52);
}

void check_door(const servers& all) {
  const semaphore of{all.primary};
  const auto wants_one = [&](const std::string& id) { return text_of(all.primary(acquire("600", {"1", "1", id}))); };
  const auto two = acquire("600", {"1", "2", my1, my2}), two_for_long = acquire(door_ms, {"1", "2", my1, my2});
  const auto comes_back = [&](const std::string& id) { all.primary(release("publish", {id})); };
  SECTION("is closed for 600 ms by a waiter that wants several and finds too few") {
    make(all, state_named("all are out"));
    all.primary(two);
    CHECK(all.primary({"GET", door}) == my1);
    const auto closed = of.number({"PTTL", door});
    CHECK(closed > 0);
    CHECK(closed <= 600);
  }
  SECTION("is not closed by one that wants one, or sends no time") {
    make(all, state_named("all are out"));
    wants_one(my1);
    all.primary(acquire("0", {"1", "2", my1, my2}));
    CHECK(of.number({"EXISTS", door}) == 0);
  }
  SECTION("is not closed by one that wants more than there are") {
    make(all, state_named("all are out"));
    all.primary(acquire("600", {"1", "4", my1, my2, my3, my4}));
    CHECK(of.number({"EXISTS", door}) == 0);
  }
  SECTION("keeps the others out until its waiter has its permits") {
    make(all, state_named("all are out"));
    all.primary(two_for_long);
    comes_back(other1);
    CHECK(wants_one(other1) == "[-1, long]");
    CHECK(text_of(all.primary(acquire("600", {"1", "2", my3, my4}))) == "[-1, long]");
    CHECK(all.primary({"GET", door}) == my1);
    CHECK(text_of(all.primary(two_for_long)) == "[0, far]");
    comes_back(other2);
    CHECK(text_of(all.primary(two_for_long)) == "[1, 0]");
    CHECK(of.number({"EXISTS", door}) == 0);
  }
  SECTION("does not hide permits that were given before it closed") {
    make(all, state_named("another's door"));
    all.primary({"SET", counter, "2"});
    all.primary({"ZADD", permits, far, my1});
    CHECK(wants_one(my1) == "[1, 2]");
    CHECK(of.sum() == 3);
  }
  SECTION("opens by a release of its waiter's ids, and by no other") {
    make(all, state_named("my door"));
    all.primary(release("publish", {other1, my1}));
    all.primary(release("publish", {my2, my1}));
    CHECK(of.number({"EXISTS", door}) == 1);
    all.primary(release("publish", {my1, my2}));
    CHECK(of.number({"EXISTS", door}) == 0);
  }
  SECTION("tells those it keeps out of the next end of a permit, if that comes before its own") {
    make(all, state_named("another's door"));
    all.primary({"SET", counter, "0"});
    const auto next = std::to_string(of.now() + ttl);
    all.primary({"ZADD", permits, next, other2, far, other3});
    CHECK(wants_one(my1) == "[-1, ttl]");
    all.primary({"ZADD", permits, far, other2});
    CHECK(wants_one(my1) == "[-1, long]");
  }
  SECTION("tells nobody of permits that have ended, which its opening publishes") {
    make(all, state_named("another's door"));
    all.primary({"SET", counter, "1"});
    all.primary({"ZADD", permits, ended, other2});
    CHECK(wants_one(my1) == "[-1, long]");
    all.primary({"ZADD", permits, std::to_string(of.now() + ttl), other3});
    CHECK(wants_one(my1) == "[-1, ttl]");
    CHECK(of.is_out(other2));
  }
  SECTION("without a TTL keeps nobody out") {
    make(all, state_named("another's door"));
    all.primary({"PERSIST", door});
    CHECK(wants_one(my1) == "[1, 2]");
  }
}

/// Random scripts, good copies and second ones, while counters vanish and permits end.
class random_walk {
 public:
  random_walk(const servers& all, std::uint64_t seed) : ask_(all.primary), of_{all.primary}, random_(seed) {
    make(all, state_named("never used"));
  }

  void step() {
    switch (below(12)) {
      case 0: return lose_counter();
      case 1: return end_some();
      case 2: return set_total();
      case 3: return force();
      case 4: return open_door();
      case 5: return renew();
      case 6: return query();
      case 7:
      case 8: return release();
      default: return acquire();
    }
  }
  void check_sum() const {
    if (of_.has_counter()) REQUIRE(of_.sum() == total_);
  }
  std::size_t grants() const noexcept { return grants_; }

 private:
  std::size_t below(std::size_t n) { return random_.next() % n; }
  arguments ids(std::size_t n) {
    arguments all;
    for (std::size_t i = 0; i < n; ++i) {
      auto number = std::to_string(++last_);
      all.push_back(std::string(16 - number.size(), '0') + number);
    }
    return all;
  }
  value script(const lua::script_text& text, const arguments& at, const arguments& args) {
    const auto command = eval(text, at, args);
    auto said = ask_(command);
    INFO(text.body.substr(0, text.body.find('(')) << ": " << said);
    REQUIRE_FALSE(said.is_error());
    check_sum();
    return said;
  }
  long long live() const { return of_.number({"ZCOUNT", permits, "(" + std::to_string(of_.now()), "+inf"}); }

  void lose_counter() { ask_({"DEL", counter}); }
  void open_door() { ask_({"DEL", door}); }
  void end_some() {
    for (const auto& claim : claims_)
      for (const auto& id : claim)
        if (below(4) == 0) ask_({"ZADD", permits, "XX", ended, id});
  }

  void acquire() {
    std::vector<arguments> waiters;
    arguments args{ms, std::to_string(total_), below(2) ? "0" : door_ms, "publish", "channel"};
    const auto count = 1 + below(3);
    args.push_back(std::to_string(count));
    for (std::size_t i = 0; i < count; ++i) {
      const bool older = i == 0 && !claims_.empty() && below(5) == 0;  // a copy of an older command
      waiters.push_back(older ? claims_[below(claims_.size())] : ids(1 + below(3)));
    }
    for (const auto& waiter : waiters) args.push_back(std::to_string(waiter.size()));
    for (const auto& waiter : waiters) args.insert(args.end(), waiter.begin(), waiter.end());
    const auto had = [&](const arguments& each) {
      return std::all_of(each.begin(), each.end(), [&](const auto& id) { return of_.is_out(id); });
    };
    std::vector<bool> again;
    for (const auto& waiter : waiters) again.push_back(had(waiter));
    const auto said = script(lua::permits_acquire, keys, args);
    const auto granted = static_cast<std::size_t>(std::max(0LL, said.elements.at(0).number));
    for (std::size_t i = 0; i < granted; ++i) {
      if (!again[i]) REQUIRE(said.elements.at(1).number >= 0);
      for (const auto& id : waiters[i]) REQUIRE(of_.is_out(id));
      claims_.push_back(waiters[i]);
      ++grants_;
    }
    const auto copy = script(lua::permits_acquire, keys, args);
    REQUIRE(copy.elements.at(0).number == said.elements.at(0).number);
  }

  void release() {
    if (claims_.empty()) return;
    const auto at = claims_.begin() + static_cast<std::ptrdiff_t>(below(claims_.size()));
    const auto gone = std::exchange(*at, claims_.back());
    claims_.pop_back();
    arguments args{"publish", "channel"};
    args.insert(args.end(), gone.begin(), gone.end());
    const auto held = std::count_if(gone.begin(), gone.end(), [this](const auto& id) { return of_.is_out(id); });
    const auto out = of_.out();
    const auto said = script(lua::permits_release, keys, args);
    REQUIRE(of_.out() == out - held);
    REQUIRE(said.is_nil() == (static_cast<std::size_t>(held) < gone.size()));
    REQUIRE(script(lua::permits_release, keys, args).is_nil());
  }

  void renew() {
    if (claims_.empty()) return;
    const auto& chosen = claims_[below(claims_.size())];
    arguments args{"1", std::to_string(chosen.size()), ms};
    args.insert(args.end(), chosen.begin(), chosen.end());
    const auto now = of_.now();
    const bool whole =
        std::all_of(chosen.begin(), chosen.end(), [&](const auto& id) { return of_.is_out(id) && of_.ends(id) > now; });
    REQUIRE(script(lua::permits_renew, {permits}, args).elements.at(0).number == (whole ? 1 : 0));
  }

  void set_total() {
    if (below(4) != 0) return;
    total_ = 1 + static_cast<long long>(below(8));
    const auto said = script(lua::permits_set, without_door, {std::to_string(total_), "publish", "channel"});
    REQUIRE(said.elements.at(0).number == total_ - of_.out());
  }

  void force() {
    if (below(8) != 0) return;
    const auto before = live();
    const auto said = script(lua::permits_force, without_door, {std::to_string(total_), "publish", "channel"});
    REQUIRE(said.elements.at(0).number == before);
    REQUIRE(of_.left() == total_);
  }

  void query() {
    const auto said = script(lua::permits_query, without_door, {std::to_string(total_), ""});
    REQUIRE(said.elements.at(0).number == total_ - live());
    REQUIRE(said.elements.at(1).number == live());
  }

  const asked& ask_;
  const semaphore of_;
  test::seeded_random random_;
  std::vector<arguments> claims_;  // the ids of each

  long long total_ = 5, last_ = 0;
  std::size_t grants_ = 0;
};

void walk(const servers& all, std::uint64_t seed, int steps) {
  random_walk walker(all, seed);
  for (int i = 0; i < steps; ++i) {
    INFO("seed " << seed << ", step " << i);
    walker.step();
    walker.check_sum();
  }
  CHECK(walker.grants() > static_cast<std::size_t>(steps) / 20);
}

}  // namespace

TEST_CASE("each script of a semaphore answers in each state of its keys as its recipe says") {
  SECTION("simulated") { check_primary(simulated().all, permit_table); }
  SECTION("real") {
    need_redis();
    check_primary(real_pair().all, permit_table);
  }
}

TEST_CASE("a replica says of no permit that it is yours or not yours or acquired") {
  SECTION("simulated") { check_replica(simulated().all, permit_table); }
  SECTION("real") {
    need_redis();
    check_replica(real_pair().all, permit_table);
  }
}

TEST_CASE("a primary that may not write confirms no permit and denies none") {
  SECTION("simulated") { check_without_writes(simulated().all, permit_table); }
  SECTION("real") {
    need_redis();
    check_without_writes(real_pair().all, permit_table);
  }
}

TEST_CASE("a full server refuses new permits and a new total alone") {
  SECTION("simulated") { check_full(simulated().all, permit_table); }
  SECTION("real") {
    need_redis();
    check_full(real_pair().all, permit_table);
  }
}

TEST_CASE("permits are stored as Redisson stores them") {
  SECTION("simulated") { check_wire(simulated().all); }
  SECTION("real") {
    need_redis();
    check_wire(real_pair().all);
  }
}

TEST_CASE("a second copy of a semaphore's script changes nothing more") {
  SECTION("simulated") { check_second_copies(simulated().all); }
  SECTION("real") {
    need_redis();
    check_second_copies(real_pair().all);
  }
}

TEST_CASE("scripts of a semaphore leave the values of others alone") {
  SECTION("simulated") { check_foreign_values(simulated().all); }
  SECTION("real") {
    need_redis();
    check_foreign_values(real_pair().all);
  }
}

TEST_CASE("the end of a permit is put off, never brought forward, and only where all of its claim are held") {
  SECTION("simulated") { check_ends(simulated().all); }
  SECTION("real") {
    need_redis();
    check_ends(real_pair().all);
  }
}

TEST_CASE("an acquire that finds too few takes back up to a hundred permits that have ended") {
  SECTION("simulated") { check_sweep(simulated().all); }
  SECTION("real") {
    need_redis();
    check_sweep(real_pair().all);
  }
}

TEST_CASE("the door of a semaphore") {
  const simulated s;
  check_door(s.all);
}

TEST_CASE("the door of a semaphore on a server") {
  need_redis();
  const real_pair pair;
  check_door(pair.all);
}

TEST_CASE("what is left and what is out make the total after each script of a random walk") {
  SECTION("simulated") {
    for (const auto seed : {1U, 2U, 3U}) walk(simulated().all, seed, 5'000);
  }
  SECTION("real") {
    need_redis();
    walk(real_pair().all, 4, 3'000);
  }
}

TEST_CASE("a channel is told what is left, and of nothing that nobody waits for") {
  simulated s;
  std::vector<std::string> told;
  s.node.on_publish = [&](std::string_view channel, std::string_view payload) {
    told.push_back(std::string(channel) + " " + std::string(payload));
  };
  const auto after = [&](const char* found, const arguments& command) {
    make(s.all, state_named(found));
    told.clear();
    s.all.primary(command);
    return std::exchange(told, {});
  };
  using lines = std::vector<std::string>;
  const auto acquire_one = named(rows, "acquire one").call,
             acquire_two = named(rows, "acquire two, and close the door").call;
  CHECK(after("never used", acquire_one) == lines{"channel 2"});
  CHECK(after("one is out", acquire_one).empty());
  CHECK(after("one has ended", acquire_one).empty());
  CHECK(after("one has ended", acquire_two) == lines{"channel 1"});
  CHECK(after("the counter is lost", acquire_two) == lines{"channel 1"});
  CHECK(after("my door", acquire_one) == lines{"channel 2"});
  CHECK(after("another's door", acquire_one).empty());
  CHECK(after("mine", release("publish", {my1})) == lines{"channel 3"});
  CHECK(after("mine", release("both", {my1})) == lines{"channel 03", "channel 3"});
  CHECK(after("one is out", release("publish", {my1})).empty());
  CHECK(after("my door", release("publish", {my1})).empty());
  CHECK(after("my door", release("publish", {my1, my2})) == lines{"channel 3"});
  CHECK(after("the counter is lost", release("publish", {other1})) == lines{"channel 1"});
  CHECK(after("one is out", named(rows, "set to more").call) == lines{"channel 4"});
  CHECK(after("all are out", named(rows, "set to fewer").call).empty());
  CHECK(after("all are out", named(rows, "force").call) == lines{"channel 3"});
  CHECK(after("my door", named(rows, "force").call).empty());
  // A permit that has ended is free, though the counter does not have it yet.
  for (const auto& [found, published] : {std::pair("one has ended", lines{"channel 1"}), {"all are out", {}}}) {
    make(s.all, state_named(found));
    s.all.primary({"SET", door, my1, "PX", door_ms});
    told.clear();
    s.all.primary(release("publish", {my1, my2}));
    CHECK(told == published);
  }
  // Fewer are left than none: those that come back are nobody's.
  make(s.all, state_named("all are out"));
  s.all.primary(named(rows, "set to fewer").call);
  told.clear();
  CHECK(text_of(s.all.primary(release("publish", {other1, other2}))) == "[2, 0]");
  CHECK(told.empty());
  CHECK(s.all.primary({"GET", counter}) == "0");
}

TEST_CASE("numbers of a semaphore that are out of range are refused before anything is written") {
  const simulated s;
  const auto refused = [&](const lua::script_text& script, const arguments& at, const arguments& args) {
    make(s.all, state_named("mine"));
    const auto said = s.all.primary(eval(script, at, args));
    INFO(said);
    CHECK(said.text.starts_with("HOLDFAST invalid"));
    CHECK(s.all.primary({"GET", counter}) == "2");
    CHECK(s.all.primary({"ZSCORE", permits, my1}) == far);
  };
  for (const auto* bad : {"", "0", "-1", "1.5", "x", "nan", "inf", "86400001"}) {
    CAPTURE(bad);
    refused(lua::permits_acquire, keys, {bad, "3", "0", "publish", "c", "1", "1", my2});
    refused(lua::permits_renew, {permits}, {"1", "1", bad, my1});
  }
  for (const auto* bad : {"", "0", "-1", "1.5", "x", "nan", "inf", "2147483648"}) {
    CAPTURE(bad);
    refused(lua::permits_acquire, keys, {ms, bad, "0", "publish", "c", "1", "1", my2});
    refused(lua::permits_set, without_door, {bad, "publish", "c"});
    refused(lua::permits_force, without_door, {bad, "publish", "c"});
    refused(lua::permits_query, without_door, {bad, my1});
  }
  for (const auto* bad : {"", "-1", "1.5", "x", "nan", "86400001"})
    refused(lua::permits_acquire, keys, {ms, "3", bad, "publish", "c", "1", "1", my2});
  for (const auto* bad : {"", "0", "-1", "1.5", "x", "101", "2"}) {
    CAPTURE(bad);
    refused(lua::permits_acquire, keys, {ms, "3", "0", "publish", "c", bad, "1", my2});
    refused(lua::permits_acquire, keys, {ms, "3", "0", "publish", "c", "1", bad, my2});
    refused(lua::permits_renew, {permits}, {"1", bad, ms, my1});
    refused(lua::permits_renew, {permits}, {bad, "1", ms, my1});
  }
  arguments many{ms, "200", "0", "publish", "c", "2", "51", "50"};
  for (int i = 0; i < 101; ++i) many.push_back("id" + std::to_string(i));
  refused(lua::permits_acquire, keys, many);
}

TEST_CASE("a user who may not do a part of a semaphore's script leaves the sum as it was") {
  need_redis();
  const test::real_redis server;
  test::raw_client admin(server), guest(server);
  const asked by_admin = [&](const arguments& a) { return admin.call(a); };
  const semaphore of{by_admin};
  const auto all_but = [&](const std::string& withheld) {
    arguments rule{"ACL", "SETUSER", "guest", "reset", "on", "nopass", "~*", "+eval"};
    for (const auto* command :
         {"get", "set", "incrby", "time", "zadd", "zrem", "zscore", "zcard", "zcount", "zrangebyscore", "del", "pttl"})
      if (command != withheld) rule.push_back("+" + std::string(command));
    REQUIRE(admin.call(rule) == "OK");
    REQUIRE(guest("AUTH", "guest", "x") == "OK");
  };
  for (const auto* withheld :
       {"get", "set", "incrby", "time", "zadd", "zrem", "zscore", "zcard", "zcount", "zrangebyscore", "del", "pttl"})
    for (const auto* found : {"never used", "one is out", "mine", "one has ended", "the counter is lost", "my door"})
      for (const auto& r : rows) {
        const std::string_view name = r.name;
        // Nobody gets a permit without INCRBY, so a release without it is none of ours.
        if (withheld == std::string_view("incrby") && name.starts_with("release")) continue;
        INFO(r.name << ", " << found << ", without " << withheld);
        admin("FLUSHALL");
        for (const auto& command : state_named(found).made_by) admin.call(command);
        all_but(withheld);
        guest.call(r.call);
        const auto total = name == "set to more" ? 5 : name == "set to fewer" ? 1 : 3;
        if (of.has_counter()) CHECK((of.sum() == 3 || of.sum() == total));
      }
}
