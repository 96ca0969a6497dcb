// SPDX-License-Identifier: BSL-1.0
// Readers and writers of one name: which hold bars which caller, which callers share a hold, and who owns the leases of
// a shared one.
#include "unit/sync/engine_fixture.hpp"
#include "unit/sync/kind_of_readers.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

asking to_read(std::optional<owner> who = {}, lock_options options = {}) {
  return {who, options, &rows_of_readers().reader};
}
asking to_write(std::optional<owner> who = {}, lock_options options = {}) {
  return {who, options, &rows_of_readers().writer};
}

struct readers : engine_fixture {
  explicit readers(config c = without_turns()) : engine_fixture(std::move(c)) {}
  void lets_in(long long writers = 0, long long peers = 0) { answers(replies::integers({1, writers, peers})); }
  void keeps_out(milliseconds ttl = 30s) { answers(replies::integers({0, ttl.count()})); }
  lock_call granted(asking wanted, long long writers = 0) {
    auto call = lock("a", wanted);
    lets_in(writers);
    REQUIRE(call.granted());
    return call;
  }
  /// The first of a line that has found the lock taken, and listens.
  lock_call parked(asking wanted) {
    auto waiting = lock("a", wanted);
    keeps_out();
    acknowledges("a");
    keeps_out();
    REQUIRE(waiting.waits());
    return waiting;
  }
  static const detail::hold& hold_of(const lock_call& call) { return *call.value()->of; }
};
struct readers_in_turns : readers {
  readers_in_turns() : readers(config()) {}
};

}  // namespace

// ---- who waits for whom

TEST_CASE_METHOD(readers, "a read hold bars no reader of its client, and a writer asks beside it") {
  const auto first = granted(to_read(), 1);
  const auto second = granted(to_read());
  CHECK(&hold_of(first) != &hold_of(second));
  const auto writes = lock("a", to_write());
  CHECK(sent("acquire") == 3);
  keeps_out();
  acknowledges("a");
  keeps_out();
  unlock(first);
  frees();
  CHECK(last_sent() == "acquire(a; 30000, #3)");
  keeps_out();
  unlock(second);
  frees();
  lets_in();
  CHECK(writes.granted());
}

TEST_CASE_METHOD(readers, "a write hold bars readers and writers of its client") {
  const auto writes = granted(to_write());
  const auto waiting = lock("a", to_read()), behind = lock("a", to_write());
  CHECK(sent("acquire") == 1);
  unlock(writes);
  frees();
  CHECK(sent("acquire") == 2);
  lets_in();
  CHECK(waiting.granted());
  CHECK(behind.waits());
}

TEST_CASE_METHOD(readers, "readers and writers of a client wait in one line, and are served in its order") {
  const auto first = granted(to_write());
  const auto reads = lock("a", to_read()), writes = lock("a", to_write()), late = lock("a", to_read());
  unlock(first);
  frees();
  lets_in();
  CHECK(reads.granted());
  CHECK(writes.waits());
  keeps_out();
  acknowledges("a");
  keeps_out();
  unlock(reads);
  frees();
  lets_in();
  CHECK(writes.granted());
  CHECK(late.waits());
  unlock(writes);
  frees();
  lets_in();
  CHECK(late.granted());
}

TEST_CASE_METHOD(readers_in_turns, "a writer's claim passes to the next writer, and neither to nor from a reader") {
  const bool first_writes = GENERATE(true, false), next_writes = GENERATE(true, false);
  const auto first = lock("a", first_writes ? to_write() : to_read());
  // A reader that may not join the first one has to wait for a claim, too.
  const auto terms = first_writes ? lock_options{} : lock_options{.ttl = 20s};
  const auto next = lock("a", next_writes ? to_write() : to_read({}, terms));
  lets_in();
  REQUIRE(first.granted());
  REQUIRE(next.waits());
  if (!first_writes) {
    keeps_out();
    acknowledges("a");
    keeps_out();
  }
  unlock(first);
  CHECK(sent("release") == (first_writes && next_writes ? 0 : 1));
  CHECK(next.granted() == (first_writes && next_writes));
}

TEST_CASE_METHOD(readers, "a field that a reader gives back is released by the reader's script") {
  static const auto row = [] {
    auto reader = rows_of_readers().reader;
    reader.release = detail::simple_lock.release;
    return reader;
  }();
  const auto holds = granted(to_write());
  const asking leaves{{}, {}, &row};
  const auto waiting = lock("a", leaves);
  unlock(holds);
  frees();
  waiting.cancel();
  CHECK(last_sent().starts_with("simple_release("));
}

// ---- an owner that holds already

TEST_CASE_METHOD(readers, "an owner that writes may read and write again, with leases of the write hold") {
  const owner task;
  const auto writes = granted(to_write(task));
  const auto reads = lock("a", to_read(task)), again = lock("a", to_write(task));
  CHECK(reads.granted());
  CHECK(again.granted());
  CHECK(&hold_of(reads) == &hold_of(writes));
  CHECK(&hold_of(again) == &hold_of(writes));
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
}

TEST_CASE_METHOD(readers, "an owner that reads may read again, though a writer waits, and sends nothing") {
  const owner task;
  const auto reads = granted(to_read(task), 1);
  const auto writes = parked(to_write());
  const auto before = server.count();
  const auto again = lock("a", to_read(task));
  CHECK(again.granted());
  CHECK(server.count() == before);
  CHECK(writes.waits());
  unlock(reads);
  unlock(again);
  CHECK(sent("release") == 1);
}

TEST_CASE_METHOD(readers, "an owner that reads gets already_held at once when it asks to write") {
  const owner task;
  const auto reads = granted(to_read(task));
  const auto before = server.count();
  const auto writes = lock("a", to_write(task));
  CHECK(writes.failed_with(errc::already_held));
  CHECK(writes.detail().find("upgrade") != std::string::npos);
  CHECK(server.count() == before);
  unlock(reads);
  frees();
  granted(to_write(task));
}

TEST_CASE_METHOD(readers, "a writer that waits gets already_held when its owner is let in to read") {
  const owner task;
  const auto other = granted(to_write());
  const auto reads = lock("a", to_read(task)), writes = lock("a", to_write(task));
  unlock(other);
  frees();
  lets_in();
  CHECK(reads.granted());
  CHECK(writes.failed_with(errc::already_held));
}

TEST_CASE_METHOD(readers, "a nested read that asks for more than its hold has is confirmed by a renewal") {
  const owner task;
  const auto reads = granted(to_read(task));
  const auto longer = lock("a", to_read(task, {.ttl = 60s, .renew = true}));
  CHECK(longer.waits());
  CHECK(last_sent() == "renew(a; 60000, #1)");
  SECTION("confirmed") {
    confirms();
    CHECK(longer.granted());
    CHECK(&hold_of(longer) == &hold_of(reads));
    unlock(reads);
    unlock(longer);
    CHECK(sent("release") == 1);
  }
  SECTION("the hold is gone") {
    confirms_nothing();
    CHECK(longer.failed_with(errc::lost));
    CHECK(state(reads) == lease_state::lost);
    CHECK(sent("release") == 0);
  }
  SECTION("the key is also of another kind, so the field is released") {
    heard();
    answers(replies::integers({-1}));
    CHECK(longer.failed_with(errc::lost));
    REQUIRE(heard() == "lost acquire_failed");
    CHECK(events->all.at(events->all.size() - 2).cause == loss_cause::corrupt);
    CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  }
}

TEST_CASE_METHOD(readers, "a nested read that a drain refuses after its hold is lost is an event of the reader") {
  const owner task;
  const auto other = granted(to_write());
  const auto reads = lock("a", to_read(task));
  unlock(other);
  frees();
  lets_in();
  const auto beside = hold("b");
  const auto longer = lock("a", to_read(task, {.ttl = 60s, .renew = true}));
  locks->drain(1h, [] {});
  unlock(reads);
  confirms_nothing();
  REQUIRE(longer.failed_with(errc::shutting_down));
  const auto refused = std::find_if(events->all.begin(), events->all.end(),
                                    [](const auto& event) { return event.what == kind::acquire_cancelled; });
  REQUIRE(refused != events->all.end());
  CHECK(refused->lock_kind == "reader");
}

// ---- readers that share a hold

TEST_CASE_METHOD(readers, "readers of several owners join a young hold without a command") {
  const owner alice, bob;
  const auto first = granted(to_read(alice));
  heard();
  advance(5ms);
  const auto second = lock("a", to_read(bob)), third = lock("a", to_read());
  CHECK(second.granted());
  CHECK(third.granted());
  CHECK(heard() == "reentered reentered");
  CHECK(server.count() == 1);
  CHECK(second.value()->owner == bob);
  CHECK(first.value()->owner == alice);
  CHECK(&hold_of(second) == &hold_of(first));
  CHECK(&hold_of(third) == &hold_of(first));
}

TEST_CASE_METHOD(readers, "only the unlock of the last lease releases a shared hold") {
  const auto first = granted(to_read());
  const auto second = lock("a", to_read());
  const auto freed = unlock(first);
  CHECK(freed.succeeded());
  CHECK(server.count() == 1);
  CHECK(state(second) == lease_state::held);
  const auto last = unlock(second);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  CHECK(last.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers, "the last unlock of a shared hold may be called inside the answer to another one") {
  const auto first = granted(to_read());
  const auto second = lock("a", to_read());
  std::optional<verb_call> last;
  locks->unlock(first.value(), [&](const std::optional<detail::failure>&) { last = unlock(second); });
  REQUIRE(last);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  CHECK(last->succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers, "a shared hold is lost for all its owners together") {
  const auto first = granted(to_read()), second = lock("a", to_read());
  advance(10s);
  confirms_nothing();
  CHECK(state(first) == lease_state::lost);
  CHECK(state(second) == lease_state::lost);
  CHECK(unlock(first).failed_with(errc::lost));
  CHECK(unlock(second).failed_with(errc::lost));
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers, "a hold is joined for 5 ms, and not where the grant met somebody who waits") {
  const long long writers = GENERATE(0, 1), peers = GENERATE(0, 1);
  const auto first = lock("a", to_read());
  lets_in(writers, peers);
  REQUIRE(first.granted());
  if (writers + peers == 0) advance(5ms + 1ns);
  const auto second = lock("a", to_read());
  CHECK(second.waits());
  CHECK(sent("acquire") == 2);
  lets_in();
  CHECK(&hold_of(first) != &hold_of(second));
}

TEST_CASE_METHOD(readers, "nobody joins while a writer stands in the line") {
  const auto first = granted(to_read());
  const auto writes = lock("a", to_write());
  const auto second = lock("a", to_read());
  CHECK(second.waits());
  keeps_out();
  writes.cancel();
  CHECK(second.waits());
  CHECK(last_sent() == "acquire(a; 30000, #3)");
}

TEST_CASE_METHOD(readers, "a reader with an end of its own takes a hold of its own, and nobody joins that") {
  const auto options = GENERATE(as<lock_options>(), lock_options{.ttl = 1s}, lock_options{.max_hold = 1min});
  const bool own_first = GENERATE(true, false);
  const auto first = granted(to_read({}, own_first ? options : lock_options{}));
  const auto second = lock("a", to_read({}, own_first ? lock_options{} : options));
  CHECK(second.waits());
  lets_in();
  CHECK(second.granted());
  CHECK(&hold_of(first) != &hold_of(second));
}

TEST_CASE_METHOD(readers, "a reader that wants more than a hold has does not join it") {
  const auto options =
      GENERATE(as<lock_options>(), lock_options{.ttl = 60s, .renew = true}, lock_options{.min_replicas = 1});
  const auto first = granted(to_read());
  const auto second = lock("a", to_read({}, options));
  CHECK(second.waits());
  CHECK(sent("acquire") == 2);
}

TEST_CASE_METHOD(readers,
                 "a hold that is not confirmed any more, or whose last lease is being unlocked, is not joined") {
  const auto first = granted(to_read());
  SECTION("in doubt") {
    force_unlock("a", rows_of_readers().reader);
    answers(replies::integer(1));
  }
  SECTION("released") { unlock(first); }
  const auto second = lock("a", to_read());
  CHECK(second.waits());
}

TEST_CASE_METHOD(readers, "a grant brings the readers right behind it, up to the first writer") {
  const auto writes = granted(to_write());
  const auto first = lock("a", to_read()), second = lock("a", to_read()), third = lock("a", to_read());
  const auto next = lock("a", to_write());
  const auto late = lock("a", to_read());
  unlock(writes);
  frees();
  heard();
  lets_in(2);
  CHECK(heard() == "acquired reentered reentered");
  for (const auto& reader : {second, third}) CHECK(&hold_of(reader) == &hold_of(first));
  CHECK(next.waits());
  CHECK(late.waits());
  CHECK(sent("acquire") == 3);
}

TEST_CASE_METHOD(readers, "a waiter with an end of its own ends the row of those that a grant brings") {
  const auto writes = granted(to_write());
  const auto first = lock("a", to_read()), own = lock("a", to_read({}, {.ttl = 1s})), third = lock("a", to_read());
  unlock(writes);
  frees();
  lets_in();
  CHECK(first.granted());
  CHECK(own.waits());
  CHECK(third.waits());
  lets_in();
  CHECK(own.granted());
  CHECK(third.waits());
  lets_in();
  CHECK(&hold_of(third) != &hold_of(own));
}

TEST_CASE_METHOD(readers, "a call behind a writer is nested in the hold that its owner has joined with a grant") {
  const owner bob;
  const auto writes = granted(to_write());
  const auto first = lock("a", to_read()), joins = lock("a", to_read(bob));
  const auto between = lock("a", to_write());
  const bool again_writes = GENERATE(true, false);
  const auto again = lock("a", again_writes ? to_write(bob) : to_read(bob));
  unlock(writes);
  frees();
  heard();
  lets_in();
  CHECK(between.waits());
  keeps_out();
  if (again_writes) {
    CHECK(again.failed_with(errc::already_held));
    CHECK(heard() == "acquired reentered acquire_failed");
    return;
  }
  CHECK(last_sent() == "renew(a; 30000, #2)");
  confirms();
  CHECK(heard() == "acquired reentered reentered");
  REQUIRE(again.granted());
  CHECK(&hold_of(again) == &hold_of(first));
  unlock(first);
  unlock(joins);
  CHECK(sent("release") == 1);
  unlock(again);
  CHECK(sent("release") == 2);
}

TEST_CASE_METHOD(readers, "a hold is renewed while one of its owners wants it, with the longest TTL") {
  const auto first = granted(to_read({}, {.ttl = 60s, .renew = true}));
  const auto second = lock("a", to_read());
  REQUIRE(second.granted());
  unlock(first);
  advance(20s);
  CHECK(last_sent().starts_with("renew(a; "));
  confirms();
  CHECK(state(second) == lease_state::held);
}

TEST_CASE_METHOD(readers, "a count asks for the leases of one owner of a shared hold") {
  const owner alice, bob;
  const auto first = granted(to_read(alice)), second = lock("a", to_read(alice)), third = lock("a", to_read(bob));
  REQUIRE(third.granted());
  unsigned count = 0;
  locks->hold_count(keys("a", rows_of_readers().reader), alice,
                    [&](detail::answer<unsigned>&& counted) { count = counted.value; });
  answers(replies::string("1"));
  CHECK(count == 2);
}

TEST_CASE_METHOD(readers, "a hold counts for its own side alone") {
  const owner task;
  const bool writes = GENERATE(true, false);
  const auto held = granted(writes ? to_write(task) : to_read(task));
  const auto count = [&](const detail::kind& side) {
    std::optional<unsigned> counted;
    locks->hold_count(keys("a", side), task, [&](detail::answer<unsigned>&& count) { counted = count.value; });
    if (!counted) answers(replies::string("1"));
    return counted;
  };
  CHECK(count(rows_of_readers().writer) == (writes ? 1U : 0U));
  CHECK(count(rows_of_readers().reader) == (writes ? 0U : 1U));
}

// ---- a drain

TEST_CASE_METHOD(readers, "a drain lets each owner of a shared hold finish for itself") {
  const owner alice, bob, carol;
  const auto first = granted(to_read(alice)), second = lock("a", to_read(bob));
  bool drained = false;
  locks->drain(1h, [&] { drained = true; });
  CHECK(lock("a", to_read(carol)).failed_with(errc::shutting_down));
  unlock(first);
  CHECK(lock("b", by(alice)).failed_with(errc::shutting_down));
  const auto inner = hold("b", by(bob)), nested = lock("a", to_read(bob));
  REQUIRE(nested.granted());
  unlock(second);
  unlock(nested);
  frees();
  CHECK_FALSE(drained);
  unlock(inner);
  frees();
  advance(1ms);
  CHECK(drained);
}

TEST_CASE_METHOD(readers, "a drain ends when a shared hold is lost") {
  const owner alice, bob;
  const auto first = granted(to_read(alice)), second = lock("a", to_read(bob));
  REQUIRE(second.granted());
  bool drained = false;
  locks->drain(1h, [&] { drained = true; });
  advance(10s);
  confirms_nothing();
  CHECK(lock("b", by(bob)).failed_with(errc::shutting_down));
  advance(1ms);
  CHECK(drained);
}

TEST_CASE_METHOD(readers, "an owner may join a young hold in a drain, and counts for it") {
  const owner alice, bob;
  const auto first = granted(to_read(alice));
  const auto other = hold("b", by(bob));
  bool drained = false;
  locks->drain(1h, [&] { drained = true; });
  const auto joined = lock("a", to_read(bob));
  REQUIRE(joined.granted());
  unlock(other);
  frees();
  unlock(first);
  CHECK_FALSE(drained);
  CHECK(lock("a", to_read(bob)).granted());
}

// ---- a task that waits for itself

TEST_CASE_METHOD(readers, "a task that writes beside its own read hold without an owner is reported") {
  int coroutine = 0;
  auto reads = to_read(), writes = to_write();
  reads.coroutine = writes.coroutine = &coroutine;
  const auto first = granted(reads);
  heard();
  const auto waiting = lock("a", writes);
  CHECK(heard() == "waiting_for_ourselves");
  waiting.cancel();
}

TEST_CASE_METHOD(readers,
                 "a task that writes beside an older read hold of its own, or one that it has joined, is reported") {
  const int one = 0, other = 0;
  auto reads = to_read(), by_other = to_read(), writes = to_write();
  reads.coroutine = writes.coroutine = &one;
  by_other.coroutine = &other;
  SECTION("an older hold") {
    granted(reads);
    advance(6ms);
    granted(by_other);
  }
  SECTION("a joined hold") {
    granted(by_other);
    REQUIRE(lock("a", reads).granted());
  }
  SECTION("a joined hold, from behind the first") {
    const auto first = lock("a", by_other), behind = lock("a", reads);
    lets_in();
    REQUIRE(behind.granted());
  }
  heard();
  const auto waiting = lock("a", writes);
  CHECK(heard() == "waiting_for_ourselves");
  waiting.cancel();
}

TEST_CASE_METHOD(readers, "a writer that waits for read holds of other tasks is not reported") {
  const int one = 0, other = 0;
  auto reads = to_read(), joins = to_read(), bound = to_read(owner()), writes = to_write();
  reads.coroutine = joins.coroutine = &other;
  bound.coroutine = writes.coroutine = &one;
  const auto first = granted(reads);
  REQUIRE(lock("a", joins).granted());
  REQUIRE(lock("a", bound).granted());
  heard();
  const auto waiting = lock("a", writes);
  CHECK(heard().empty());
  keeps_out();
  waiting.cancel();
  // One of several leases is of a task that nobody knows.
  joins.coroutine = nullptr;
  advance(6ms);
  granted(joins);
  heard();
  const auto again = lock("a", writes);
  CHECK(heard() == "perhaps_waiting_for_ourselves");
}
