// SPDX-License-Identifier: BSL-1.0
// Elections for plain threads.
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "integration/blocking_world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

using leader_now = std::optional<leader_info>;

struct election_world : blocking_world {
  void see_observers(long long clients) {
    see([&] { return eye("PUBSUB", "NUMSUB", "holdfast_election:{chief}").array()[1].integer() == clients; });
  }
};

}  // namespace

static_assert(std::is_nothrow_move_constructible_v<blocking::election>);
static_assert(!std::is_copy_constructible_v<blocking::election>);

TEST_CASE_METHOD(election_world, "a thread leads with its value while it holds, and another waits for it") {
  blocking::client redis(settings()), other(settings());
  auto first = redis.election("chief", "one"), second = other.election("chief", "two");
  CHECK(first.name() == "chief");
  CHECK_FALSE(first.token());
  CHECK_FALSE(second.leader());
  std::unique_lock leading(first);
  REQUIRE(first.token());
  const auto known = second.leader();
  REQUIRE(known);
  CHECK(known->value == "one");
  CHECK(known->term == first.token());
  CHECK_FALSE(second.try_lock());
  auto next = std::async(std::launch::async, [&] {
    const std::lock_guard waits(second);
    return std::pair(second.token(), second.leader()->value);
  });
  see_waiters("chief");
  leading.unlock();
  const auto [term, value] = next.get();
  CHECK(term.value() > known->term);
  CHECK(value == "two");
}

TEST_CASE_METHOD(election_world, "a thread changes its value, and a thread that observes gets it") {
  blocking::client redis(settings()), other(settings());
  auto leads = redis.election("chief", "one"), looks = other.election("chief", "");
  CHECK(code_of_call([&] { leads.proclaim("two"); }) == errc::not_held);
  leads.lock();
  auto observes = std::async(std::launch::async, [&, known = looks.leader()] { return looks.next(known); });
  see_observers(1);
  leads.proclaim("two");
  CHECK(observes.get()->value == "two");
  CHECK(code_of_call([&] { leads.lock(); }) == errc::already_held);
  CHECK(code_of_call([&] { leads.proclaim(std::string(64 * 1024 + 1, 'x')); }) == errc::invalid_argument);
  CHECK(looks.force_unlock());
  CHECK(code_of_call([&] { leads.proclaim("three"); }) == errc::lost);
  leads.unlock();
  auto too_long = redis.election("chief", std::string(64 * 1024 + 1, 'x'));
  CHECK(code_of_call([&] { too_long.lock(); }) == errc::invalid_argument);
}

TEST_CASE_METHOD(election_world, "a thread that observes is told when its client ends") {
  std::optional<blocking::client> redis(settings());
  auto looks = redis->election("chief", "");
  auto observes = std::async(std::launch::async, [&] { return code_of_call([&] { looks.next({}); }); });
  see_observers(1);
  redis.reset();
  CHECK(observes.get() == errc::shutting_down);
  CHECK(code_of_call([&] { looks.leader(); }) == errc::shutting_down);
  auto moved = std::move(looks);
  CHECK(code_of_call([&] { looks.leader(); }) == errc::closed);
}

TEST_CASE_METHOD(election_world, "a thread that observes gets closed when its object ends") {
  blocking::client redis(settings());
  std::optional<blocking::election> looks(redis.election("chief", ""));
  auto observes = std::async(std::launch::async, [&] { return code_of_call([&] { looks->next({}); }); });
  see_observers(1);
  looks.reset();
  CHECK(observes.get() == errc::closed);
}
