// SPDX-License-Identifier: BSL-1.0
// config::notes: since when a lock is held and what for, beside the lock, for holder().
#include <algorithm>
#include <string>
#include <string_view>

#include "integration/blocking_world.hpp"
#include "integration/cluster_world.hpp"
#include "integration/every_kind.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr auto* note_of_m = "holdfast_note:{m}";

const auto with_notes = [](config& c) { c.notes = true; };

lock_options about(std::string_view note, lock_options options = {}) {
  options.note = note;
  return options;
}

/// The note that holder() tells; "-" without an instant.
template <class World>
std::string note_of(World& w, const mutex& m) {
  const auto holder = w.run(m.holder());
  if (!holder) return "free";
  return holder->since ? holder->note : "-";
}
template <class World>
void until_noted(World& w, const mutex& m, std::string_view note) {
  w.until([&] { return note_of(w, m) == note; });
}

std::chrono::sys_time<milliseconds> time_of(raw_client& server) {
  const auto time = server("TIME").strings();
  return std::chrono::sys_time<milliseconds>(
      milliseconds(std::stoll(time.at(0)) * 1000 + std::stoll(time.at(1)) / 1000));
}

}  // namespace

TEST_CASE("holder tells of each kind since when it is held and what for, by the server's clock") {
  of_every_kind([](const lock_kind& k, lock_world& w) {
    auto redis = w.make(with_notes), other = w.make(with_notes), without = w.make();
    const auto before = time_of(w.eyes.front());
    auto held = w.run(k(redis).lock(about("order 42, request 7f3a")));
    until_noted(w, k(other), "order 42, request 7f3a");
    // The age of the hold is sent, so the time that the command takes on its way is added.
    const auto noted = time_of(w.eyes.front());
    const auto holder = w.run(k(other).holder());
    CHECK(*holder->since >= before - 5ms);
    CHECK(*holder->since <= noted);
    CHECK(note_of(w, k(without)) == "-");
    w.until([&] { return w.eyes.front()("PTTL", note_of_m).integer() > 0; });  // a majority may be without this server
    w.run(held.unlock());
    CHECK(note_of(w, k(other)) == "free");
    // The note is left, and is nobody's.
    auto silent = w.run(k(without).lock());
    CHECK(note_of(w, k(other)) == "-");
    w.run(silent.unlock());
  });
}

TEST_CASE("a client without config::notes writes none, whatever its calls say") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock(about("secret")));
  w.run(held.renew());
  w.run(held.unlock());
  CHECK(w.eye("EXISTS", note_of_m) == 0);
}

TEST_CASE("a note is alive over three TTLs, and comes again if its key was deleted") {
  world w;
  auto redis = w.make(with_notes);
  auto m = redis.mutex("m");
  auto held = w.run(m.lock(about("x", {.ttl = 600ms, .renew = true})));
  until_noted(w, m, "x");
  const auto since = *w.run(m.holder())->since;
  const auto left = [&] {
    const auto ttl = w.eye("PTTL", note_of_m).integer();
    REQUIRE(ttl > 0);
    return ttl;
  };
  for (int third = 0; third < 9; ++third) {
    w.until([&] { return left() < 450; });
    w.until([&] { return left() > 500; });
  }
  CHECK(held.held());
  CHECK(std::chrono::abs(*w.run(m.holder())->since - since) < 100ms);
  w.eye("DEL", note_of_m);
  CHECK(held.held());
  until_noted(w, m, "x");
  w.run(held.unlock());
}

TEST_CASE("the note of the next holder is shown after a pass") {
  world w;
  auto redis = w.make(with_notes), other = w.make(with_notes);
  const auto lock_and_unlock = [](mutex m) -> asio::awaitable<void> {
    auto held = co_await m.lock(about("first"));
    co_await held.unlock();
  };
  // A turn ends after a few milliseconds, so on a busy machine the lock may be released in between.
  while (w.heard->count(event_kind::passed) == 0) {
    auto before = w.run(other.mutex("m").lock());
    started<void> first(w, lock_and_unlock(redis.mutex("m")));
    started<lease> second(w, redis.mutex("m").lock(about("second")));
    w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").array().at(1) == 1; });
    w.run(before.unlock());
    w.until([&] { return second.succeeded(); });
    until_noted(w, other.mutex("m"), "second");
    w.run(second.answer->value().unlock());
  }
}

TEST_CASE("a hold whose note is refused is not shown with the note of the hold before it") {
  world w;
  auto redis = w.make(with_notes), other = w.make(with_notes);
  const auto allow = [&](const char* bytes) { w.eye("CONFIG", "SET", "maxmemory", bytes); };
  // The server knows the script from now on. So the note of a grant is there when holder() is answered.
  auto known = w.run(redis.mutex("m").lock(about("known")));
  until_noted(w, other.mutex("m"), "known");
  w.run(known.unlock());
  std::string shown;
  const auto fill_server = [&](mutex m) -> asio::awaitable<void> {
    auto held = co_await m.lock(about("first"));
    shown = (co_await m.holder())->note;
    allow("1");
    co_await held.unlock();
  };
  bool passed = false;
  while (!passed) {
    auto before = w.run(other.mutex("m").lock());
    started<void> first(w, fill_server(redis.mutex("m")));
    started<lease> second(w, redis.mutex("m").lock(about("second")));
    w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").array().at(1) == 1; });
    w.run(before.unlock());
    w.until([&] { return first.succeeded(); });
    CHECK(shown == "first");
    passed = w.heard->count(event_kind::passed) > 0;
    if (passed) until_noted(w, other.mutex("m"), "-");
    allow("0");
    w.until([&] { return second.succeeded(); });
    w.run(second.answer->value().unlock());
  }
}

TEST_CASE("foreign contents beside a lock are ignored, and harm neither holder nor holding") {
  of_every_kind([](const lock_kind& k, lock_world& w) {
    auto redis = w.make(with_notes), without = w.make();
    auto held = w.run(k(without).lock());
    const std::string bytes("\xff\0\x1b[31m\r\n 7 x", 14);
    for (const auto& garbage : {std::string(), bytes, std::string(100'000, '9'), std::string("1 nobody:1 x")}) {
      w.eye("SET", note_of_m, garbage);
      CHECK(note_of(w, k(redis)) == "-");
    }
    w.eye("DEL", note_of_m);
    w.eye("HSET", note_of_m, "another", "type");
    CHECK(note_of(w, k(redis)) == "-");
    w.run(held.unlock());
    held = w.run(k(redis).lock(about("mine")));
    until_noted(w, k(redis), "mine");
    w.run(held.unlock());
  });
}

TEST_CASE("a note may have any bytes, and 200 of them") {
  world w;
  auto redis = w.make(with_notes);
  auto m = redis.mutex("m");
  std::string all;
  for (int byte = 0; byte < 200; ++byte) all += static_cast<char>(byte + 28);
  all[0] = '\0';
  auto held = w.run(m.lock(about(all)));
  until_noted(w, m, all);
  w.run(held.unlock());
  CHECK(w.code_of(m.lock(about(all + "x"))) == errc::invalid_name);
  CHECK(w.code_of(w.make().mutex("m").try_lock(about(all + "x"))) == errc::invalid_name);
  CHECK(w.locks().empty());
}

TEST_CASE("the text of a note may be gone when its awaitable starts") {
  world w;
  auto redis = w.make(with_notes);
  const auto begun = [&](auto call) {
    std::string text(100, 'a');
    auto later = call(about(text));
    std::fill(text.begin(), text.end(), 'b');
    return later;
  };
  const auto noted = [&](const mutex& m) { until_noted(w, m, std::string(100, 'a')); };
  const auto m = redis.mutex("m"), n = redis.mutex("n");
  SECTION("lock") {
    auto held = w.run(begun([&](auto options) { return m.lock(options); }));
    noted(m);
  }
  SECTION("try_lock") {
    auto held = w.run(begun([&](auto options) { return m.try_lock(options); }));
    noted(m);
  }
  SECTION("any_of") {
    auto held = w.run(begun([&](auto options) { return any_of({m}).lock(options); }));
    noted(m);
  }
  SECTION("multi_lock") {
    auto held = w.run(begun([&](auto options) { return multi_lock({m, n}).lock(options); }));
    noted(m);
    noted(n);
  }
  SECTION("with_lock") {
    std::string seen;
    auto body = [&](lease&) -> asio::awaitable<void> {
      for (int tries = 0; tries < 10'000 && seen.empty(); ++tries) {
        const auto holder = co_await m.holder();
        seen = holder->note;
      }
    };
    SECTION("and no limit") {
      w.run(begun([&](auto options) { return with_lock(m, body, options); }));
    }
    SECTION("and a limit") {
      w.run(begun([&](auto options) { return try_with_lock_for(m, 1s, body, options); }));
    }
    CHECK(seen == std::string(100, 'a'));
  }
}

TEST_CASE("a blocking lock keeps the text of its note") {
  blocking_world w;
  auto settings = w.settings();
  settings.notes = true;
  blocking::client redis(settings);
  auto text = std::string(100, 'a');
  auto m = redis.mutex("m", about(text));
  std::fill(text.begin(), text.end(), 'b');
  m.lock();
  see([&] { return w.eye("EXISTS", note_of_m) == 1; });
  CHECK(w.eye("GET", note_of_m).to_string().ends_with(' ' + std::string(100, 'a')));
  m.unlock();
}

TEST_CASE("without its permissions a note is left out, and reported once") {
  world w;
  w.eye("ACL", "SETUSER", "app", "reset", "on", ">secret", "~m", "&*", "+@all");
  auto redis = w.make([](config& c) { c.notes = true, c.user = "app", c.password = "secret"; });
  auto m = redis.mutex("m");
  for (int i = 0; i < 3; ++i) {
    auto held = w.run(m.lock(about("x", {.ttl = 300ms, .renew = true})));
    CHECK(note_of(w, m) == "-");
    w.run(held.renew());
    w.run(held.unlock());
  }
  w.until([&] { return w.heard->count(event_kind::notes_degraded) > 0; });
  CHECK(w.heard->count(event_kind::notes_degraded) == 1);
  CHECK(w.eye("EXISTS", note_of_m) == 0);
}

TEST_CASE("the permissions that the pages name for notes are enough") {
  world w;
  w.eye("ACL", "SETUSER", "app", "reset", "on", ">secret", "~m", "~holdfast_note:{m}", "&*", "+@all", "-set", "-time",
        "-getrange", "+set", "+time", "+getrange");
  auto redis = w.make([](config& c) { c.notes = true, c.user = "app", c.password = "secret"; });
  auto held = w.run(redis.mutex("m").lock(about("x")));
  until_noted(w, redis.mutex("m"), "x");
  w.run(held.unlock());
  CHECK(w.heard->count(event_kind::notes_degraded) == 0);
}

TEST_CASE("a note lies in the slot of its lock, and follows it through a failover") {
  cluster_world w;
  auto redis = w.make(with_notes);
  const std::vector<std::string> names{"a", "b", "{c}:1", "x{y}z"};
  std::vector<lease> held;
  for (const auto& name : names) held.push_back(w.run(redis.mutex(name).lock(about(name, {.ttl = 1s, .renew = true}))));
  for (const auto& name : names) until_noted(w, redis.mutex(name), name);
  w.rig.fail_over(w.rig.owner_of("a"));
  until_noted(w, redis.mutex("a"), "a");
  for (auto& each : held) w.run(each.unlock());
}

TEST_CASE("each primary of a red_lock has the note, and one that has it is enough") {
  lock_world w(5);
  auto redis = w.make(with_notes);
  const auto m = redis.red_lock("m");
  auto held = w.run(m.lock(about("x", {.ttl = 1s, .renew = true})));
  w.until([&] { return std::ranges::all_of(w.eyes, [](auto& eye) { return eye("EXISTS", note_of_m) == 1; }); });
  for (std::size_t n = 0; n < 4; ++n) w.eyes[n]("DEL", note_of_m);
  CHECK(note_of(w, m) == "x");
  w.until([&] { return std::ranges::all_of(w.eyes, [](auto& eye) { return eye("EXISTS", note_of_m) == 1; }); });
  w.run(held.unlock());
}
