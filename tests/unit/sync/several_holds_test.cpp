// SPDX-License-Identifier: BSL-1.0
// A kind that lets one client have several holds of a name at once.
#include "unit/sync/engine_fixture.hpp"
#include "unit/sync/kind_of_several.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

const detail::kind& several() {
  static const auto row = kind_of_several();
  return row;
}
asking unbound() { return {{}, {}, &several()}; }
asking as(owner who) { return {who, {}, &several()}; }
asking want(std::uint8_t amount) { return {{}, {}, &several(), nullptr, amount}; }

struct several_holds : engine_fixture {
  explicit several_holds(config c = without_turns()) : engine_fixture(std::move(c)) {}
  /// The first of a line that has found the lock taken, and listens.
  lock_call waiter(asking wanted = unbound()) {
    auto waiting = lock("a", wanted);
    busy(30s);
    acknowledges("a");
    busy(30s);
    CHECK(waiting.waits());
    return waiting;
  }
};
struct several_turns : several_holds {
  several_turns() : several_holds(config()) {}
};

}  // namespace

TEST_CASE_METHOD(several_holds, "a client asks for a second hold while it has one, and each is released by itself") {
  const auto first = hold("a", unbound()), second = hold("a", unbound());
  CHECK(sent("acquire") == 2);
  const auto freed = unlock(first);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  CHECK(freed.succeeded());
  CHECK(state(second) == lease_state::held);
  unlock(second);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #2)");
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(several_holds, "an owner that holds gets another hold, whether it asks or waited meanwhile") {
  const owner task;
  const auto first = lock("a", as(task)), second = lock("a", as(task));
  grants();
  CHECK(first.granted());
  CHECK(second.waits());
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(second.granted());
  const auto third = hold("a", as(task));
  CHECK(third.value()->of != first.value()->of);
  CHECK(heard() == "acquired acquired acquired");
}

TEST_CASE_METHOD(several_holds, "a loss ends one hold of several") {
  const auto first = hold("a", unbound()), second = hold("a", unbound());
  advance(10s);
  answers(replies::integers({0, 1}));
  CHECK(state(first) == lease_state::lost);
  CHECK(state(second) == lease_state::held);
  unlock(first);
  unlock(second);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(several_holds, "a message leads to a question of the waiter and not to one about the own holds") {
  const auto mine = hold("a", unbound());
  const auto waiting = waiter();
  const auto before = sent("acquire");
  publishes("a");
  CHECK(sent("acquire") == before + 1);
  busy(30s);
  advance(50ms);
  CHECK(sent("renew") == 0);
  waiting.cancel();
}

TEST_CASE_METHOD(several_holds, "a force-unlock leads to a question about each hold") {
  const auto first = hold("a", unbound()), second = hold("a", unbound());
  force_unlock("a", several());
  answers(replies::integer(1));
  advance(1ms);
  CHECK(last_sent() == "renew(a, a; 30000, 30000, #1, #2)");
  confirms_nothing();
  CHECK(state(first) == lease_state::lost);
  CHECK(state(second) == lease_state::lost);
  CHECK(last_event().detail.find("force_unlock") != std::string::npos);
}

TEST_CASE_METHOD(several_holds, "a task that waits beside its own hold is no news, because others may release") {
  int coroutine = 0;
  asking by_this = unbound();
  by_this.coroutine = &coroutine;
  const auto mine = hold("a", by_this);
  heard();
  const auto waiting = waiter(by_this);
  CHECK(heard().empty());
  waiting.cancel();
}

TEST_CASE_METHOD(several_holds, "a drain lets an owner finish until the last of its holds has ended") {
  const owner task;
  const auto first = hold("a", as(task)), second = hold("a", as(task));
  bool drained = false;
  locks->drain(1h, [&] { drained = true; });
  unlock(first);
  frees();
  CHECK_FALSE(drained);
  const auto third = hold("a", as(task));
  unlock(second);
  frees();
  CHECK_FALSE(drained);
  unlock(third);
  frees();
  advance(1ms);
  CHECK(drained);
}

TEST_CASE_METHOD(several_holds, "a call for several locks takes another hold in its turn, though its owner has one") {
  const owner task;
  const auto mine = hold("b", as(task));
  const auto all = lock_all({"a", "b"}, as(task));
  CHECK(last_sent() == "acquire_all(a, b; 30000, #2, #3)");
  grants();
  CHECK(all.granted());
  CHECK(heard().find("lock_order_broken") == std::string::npos);
}

TEST_CASE_METHOD(several_holds, "a hold of several has one field with as many numbers") {
  const auto three = hold("a", want(3)), one = hold("a", want(1));
  CHECK(last_sent() == "acquire(a; 30000, #4)");
  CHECK(three.value()->of->field().amount() == 3);
  CHECK(one.value()->of->field().amount() == 1);
}

TEST_CASE_METHOD(several_holds, "a hold of several of which one is gone gives back the others, and is lost") {
  const std::uint8_t amount = GENERATE(1, 3);
  const auto mine = hold("a", want(amount));
  advance(10s);
  confirms_nothing();
  CHECK(state(mine) == lease_state::lost);
  CHECK(sent("release") == (amount == 3 ? 1 : 0));
}

TEST_CASE_METHOD(several_holds, "a script renews a hundred of them") {
  const auto first = hold("a", want(50)), second = hold("a", want(50)), third = hold("a", want(1));
  const auto before = server.count();
  advance(10s);
  CHECK(sent("renew") == 2);
  CHECK(server.sent(before).keys().size() == 2);
}

TEST_CASE_METHOD(several_turns, "a claim is passed to a waiter that wants as many, and to no other") {
  const std::uint8_t wanted = GENERATE(2, 3);
  const auto mine = lock("a", want(2));
  const auto waiting = lock("a", want(wanted));
  grants();
  busy(30s);
  acknowledges("a");
  busy(30s);
  unlock(mine);
  CHECK(waiting.granted() == (wanted == 2));
  CHECK(sent("release") == 1);  // of the claim, or of the field that nobody needs any more
}

TEST_CASE_METHOD(several_holds,
                 "a waiter that wants several and leaves gives back its field, and one that asks once does not") {
  const bool once = GENERATE(false, true);
  const auto waiting = once ? try_lock("a", want(2)) : try_lock_for("a", 1s, want(2));
  busy(30s);
  if (!once) {
    acknowledges("a");
    busy(30s);
    advance(500ms);  // it looks
    busy(30s);
    advance(500ms);
    CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
    not_yours();
  }
  CHECK(waiting.refused());
  CHECK(sent("release") == (once ? 0 : 1));
  check_nothing_is_left();
}

TEST_CASE_METHOD(several_turns, "a waiter that wants several and gets them by a hand-over gives back its own field") {
  const auto mine = lock("a", want(2));
  const auto waiting = lock("a", want(2));
  grants();
  busy(30s);
  acknowledges("a");
  busy(30s);
  unlock(mine);
  CHECK(waiting.granted());
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #3)");
  not_yours();
  unlock(waiting);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
}

TEST_CASE_METHOD(several_turns, "each hold is passed to the next waiter within a turn of its own") {
  const auto older = lock("a", unbound()), newer = lock("a", unbound());
  const auto second = lock("a", unbound()), third = lock("a", unbound());
  grants();
  advance(15ms);
  grants();
  CHECK(older.granted());
  CHECK(newer.granted());
  busy(30s);
  acknowledges("a");
  busy(30s);
  advance(4ms);
  heard();
  unlock(newer);
  CHECK(second.granted());
  CHECK(heard() == "passed acquired");
  advance(1ms);
  SECTION("the older one is released, because its turn is over") {
    unlock(older);
    CHECK(third.waits());
    CHECK(sent("release") == 1);
  }
  SECTION("the newer one goes on") {
    unlock(second);
    CHECK(third.granted());
    CHECK(sent("release") == 0);
  }
}

TEST_CASE_METHOD(several_turns, "the turn of a hold that was there before the first waiter began with its grant") {
  const auto since = GENERATE(1ms, 3ms);  // a turn without other waiters lasts 2 ms
  const auto mine = hold("a", unbound());
  advance(since);
  const auto waiting = waiter();
  unlock(mine);
  CHECK(waiting.granted() == (since == 1ms));
}
