// SPDX-License-Identifier: BSL-1.0
#include "topology/replicas/acknowledgements.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "support/catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

error_code code_of(const std::optional<redis::failure>& failed) { return failed ? failed->code : error_code(); }

struct waiting_fixture {
  void add(const std::string& name, unsigned replicas, std::chrono::milliseconds time, std::uint64_t server = 7) {
    all.add(name, {replicas, server, now + time},
            [this, name](const std::optional<redis::failure>& failed, unsigned had) {
              heard[name] = {code_of(failed), had};
            });
  }
  void expire() {
    for (const auto& a : all.expire(now)) a.to(a.failed, a.had);
  }
  void end(unsigned had, const std::optional<redis::failure>& failed = {}, std::uint64_t server = 7) {
    for (const auto& a : all.end(failed, had, server, now)) a.to(a.failed, a.had);
  }

  detail::time_point now{1h};
  detail::acknowledgements all;
  std::map<std::string, std::pair<error_code, unsigned>> heard;
};

}  // namespace

TEST_CASE_METHOD(waiting_fixture, "one question is under way, and who comes meanwhile goes with the next") {
  CHECK_FALSE(all.begin(now));
  add("a", 1, 500ms);
  REQUIRE(all.begin(now));
  add("b", 2, 500ms);
  add("c", 1, 300ms);
  CHECK_FALSE(all.begin(now));
  end(1);
  CHECK(heard.size() == 1);
  CHECK(heard["a"] == std::pair(error_code(), 1U));
  const auto next = all.begin(now);
  REQUIRE(next);
  CHECK(next->replicas == 2);
  CHECK(next->until == now + 200ms);  // the answer may be late by a hundred
  end(2);
  CHECK(heard.size() == 3);
  CHECK_FALSE(all.begin(now));
}

TEST_CASE_METHOD(waiting_fixture, "who has more time than the others of a question asks once more") {
  add("a", 2, 500ms);
  add("b", 2, 300ms);
  REQUIRE(all.begin(now));
  now += 300ms;
  end(1);
  CHECK(heard.size() == 1);
  CHECK(heard["b"].second == 1);
  const auto next = all.begin(now);
  REQUIRE(next);
  CHECK(next->until == now + 100ms);
  end(2);
  CHECK(heard["a"].second == 2);
}

TEST_CASE_METHOD(waiting_fixture, "a server that says too few before the time is over is asked no more") {
  add("a", 2, 500ms);
  REQUIRE(all.begin(now));
  end(0);
  CHECK(heard["a"] == std::pair(error_code(), 0U));
  CHECK_FALSE(all.begin(now));
}

TEST_CASE_METHOD(waiting_fixture, "a failure is told to all of the question, and to nobody else") {
  add("a", 1, 500ms);
  REQUIRE(all.begin(now));
  add("b", 1, 500ms);
  end(0, redis::failure{errc::server_refused, "ERR no"});
  CHECK(heard["a"].first == errc::server_refused);
  CHECK(heard.size() == 1);
  CHECK(all.begin(now));
}

TEST_CASE_METHOD(waiting_fixture,
                 "a question names the key of one who waits, and its refusal is told to whoever wants that key") {
  add("a", 1, 500ms);
  REQUIRE(all.begin(now));
  add("b", 1, 500ms);
  add("c", 1, 500ms);
  end(1);
  auto next = all.begin(now);
  REQUIRE(next);
  CHECK(next->key == "b");
  add("d", 1, 500ms);
  for (const auto& r : all.refuse({errc::corrupt_lock, "no TTL"})) r.to(r.failed, r.had);
  CHECK(heard["b"].first == errc::corrupt_lock);
  CHECK(heard.count("c") == 0);
  next = all.begin(now);
  REQUIRE(next);
  CHECK(next->key == "c");  // before who came meanwhile
  end(1);
  CHECK(heard["c"].second == 1);
  CHECK(heard["d"].second == 1);
  CHECK(all.idle());
}

TEST_CASE_METHOD(waiting_fixture, "the word of another server counts for nothing") {
  add("a", 1, 500ms, 6);
  add("b", 1, 500ms);
  REQUIRE(all.begin(now));
  end(5);
  CHECK(heard["a"].first == errc::unreachable);
  CHECK(heard["b"] == std::pair(error_code(), 5U));
}

TEST_CASE_METHOD(waiting_fixture, "a server that does not say who it is counts for nothing") {
  add("a", 1, 500ms, 0);
  REQUIRE(all.begin(now));
  end(5, {}, 0);
  CHECK(heard["a"].first == errc::no_permission);
}

TEST_CASE_METHOD(waiting_fixture,
                 "a waiter whose time is over waits neither for a silent server nor for the question of others") {
  CHECK_FALSE(all.next_deadline());
  add("a", 1, 500ms);
  REQUIRE(all.begin(now));
  add("b", 1, 130ms);
  CHECK(all.next_deadline() == now + 130ms);
  now += 130ms;
  expire();
  CHECK(heard.size() == 1);
  CHECK(heard["b"].first == errc::unreachable);
  now += 370ms;
  expire();
  CHECK(heard["a"].first == errc::unreachable);
  CHECK(all.idle());
  add("c", 1, 500ms);
  CHECK_FALSE(all.begin(now));  // the first is still under way
  end(1);
  CHECK(heard.size() == 2);
  CHECK(all.begin(now));
}

TEST_CASE_METHOD(waiting_fixture, "a waiter with little time asks for half of it") {
  add("a", 1, 60ms);
  const auto asked = all.begin(now);
  REQUIRE(asked);
  CHECK(asked->until == now + 30ms);
}
