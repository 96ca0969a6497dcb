// SPDX-License-Identifier: BSL-1.0
// One command asks for several waiters of a line.
#include "protocol/permits/permit_lock.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct party : engine_fixture {
  ~party() { locks.reset(); }
  lock_call want(std::uint8_t amount = 1, lock_options options = {}) {
    const lock_call asked;
    const detail::lock_request request{
        .owner = owner(), .amount = amount, .asked = detail::resolve_terms(settings, options)};
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
  gives(2, 0);
  CHECK(first.granted());
  CHECK(second.granted());
  CHECK(second.value()->of->field().amount() == 2);
  CHECK(third.waits());
  CHECK(order == std::vector<const void*>{alone.place().get(), first.place().get(), second.place().get()});
  CHECK(asked_for() == 1);
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

TEST_CASE_METHOD(party,
                 "the members of a party whose answer was lost ask again with the same fields, each for itself") {
  const auto alone = want(), first = want(), second = want();
  gives(1, 2);
  const auto asked = ids();
  REQUIRE(asked.size() == 2);
  fails(errc::unconfirmed);
  advance(1s);
  CHECK(ids() == std::vector<std::string>{asked[0]});
  gives(1, 1);
  CHECK(first.granted());
  CHECK(ids() == std::vector<std::string>{asked[1]});
  gives(1, 1);
  CHECK(second.granted());
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
