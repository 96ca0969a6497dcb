// SPDX-License-Identifier: BSL-1.0
// The scripts of a fair mutex in each state of its keys: one holds, and a free lock is for the first living place.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/fair_rig.hpp"
#include "support/catch.hpp"

namespace {

using namespace holdfast;
using namespace test::scripts;
using namespace test::fair_rig;
using test::value;

const std::vector<arguments> mine{{"HSET", lock, my1, "1"}, {"PEXPIRE", lock, long_ms}},
    others{{"HSET", lock, other1, "1"}, {"PEXPIRE", lock, long_ms}}, free_lock;

/// These places stand, in this order.
std::vector<arguments> queued(std::vector<arguments> held, const arguments& places, const std::string& until = far) {
  for (const auto& each : places) {
    held.push_back({"RPUSH", queue, each});
    if (!until.empty()) held.push_back({"ZADD", deadlines, until, each});
  }
  return held;
}
std::vector<arguments> with(std::vector<arguments> all, const arguments& last) {
  all.push_back(last);
  return all;
}

const std::string w0 = place(waiter), w1 = place(waiter, 1), d0 = place(dead), d1 = place(dead, 1), m3 = place(me, 3),
                  p = thread(peer), mute7 = thread(mute);

const std::vector<state> states{
    {"free", free_lock},
    {"mine", mine},
    {"another's", others},
    {"another's, without a TTL", {{"HSET", lock, other1, "1"}}},
    {"another's, and I stand", queued(others, {w0, m3})},
    {"free, and my turn", queued(free_lock, {m3, w0})},
    {"free, and a living place's turn", queued(free_lock, {w0, w1, d0})},
    {"free, and a dead place before mine", queued(free_lock, {d0, m3})},
    {"free, and a dead place stands alone", queued(free_lock, {d0})},
    {"free, and a peer's turn", queued(free_lock, {p, w0})},
    {"free, and an unheard peer's turn", queued(free_lock, {mute7, w0})},
    {"free, and an unheard peer is late", queued(free_lock, {mute7, w0}, over)},
    {"free, and a heard peer is late", queued(free_lock, {p, w0}, over)},
    {"free, and there are no deadlines", queued(free_lock, {mute7, w0}, "")},
    {"mine, and my place is first", queued(mine, {m3, w0})},
    {"mine, and a living place is first", queued(mine, {w0})},
    {"mine, and a dead place is first", queued(mine, {d0, w0})},
    {"mine, and the queue is text", with(mine, {"SET", queue, "text"})},
    {"free, and the queue is a set", {{"ZADD", queue, "1", w0}}},
    {"free, and the deadlines are text", with(queued(free_lock, {mute7, w0}, ""), {"SET", deadlines, "text"})},
    {"not a hash", {{"SET", lock, "text"}}},
    {"somebody's data", {{"HSET", lock, "id", "42", "total", "10"}}},
};
constexpr const char *wrong = "WRONGTYPE", *nil = "(nil)", *no_lock = "HOLDFAST no lock";

const std::vector<bool> never(states.size(), false);

const std::vector<row> rows{
    {"acquire",
     acquire(my1),
     {"[1, 0]",
      "[1, 0]",
      "[0, long]",
      "[0, -1]",
      "[0, long]",
      "[1, 1, me#3]",
      "[0, -2, waiter#0]",
      "[1, 0, me#3]",
      "[1, 0]",
      "[0, -2, peer:7]",
      "[0, -2, mute:7]",
      "[0, -2, waiter#0]",
      "[0, -2, peer:7]",
      "[0, -2, waiter#0]",
      "[1, 2]",
      "[1, 1]",
      "[1, 2]",
      "[1, 0]",
      "[1, 0]",
      "[0, -2, waiter#0]",
      wrong,
      "[0, -1]"},
     {0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1},
     {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}},
    {"acquire, and a living place is suspected",
     suspect(my1, w0),
     {"[1, 0]",          "[1, 0]",       "[0, long]", "[0, -1]",         "[0, long]",       "[1, 1, me#3]",
      "[1, 0]",          "[1, 0, me#3]", "[1, 0]",    "[0, -2, peer:7]", "[0, -2, mute:7]", "[1, 0]",
      "[0, -2, peer:7]", "[1, 0]",       "[1, 2]",    "[1, 1]",          "[1, 2]",          "[1, 0]",
      "[1, 0]",          "[1, 0]",       wrong,       "[0, -1]"},
     {0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1},
     {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}},
    {"stand",
     stand(me, {"1000000003", "1000000001"}),
     {"[-2, 2]",   "[long, 2]", "[long, 2]", "[-1, 2]", "[long, 3]", "[-2, 3]", "[-2, 5]",   "[-2, 2]",
      "[-2, 2]",   "[-2, 4]",   "[-2, 4]",   "[-2, 3]", "[-2, 4]",   "[-2, 3]", "[long, 3]", "[long, 3]",
      "[long, 4]", "[long, 0]", "[-2, 0]",   "[-2, 3]", wrong,       "[-1, 2]"},
     never,
     never},
    {"leave",
     stand(me),
     {"[-2, 0]",   "[long, 0]", "[long, 0]", "[-1, 0]", "[long, 1]", "[-2, 1]", "[-2, 3]",   "[-2, 0]",
      "[-2, 0]",   "[-2, 2]",   "[-2, 2]",   "[-2, 1]", "[-2, 2]",   "[-2, 1]", "[long, 1]", "[long, 1]",
      "[long, 2]", "[long, 0]", "[-2, 0]",   "[-2, 1]", wrong,       "[-1, 0]"},
     never,
     never},
    {"release",
     release(my1),
     {nil,
      "[1, , 0]",
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      "[1, me#3, 1]",
      "[1, waiter#0, 1]",
      "[1, waiter#0, 1]",
      "[1, , 0]",
      nil,
      nil,
      wrong,
      nil},
     never,
     never},
    {"release for the next of this client",
     ride(my1, my2),
     {nil,
      "[2, , 0]",
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      nil,
      "[2, me#3, 0]",
      "[1, waiter#0, 1]",
      "[1, waiter#0, 1]",
      "[2, , 0]",
      nil,
      nil,
      wrong,
      nil},
     never,
     never},
    {"force",
     force(),
     {"0", "1", "1", "1", "1", "0", "0", "0", "0", "0",   "0",
      "0", "0", "0", "1", "1", "1", "1", "0", "0", wrong, no_lock},
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1},
     never},
};

bool fits(const value& v, std::string_view expected) {
  return v.is_error() ? v.text.starts_with(expected) : text_of(v) == expected;
}
const std::vector<table> all_rows{{states, rows, fits}};

/// The effect of a script on a queue: the places that are left, in their order.
struct change {
  const char* name;
  std::vector<arguments> before;
  arguments call;
  const char* left;
};
const std::vector<change> changes{
    {"an acquire takes the place whose turn it is", queued(free_lock, {m3, w0}), acquire(my1), "[waiter#0]"},
    {"an acquire of an owner that holds takes no place", queued(mine, {m3, w0}), acquire(my1), "[me#3, waiter#0]"},
    {"an acquire of a held lock takes no place", queued(others, {d0, m3}), acquire(my1), "[dead#0, me#3]"},
    {"an acquire drops the dead before its own place", queued(free_lock, {d0, d1, m3, w0}), acquire(my1), "[waiter#0]"},
    {"an acquire drops no living place", queued(free_lock, {w0, m3}), acquire(my1), "[waiter#0, me#3]"},
    {"a suspect leaves with all places of its client", queued(free_lock, {w0, m3, w1}), suspect(my1, w0), "[]"},
    {"who is not first is no suspect", queued(free_lock, {w0, m3, w1}), suspect(my1, w1), "[waiter#0, me#3, waiter#1]"},
    {"a peer that is suspected stays until its deadline", queued(free_lock, {p, m3}), suspect(my1, p),
     "[peer:7, me#3]"},
    {"a peer that is suspected and late leaves", queued(free_lock, {p, m3}, over), suspect(my1, p), "[]"},
    {"places join the end in their order", queued(others, {w0}), stand(me, {"1000000003", "1000000001"}),
     "[waiter#0, me#3, me#1]"},
    {"a place that stands keeps its position", queued(others, {m3, w0}), stand(me, {"1000000001", "1000000003"}),
     "[me#3, waiter#0, me#1]"},
    {"a place that is not named leaves", queued(others, {m3, w0}), stand(me, {"1000000001"}), "[waiter#0, me#1]"},
    {"all places of a client leave, and no other's", queued(others, {m3, w0, place(me, 15)}), stand(me), "[waiter#0]"},
    {"whoever stands at a free lock drops the dead before it", queued(free_lock, {d0, w0}), stand(me, {"1000000003"}),
     "[waiter#0, me#3]"},
    {"a release drops the dead and leaves the living", queued(mine, {d0, w0, d1}), release(my1), "[waiter#0, dead#1]"},
    {"a release leaves a peer that is not heard yet", queued(mine, {mute7, w0}), release(my1), "[mute:7, waiter#0]"},
    {"a release drops a late peer that is not heard", queued(mine, {mute7, w0}, over), release(my1), "[waiter#0]"},
    {"a release that rides takes the place of its client", queued(mine, {m3, w0}), ride(my1, my2), "[waiter#0]"},
    {"a release rides over no living place", queued(mine, {w0, m3}), ride(my1, my2), "[waiter#0, me#3]"},
    {"a release of another's lock changes nothing", queued(others, {d0, w0}), release(my1), "[dead#0, waiter#0]"},
    {"who breaks a hold drops the dead", queued(others, {d0, w0}), force(), "[waiter#0]"},
    {"who finds no hold to break drops nobody", queued(free_lock, {d0, w0}), force(), "[dead#0, waiter#0]"},
};

void check_changes(const servers& all) {
  for (const auto& each : changes) {
    INFO(each.name);
    make(all, {each.name, each.before});
    REQUIRE_FALSE(all.primary(each.call).is_error());
    CHECK(text_of(all.primary({"LRANGE", queue, "0", "-1"})) == each.left);
    const auto standing = all.primary({"LLEN", queue}).number, known = all.primary({"ZCARD", deadlines}).number;
    CHECK(known == standing);
  }
}

long long deadline_of(const servers& all, const std::string& place) {
  const auto score = all.primary({"ZSCORE", deadlines, place});
  return score.type == value::kind::nil ? -1 : std::stoll(score.text);
}
long long now_of(const servers& all) { return std::stoll(all.primary({"TIME"}).elements.at(0).text) * 1000; }

/// The scores lie 300 s apart, and this is a slow machine's second.
bool is_about(long long deadline, long long expected) {
  return deadline >= expected - 2'000 && deadline <= expected + tolerance;
}

void check_deadlines(const servers& all) {
  make(all, {"", queued(others, {p, w0, mute7})});
  REQUIRE_FALSE(all.primary(stand(me, {"1000000003", "1000000001"})).is_error());
  const auto now = now_of(all);
  CHECK(is_about(deadline_of(all, m3), now + 5'000 + 2 * 300'000));
  CHECK(is_about(deadline_of(all, place(me, 1)), now + 5'000 + 2 * 300'000));
  CHECK(deadline_of(all, w0) == std::stoll(far));

  // A peer leaves, as Redisson's script does it. The next look sets the deadline anew, and nothing adds up.
  for (const auto& command :
       {arguments{"LREM", queue, "1", p}, {"ZREM", deadlines, p}, {"ZINCRBY", deadlines, "-300000", m3}})
    REQUIRE_FALSE(all.primary(command).is_error());
  CHECK(is_about(deadline_of(all, m3), now + 5'000 + 300'000));
  for (int times = 0; times < 3; ++times) REQUIRE_FALSE(all.primary(stand(me, {"1000000003"})).is_error());
  CHECK(is_about(deadline_of(all, m3), now + 5'000 + 300'000));
  for (const auto& key : {queue, deadlines}) {
    const auto left = all.primary({"PTTL", key}).number;
    CHECK((left > 86'400'000 - tolerance && left <= 86'400'000));
  }
}

/// Redisson's waiter stands before it listens. It has 5 s for that from when its turn has come.
void check_unheard_peers(const servers& all) {
  for (const auto& call : {acquire(my1), stand(me, {"1000000003"}), release(my1), ride(my1, my2), force()}) {
    CAPTURE(call.at(1).substr(0, 60));
    const bool frees = call == release(my1) || call == ride(my1, my2) || call == force();
    make(all, {"", queued(frees ? mine : free_lock, {mute7, w0})});
    REQUIRE_FALSE(all.primary(call).is_error());
    CHECK(is_about(deadline_of(all, mute7), now_of(all) + 5'000));
    CHECK(deadline_of(all, w0) == std::stoll(far));
  }
  make(all, {"", queued(mine, {p, w0})});
  REQUIRE_FALSE(all.primary(release(my1)).is_error());
  CHECK(deadline_of(all, p) == std::stoll(far));
}

void check_second_copies(const servers& all) {
  for (const auto& r : rows)
    for (const auto& found : states) {
      const std::string_view name = r.name;
      INFO(name << ", " << found.name);
      make(all, found);
      const auto first = all.primary(r.call);
      const arguments look{"LRANGE", queue, "0", "-1"};
      const auto held = all.primary({"HGETALL", lock}), standing = all.primary(look);
      const auto second = all.primary(r.call);
      INFO("first " << first << ", second " << second);
      CHECK(text_of(all.primary({"HGETALL", lock})) == text_of(held));
      CHECK(text_of(all.primary(look)) == text_of(standing));
      if (name == "release" && first.type == value::kind::array) CHECK(fits(second, nil));
      if (name == "release for the next of this client" && text_of(first).starts_with("[2"))
        CHECK(fits(second, "[2, , 0]"));
      if (name == "stand" || name == "leave") CHECK(text_of(second) == text_of(first));
    }
}

/// All that a value of another could lose.
std::string contents(const asked& ask) {
  return ask({"TYPE", lock}).to_string() + ask({"GET", lock}).to_string() + ask({"HGETALL", lock}).to_string();
}

void check_foreign_values(const servers& all) {
  for (const auto* name : {"not a hash", "somebody's data"})
    for (const auto& r : rows) {
      const auto& found = named(states, name);
      INFO(r.name << ", " << found.name);
      make(all, found);
      const auto before = contents(all.primary);
      all.primary(r.call);
      CHECK(contents(all.primary) == before);
    }
}

}  // namespace

TEST_CASE("each script of a fair mutex answers in each state of its keys as its recipe says") {
  SECTION("simulated") { check_primary(listening_simulation().servers.all, all_rows); }
  SECTION("real") {
    need_redis();
    check_primary(listening_pair().servers.all, all_rows);
  }
}

TEST_CASE("a replica says of no fair mutex that it is yours or not yours or acquired, and not who stands") {
  SECTION("simulated") { check_replica(listening_simulation().servers.all, all_rows); }
  SECTION("real") {
    need_redis();
    check_replica(listening_pair().servers.all, all_rows);
  }
}

TEST_CASE("a primary that may not write confirms no fair mutex and denies none") {
  SECTION("simulated") { check_without_writes(listening_simulation().servers.all, all_rows); }
  SECTION("real") {
    need_redis();
    check_without_writes(listening_pair().servers.all, all_rows);
  }
}

TEST_CASE("each script of a fair mutex leaves the places that it should, in their order") {
  SECTION("simulated") { check_changes(listening_simulation().servers.all); }
  SECTION("real") {
    need_redis();
    check_changes(listening_pair().servers.all);
  }
}

TEST_CASE("deadlines of places allow for the peers before them, and add nothing up") {
  SECTION("simulated") { check_deadlines(listening_simulation().servers.all); }
  SECTION("real") {
    need_redis();
    check_deadlines(listening_pair().servers.all);
  }
}

TEST_CASE("a peer that nobody hears has 5 s from when its turn has come") {
  SECTION("simulated") { check_unheard_peers(listening_simulation().servers.all); }
  SECTION("real") {
    need_redis();
    check_unheard_peers(listening_pair().servers.all);
  }
}

TEST_CASE("a second copy of a fair mutex's script changes nothing more") {
  SECTION("simulated") { check_second_copies(listening_simulation().servers.all); }
  SECTION("real") {
    need_redis();
    check_second_copies(listening_pair().servers.all);
  }
}

TEST_CASE("scripts of a fair mutex leave the values of others alone") {
  SECTION("simulated") { check_foreign_values(listening_simulation().servers.all); }
  SECTION("real") {
    need_redis();
    check_foreign_values(listening_pair().servers.all);
  }
}

TEST_CASE("numbers of a fair mutex that are out of range are refused before anything is written") {
  const listening_simulation s;
  const auto& all = s.servers.all;
  const auto refuses = [&](const arguments& command, const char* number) {
    make(all, named(states, "mine, and my place is first"));
    const auto before = contents(all.primary);
    CHECK(all.primary(command).text.starts_with("HOLDFAST invalid " + std::string(number)));
    CHECK(contents(all.primary) == before);
    CHECK(text_of(all.primary({"LRANGE", queue, "0", "-1"})) == "[me#3, waiter#0]");
  };
  for (const auto* bad : {"", "0", "-1", "1.5", "x", "nan", "inf", "86400001"}) {
    CAPTURE(bad);
    refuses(fair(detail::lua::fair_acquire, {bad, other1, "publish"}), "ttl");
    refuses(fair(detail::lua::fair_release, {"publish", my1, my2, bad}), "ttl");
  }
  refuses(fair(detail::lua::fair_stand, {"publish"}), "count");
  refuses(stand(me, arguments(17, "1000000001")), "count");
}
