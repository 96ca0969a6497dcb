// SPDX-License-Identifier: BSL-1.0
// What a client says where nobody observes it.
#include "sync/line/wait_notices.hpp"

#include <string>
#include <vector>

#include "unit/sync/engine_fixture.hpp"
#include "unit/sync/kind_of_readers.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

config unobserved(bool quiet = false) {
  auto c = without_turns();
  c.quiet = quiet;
  return c;
}

struct alone : engine_fixture {
  explicit alone(bool quiet = false) : engine_fixture(unobserved(quiet)) {
    settings.observer = nullptr;
    make();
  }
  void make() {
    locks.emplace(detail::environment{clock, timers, server, random, settings}, std::weak_ptr<detail::lease_home>(),
                  detail::owner_fields(detail::uuid{random.next(), random.next()}),
                  [this](const std::string& line) { lines.push_back(line); });
  }
  bool said(const std::string& words) const { return !lines.empty() && lines.back().find(words) != std::string::npos; }

  std::vector<std::string> lines;
};

struct observed : alone {
  observed() {
    settings.observer = events;
    make();
  }
};
struct quiet : alone {
  quiet() : alone(true) {}
};

}  // namespace

TEST_CASE_METHOD(alone, "a call that has waited for 5 s for a server that is not there says so once, and why") {
  link_down();
  server.why_silent.detail = "fake:6379: Connection refused";
  const auto a = lock("a");
  advance(5s - 1ns);
  CHECK(lines.empty());
  advance(1ns);
  REQUIRE(lines.size() == 1);
  CHECK(said("lock 'a'"));
  CHECK(said("fake:6379: Connection refused"));
  CHECK(said("config::quiet"));
  CHECK(said("observer"));
  const auto b = lock("b");
  advance(1min);
  CHECK(lines.size() == 1);
}

TEST_CASE_METHOD(alone, "a call for any or for all of several that has waited for 5 s for a server says so") {
  link_down();
  SECTION("any") { lock_any({"a", "b"}); }
  SECTION("all") { lock_all({"a", "b"}); }
  advance(5s);
  CHECK(lines.size() == 1);
}

TEST_CASE_METHOD(alone, "a call that waits where the connection is lost says so 5 s later") {
  link_down();
  link_up();
  const auto a = lock("a");
  busy(1min);
  acknowledges("a");
  busy(1min);
  advance(3s);
  link_down();
  advance(5s - 1ns);
  CHECK(lines.empty());
  advance(1ns);
  CHECK(lines.size() == 1);
}

TEST_CASE_METHOD(alone, "nothing is said of an outage that ends within 5 s, nor where nobody waits any more") {
  link_down();
  SECTION("it ends") {
    const auto a = lock("a");
    advance(5s - 1ns);
    link_up();
    advance(1s);
  }
  SECTION("nobody waits") {
    const auto a = try_lock_for("a", 4s), b = lock("b");
    const auto c = lock_any({"c", "d"});
    b.cancel();
    c.cancel();
    advance(4s);
    CHECK(timers.idle());
    advance(1min);
  }
  CHECK(lines.empty());
}

TEST_CASE_METHOD(alone, "nothing is said of a wait for another process, and a free lock starts no timer") {
  link_down();
  link_up();
  const auto a = hold("a"), b = lock("b");
  busy(1min);
  acknowledges("b");
  busy(1min);
  advance(4s);
  CHECK(lines.empty());
  unlock(a);
  frees();
  b.cancel();
  CHECK(timers.idle());
}

TEST_CASE_METHOD(alone, "a lock() that has waited for 5 s for a hold of this client, perhaps its own, says so once") {
  link_down();
  link_up();
  const int one = 0;
  const auto a = hold("a", of(&one));
  SECTION("its own") { lock("a", of(&one)); }
  SECTION("perhaps") { lock("a"); }
  advance(5s - 1ns);
  CHECK(lines.empty());
  advance(1ns);
  REQUIRE(lines.size() == 1);
  CHECK(said("lock 'a'"));
  CHECK(said("owner"));
  CHECK(said("config::quiet"));
  lock("a");
  advance(1min);
  CHECK(lines.size() == 1);
}

TEST_CASE_METHOD(alone, "a writer that has waited for 5 s for an older read hold of this client says so") {
  link_down();
  link_up();
  const int one = 0;
  const auto& rows = rows_of_readers();
  const asking reads{{}, {}, &rows.reader, &one}, writes{{}, {}, &rows.writer, &one};
  const auto first = lock("a", reads);
  answers(replies::integers({1, 0, 0}));
  REQUIRE(first.granted());
  const auto waiting = lock("a", writes);
  answers(replies::integers({0, 30'000}));
  advance(5s);
  CHECK(lines.size() == 1);
  CHECK(said("lock 'a'"));
}

TEST_CASE_METHOD(alone, "nothing is said of a wait for another coroutine, nor where the hold has changed meanwhile") {
  link_down();
  link_up();
  const int one = 0, other = 0;
  const auto a = hold("a", of(&one));
  SECTION("another") { lock("a", of(&other)); }
  SECTION("with an end") { try_lock_for("a", 10s, of(&one)); }
  SECTION("changed") {
    const auto next = lock("a"), last = lock("a");
    advance(1s);
    unlock(a);
    frees();
    grants();
    REQUIRE(next.granted());
  }
  advance(9s);
  CHECK(lines.empty());
}

TEST_CASE_METHOD(observed, "where an observer is, nothing is said") {
  link_down();
  const auto a = lock("a");
  advance(1min);
  CHECK(lines.empty());
}

TEST_CASE_METHOD(quiet, "where it is to be quiet, nothing is said") {
  link_down();
  const auto a = lock("a");
  advance(1min);
  CHECK(lines.empty());
}
