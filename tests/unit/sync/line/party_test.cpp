// SPDX-License-Identifier: BSL-1.0
// One command asks for several waiters of a line.
#include <algorithm>

#include "protocol/permits/permit_lock.hpp"
#include "support/skip.hpp"
#include "unit/sync/starving.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct party : engine_fixture {
  ~party() { locks.reset(); }
  lock_call want(std::uint8_t amount = 1, lock_options options = {}, std::optional<nanoseconds> limit = {}) {
    using wait_mode = detail::lock_request::wait_mode;
    const lock_call asked;
    const detail::lock_request request{.owner = owner(),
                                       .wait = limit ? wait_mode::until_deadline : wait_mode::forever,
                                       .amount = amount,
                                       .asked = detail::resolve_terms(settings, options),
                                       .deadline = limit ? clock.now() + *limit : time_point::max()};
    asked.place(locks->lock(names, request, [this, asked](detail::lock_answer&& answer) {
      order.push_back(asked.place().get());
      asked.answer(answer.failed, std::move(answer.value));
    }));
    kept.push_back(asked);
    return asked;
  }
  void gives(long long waiters, long long left) { answers(replies::integers({waiters, left})); }
  void has_too_few(milliseconds first_end) { answers(replies::integers({0, first_end.count()})); }
  // (counter, permits, door; ttl, total, door_ms, word, channel, waiters, n..., id...)
  std::size_t asked_for() const { return std::stoul(server.last().arguments().at(5)); }
  /// The server grants and releases all that is asked for from now on.
  void gives_all() {
    for (int second = 0; second < 10; ++second, advance(1s))
      for (const auto command : server.open()) {
        const auto& asked = server.sent(command);
        if (!asked.written) continue;
        const bool acquire = asked.keys().size() == 3;
        server.reply(command, acquire ? replies::integers({std::stoll(asked.arguments().at(5)), 9}) : replies::nil());
        run();
      }
  }
  std::vector<std::string> ids() const {
    const auto words = server.last().arguments();
    return {words.begin() + 6 + static_cast<std::ptrdiff_t>(asked_for()), words.end()};
  }

  const detail::shared_keys names =
      std::make_shared<const detail::permit_keys>(detail::permit_lock, "a", detail::naming(), 200);
  std::vector<lock_call> kept;  // until the engine has ended, which refers to live leases
  std::vector<const void*> order;
};

}  // namespace

TEST_CASE_METHOD(party,
                 "one command asks for the first waiter and those behind it, and the first of them have theirs") {
  const auto alone = want(), first = want(), second = want(2), third = want();
  CHECK(asked_for() == 1);
  gives(1, 199);
  CHECK(alone.granted());
  CHECK(asked_for() == 3);
  CHECK(ids().size() == 4);
  gives(2, 30'000);
  CHECK(first.granted());
  CHECK(second.granted());
  CHECK(second.value()->of->field().amount() == 2);
  CHECK(third.waits());
  CHECK(order == std::vector<const void*>{alone.place().get(), first.place().get(), second.place().get()});
  CHECK(in_flight() == 0);
}

TEST_CASE_METHOD(party, "the answer to a party tells the next waiter that too few are left, and nobody else") {
  const auto alone = want(), first = want(), second = want(), third = want();
  gives(1, 1);
  SECTION("the refused one waits") {
    gives(1, 30'000);
    CHECK(in_flight() == 0);
  }
  SECTION("it has left, and the waiter behind it asks") {
    second.cancel();
    gives(1, 30'000);
    answers(replies::nil());  // of the release
    CHECK(in_flight() == 1);
    CHECK(asked_for() == 1);
  }
  CHECK(first.granted());
  CHECK(third.waits());
}

TEST_CASE_METHOD(party, "a waiter that came after the command of a party asks at once") {
  const auto alone = want(), first = want(), second = want();
  gives(1, 2);
  const auto late = want();
  gives(2, 0);
  CHECK(late.waits());
  CHECK(asked_for() == 1);
  CHECK(in_flight() == 1);
}

TEST_CASE_METHOD(party, "each of a party is a hold of its own") {
  const auto alone = want(), first = want(), second = want();
  gives(1, 2);
  gives(2, 0);
  unlock(first);
  CHECK(sent("permits_release") == 1);
  CHECK(state(second) == lease_state::held);
  advance(10s);
  CHECK(sent("permits_renew") == 1);
  CHECK(server.last().keys().size() == 2);
}

TEST_CASE_METHOD(party, "a waiter with other terms ends the party, and one of its own follows") {
  const auto alone = want(), first = want(), longer = want(1, {.ttl = 60s, .renew = true}), third = want();
  gives(1, 9);
  CHECK(asked_for() == 1);
  gives(1, 8);
  CHECK(first.granted());
  CHECK(asked_for() == 1);
  gives(1, 7);
  CHECK(longer.granted());
  CHECK(asked_for() == 1);
  gives(1, 6);
  CHECK(third.granted());
}

TEST_CASE_METHOD(party, "a party wants a hundred permits at most") {
  const auto alone = want(), first = want(60), second = want(40), third = want(1);
  gives(1, 199);
  CHECK(asked_for() == 2);
}

TEST_CASE_METHOD(party,
                 "a member that leaves before the answer gives its field back, and once more if it was granted") {
  const auto alone = want(), first = want(), second = want(), third = want();
  gives(1, 2);
  second.cancel();
  CHECK(sent("permits_release") == 1);
  SECTION("the answer grants it") {
    gives(3, 0);
    CHECK(sent("permits_release") == 2);
    CHECK(third.granted());
  }
  SECTION("the answer grants less") {
    gives(1, 0);
    CHECK(sent("permits_release") == 1);
    CHECK(third.waits());
  }
  CHECK(first.granted());
}

TEST_CASE_METHOD(party, "the members of a party whose answer was lost ask again together, with the same fields") {
  const auto alone = want(), first = want(), second = want();
  gives(1, 2);
  const auto asked = ids();
  REQUIRE(asked.size() == 2);
  fails(errc::unconfirmed);
  advance(1s);
  CHECK(ids() == asked);
  gives(2, 0);
  CHECK(first.granted());
  CHECK(second.granted());
}

TEST_CASE_METHOD(party,
                 "a member whose earlier attempt has no answer gives its field back, though a later one was busy") {
  const auto alone = want(), first = want(), second = want();
  gives(1, 2);
  fails(errc::unconfirmed);
  advance(1s);
  has_too_few(30s);
  second.cancel();
  CHECK(sent("permits_release") == 1);
}

TEST_CASE_METHOD(party, "when the first of a party whose answer was lost leaves, the others ask together at once") {
  const auto alone = want(), first = want(1, {}, 10ms), second = want(), third = want();
  gives(1, 3);
  const auto asked = ids();
  REQUIRE(asked.size() == 3);
  fails(errc::unconfirmed);
  SECTION("it is cancelled") { first.cancel(); }
  SECTION("its time is over") { advance(10ms); }
  REQUIRE_FALSE(first.waits());
  CHECK(sent("permits_release") == 1);
  answers(GENERATE(replies::integers({1, 1}), replies::nil()));
  CHECK(ids() == std::vector<std::string>{asked[1], asked[2]});
  gives(2, 0);
  CHECK(second.granted());
  CHECK(third.granted());
}

TEST_CASE_METHOD(party, "a party whose answer was lost keeps its fields when its repetition is refused or withdrawn") {
  const auto alone = want(), first = want(), second = want(), third = want();
  gives(1, 3);
  const auto asked = ids();
  fails(errc::unconfirmed);
  SECTION("refused") {
    advance(1s);
    errs("OOM command not allowed when used memory > 'maxmemory'.");
    second.cancel();
    CHECK(sent("permits_release") == 1);
  }
  SECTION("withdrawn") {
    link_down();
    advance(100ms);
    first.cancel();
    link_up();
    CHECK(sent("permits_release") == 1);
    answers(replies::nil());
    CHECK(ids() == std::vector<std::string>{asked[1], asked[2]});
  }
}

TEST_CASE_METHOD(party, "a party whose command was never written has nothing to give back") {
  const auto alone = want();
  gives(1, 3);
  link_down();
  const auto first = want(), second = want(), third = want();
  first.cancel();
  second.cancel();
  SECTION("the last asks") {
    link_up();
    gives(1, 1);
    CHECK(third.granted());
  }
  SECTION("the last leaves") { third.cancel(); }
  CHECK(sent("permits_release") == 0);
}

TEST_CASE_METHOD(party,
                 "after two attempts without an answer a party gives all its fields back, and asks with others") {
  const auto alone = want();
  std::vector<lock_call> all;
  for (int n = 0; n < 100; ++n) all.push_back(want());
  gives(1, 199);
  const auto asked = ids();
  REQUIRE(asked.size() == 100);
  fails(errc::unconfirmed);
  advance(1s);
  fails(errc::unconfirmed);
  CHECK(sent("permits_release") == 100);
  all.back().cancel();
  CHECK(sent("permits_release") == 100);
  for (int n = 0; n < 100; ++n) answers(replies::nil());
  advance(1s);
  CHECK(asked_for() == 99);
  for (const auto& id : ids()) CHECK(std::find(asked.begin(), asked.end(), id) == asked.end());
  gives(99, 0);
  CHECK(all.front().granted());
  CHECK(all[98].granted());
}

TEST_CASE_METHOD(party, "members stay in the line when the first leaves, and may have been granted meanwhile") {
  const auto alone = want(), first = want(), second = want();
  gives(1, 2);
  const auto asked = ids();
  first.cancel();
  CHECK(sent("permits_release") == 1);
  CHECK(second.waits());
  gives(2, 0);                         // nobody waits for this answer any more
  answers(replies::integers({1, 1}));  // of the release
  CHECK(ids() == std::vector<std::string>{asked[1]});
  second.cancel();
  CHECK(sent("permits_release") == 2);
}

TEST_CASE_METHOD(party, "a member that has left gives its field back once more if nobody hears the answer") {
  const auto alone = want(), first = want(), second = want();
  gives(1, 2);
  second.cancel();
  CHECK(sent("permits_release") == 1);
  SECTION("the first leaves too") {
    first.cancel();
    CHECK(sent("permits_release") == 3);
  }
  SECTION("the answer is lost") {
    fails(errc::unconfirmed);
    CHECK(sent("permits_release") == 2);
  }
}

TEST_CASE_METHOD(party, "a waiter that wants more than there are parks, and asks at a message") {
  const auto asked = want(5);
  answers(replies::integers({0, -1}));
  const auto messages = detail::channel_of(*names);
  server.acknowledge(messages);
  run();
  answers(replies::integers({0, -1}));
  const auto questions = sent("permits_acquire");
  CHECK(in_flight() == 0);
  server.push(messages, "2");
  run();
  CHECK(sent("permits_acquire") == questions + 1);
}

TEST_CASE_METHOD(party, "a grant that comes too late for its first comes too late for the others") {
  const lock_options brief{.ttl = 200ms, .renew = true};
  const auto alone = want(), first = want(1, brief), second = want(1, brief);
  gives(1, 2);
  CHECK(asked_for() == 2);
  advance(190ms);
  gives(2, 0);
  CHECK(first.waits());
  CHECK(second.waits());
}

TEST_CASE("no allocation that fails where a part of a party is granted lets a waiter sleep that has permits") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto granted_in_part = [](party& fixture) {
    fixture.order.reserve(4);  // the callers' memory is not in question
    fixture.want();
    std::vector<lock_call> all;
    for (int n = 0; n < 3; ++n) all.push_back(fixture.want());
    fixture.gives(1, 9);
    fixture.server.reply(fixture.server.open().front(), replies::integers({2, 30'000}));
    return all;
  };
  const auto runs = starve<party>(
      granted_in_part, [](party& fixture, const auto&) { fixture.run(); },
      [](party& fixture, const std::vector<lock_call>& all) {
        if (all[1].waits()) CHECK(fixture.in_flight() > 0);
      });
  CHECK(runs > 1);
}

TEST_CASE("no allocation that fails where a party gives its fields back leaves one of its waiters without an answer") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto lost_twice = [](party& fixture) {
    fixture.want();
    std::vector<lock_call> all;
    for (int n = 0; n < 3; ++n) all.push_back(fixture.want());
    fixture.gives(1, 9);
    fixture.fails(errc::unconfirmed);
    fixture.advance(1s);
    REQUIRE(fixture.asked_for() == 3);
    fixture.server.fail(fixture.server.open().front(), errc::unconfirmed);
    return all;
  };
  const auto runs = starve<party>(
      lost_twice, [](party& fixture, const auto&) { fixture.run(); },
      [](party& fixture, const std::vector<lock_call>& all) {
        fixture.gives_all();
        for (const auto& each : all) CHECK_FALSE(each.waits());
      });
  CHECK(runs > 1);
}
