// SPDX-License-Identifier: BSL-1.0
// A write hold that becomes a read hold: what its owner has before, meanwhile and afterwards. And what is given back
// where nobody knows whether it has become one.
#include <boost/asio/error.hpp>
#include <deque>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "protocol/shared/shared_lock.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
namespace asio = boost::asio;

namespace {

struct downgrading : engine_fixture {
  explicit downgrading(config c = without_turns()) : engine_fixture(std::move(c)) {}
  ~downgrading() { locks.reset(); }

  lock_call writes(std::optional<owner> who = {}, lock_options options = {}) {
    return lock("a", {who, options, &detail::shared_writer});
  }
  lock_call reads(std::optional<owner> who = {}) { return lock("a", {who, {}, &detail::shared_reader}); }
  lock_call written(std::optional<owner> who = {}, lock_options options = {}) {
    auto call = writes(who, options);
    answers(replies::integers({1}));
    REQUIRE(call.granted());
    heard();
    return call;
  }
  lock_call downgrade(const record_ptr& write, const detail::kind& of = detail::shared_reader, std::string name = "a") {
    const auto c = downgraded_.emplace_back();
    c.place(locks->downgrade(write, keys(name, of),
                             [c](detail::lock_answer&& answer) { c.answer(answer.failed, std::move(answer.value)); }));
    run();
    return c;
  }
  lock_call downgrade(const lock_call& write) { return downgrade(write.value()); }
  void done() { answers(replies::integer(1)); }
  void frees_writer() { answers(replies::integers({0, 0, 0})); }
  void frees_reader() { answers(replies::integers({1, 0})); }
  static const detail::kind& kind_of(const lock_call& call) { return call.value()->of->keys()->of; }
  /// The fields of both sides are given back, the writer's first.
  void check_gives_both_back() {
    CHECK(sent("write_release") == 1);
    CHECK(sent("read_release") == 1);
    not_yours();
    frees_reader();
    check_nothing_is_left();
  }

 private:
  std::deque<lock_call> downgraded_;  // the engine refers to live leases
};

}  // namespace

TEST_CASE_METHOD(downgrading,
                 "a downgrade ends the write lease, and gives a read lease with the same owner and terms") {
  const owner task;
  const auto write = written(task, {.ttl = 20s, .renew = true});
  const auto read = downgrade(write);
  CHECK(sent("downgrade") == 1);
  CHECK(read.waits());
  advance(10ms);
  done();
  REQUIRE(read.granted());
  CHECK(&kind_of(read) == &detail::shared_reader);
  CHECK(state(write) == lease_state::released);
  CHECK(state(read) == lease_state::held);
  CHECK(read.value()->owner == task);
  CHECK(read.value()->asked.ttl == 20s);
  CHECK(read.value()->of->field() == write.value()->of->field());
  CHECK(std::string_view(read.value()->of->id()) == std::string(write.value()->of->id()) + "/1");
  // It is valid from the time of the command.
  CHECK(read.value()->of->left() == 20s - 202ms - 10ms);
  CHECK(heard() == "released acquired");
  CHECK(last_event().lock_kind == "shared_mutex_reader");
  CHECK(unlock(write).failed_with(errc::not_held));
  const auto unlocked = unlock(read);
  CHECK(sent("read_release") == 1);
  CHECK(sent("write_release") == 0);
  frees_reader();
  CHECK(unlocked.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(downgrading,
                 "the watchdog renews the reader's field after a downgrade, and neither while it is under way") {
  const auto write = written();
  advance(10s - 1ms);
  const auto read = downgrade(write);
  advance(5ms);
  CHECK(sent("shared_renew") == 0);
  done();
  REQUIRE(read.granted());
  advance(10s - 6ms);
  CHECK(sent("shared_renew") == 0);
  advance(1ms);
  REQUIRE(sent("shared_renew") == 1);
  CHECK(unanswered().arguments() == std::vector<std::string>{"30000", uuid + ":1"});
}

TEST_CASE_METHOD(downgrading,
                 "a lease that is no sole write lease of the lock is not downgraded, and nothing is sent") {
  const owner task;
  SECTION("its hold has another lease") {
    const auto write = written(task), again = writes(task);
    answers(replies::integer(1));
    CHECK(downgrade(write).failed_with(errc::already_held));
    CHECK(state(write) == lease_state::held);
    unlock(again);
    answers(replies::integer(1));
    const auto read = downgrade(write);
    done();
    CHECK(read.granted());
  }
  SECTION("it is unlocked") {
    const auto write = written();
    unlock(write);
    CHECK(downgrade(write).failed_with(errc::not_held));
  }
  SECTION("it reads") {
    const auto read = reads();
    answers(replies::integers({1, 0, 0}));
    CHECK(downgrade(read).failed_with(errc::not_held));
    CHECK(state(read) == lease_state::held);
  }
  SECTION("it is of another lock, or of another client") {
    const auto write = written();
    CHECK(downgrade(write.value(), detail::shared_reader, "b").failed_with(errc::not_held));
    const lock_call none;
    locks->downgrade(write.value(), nullptr, [none](detail::lock_answer&& answer) { none.answer(answer.failed); });
    CHECK(none.failed_with(errc::not_held));
    CHECK(downgrade(hold("m").value()).failed_with(errc::not_held));
    CHECK(state(write) == lease_state::held);
  }
  SECTION("it is lost") {
    const auto write = written({}, {.ttl = 1s});
    clock.skip(1s);
    CHECK(downgrade(write).failed_with(errc::lost));
  }
  SECTION("its client is closed") {
    const auto write = written();
    close();
    CHECK(downgrade(write).failed_with(errc::closed));
  }
  CHECK(sent("downgrade") <= 1);
}

TEST_CASE_METHOD(downgrading,
                 "a nested call that comes during a downgrade gets no write lease, and is nested in the read hold") {
  const owner task;
  const auto write = written(task);
  const auto read = downgrade(write);
  const auto again = writes(task), nested = reads(task);
  CHECK(again.waits());
  done();
  REQUIRE(read.granted());
  CHECK(again.failed_with(errc::already_held));
  while (nested.waits()) answers(replies::integers({1}));
  REQUIRE(nested.granted());
  CHECK(nested.value()->of == read.value()->of);
}

TEST_CASE_METHOD(downgrading, "a nested call that comes during a downgrade goes before a writer of the same client") {
  const owner task;
  const auto write = written(task);
  const auto writer = writes();
  const auto read = downgrade(write);
  const auto again = writes(task), nested = reads(task);
  done();
  REQUIRE(read.granted());
  CHECK(again.failed_with(errc::already_held));
  REQUIRE(sent("shared_renew") == 1);
  answers(replies::integers({1}));
  REQUIRE(nested.granted());
  CHECK(nested.value()->of == read.value()->of);
  CHECK(writer.waits());
}

TEST_CASE_METHOD(downgrading, "a nested call before a downgrade is answered first, and the hold then has two leases") {
  const owner task;
  const auto write = written(task);
  // A longer TTL asks Redis.
  const auto again = writes(task, {.ttl = 40s, .renew = true});
  const auto read = downgrade(write);
  CHECK(sent("downgrade") == 0);
  answers(replies::integer(1));
  CHECK(again.granted());
  CHECK(read.failed_with(errc::already_held));
  CHECK(state(write) == lease_state::held);
}

TEST_CASE_METHOD(downgrading, "a waiter of this client asks Redis after a downgrade") {
  const auto write = written();
  const auto waits = reads();
  CHECK(sent("read_acquire") == 0);
  const auto read = downgrade(write);
  done();
  CHECK(sent("read_acquire") == 1);
  answers(replies::integers({1, 0, 0}));
  CHECK(waits.granted());
  CHECK(waits.value()->of != read.value()->of);
}

// ---- answers that are lost, and refusals

TEST_CASE_METHOD(downgrading, "a downgrade whose answer is lost is sent once more, and valid from then on") {
  const auto write = written();
  const auto read = downgrade(write);
  advance(20ms);
  fails(errc::unconfirmed);
  CHECK(sent("downgrade") == 2);
  CHECK(state(write) == lease_state::held);
  done();
  REQUIRE(read.granted());
  CHECK(read.value()->of->left() == 30s - 302ms);
}

TEST_CASE_METHOD(downgrading, "a downgrade without an answer loses the write lease, and both fields are given back") {
  const auto write = written();
  const auto read = downgrade(write);
  SECTION("no answer comes in time") {
    server.sent(server.open().front());
    advance(settings.command_timeout);
  }
  SECTION("two connections end") {
    fails(errc::unconfirmed);
    fails(errc::unconfirmed);
  }
  SECTION("the first may have run, and the second is refused") {
    fails(errc::unconfirmed);
    errs("NOPERM no script");
  }
  CHECK(read.failed_with(errc::unconfirmed));
  CHECK(state(write) == lease_state::lost);
  CHECK(heard().ends_with("lost"));
  CHECK(last_event().cause == loss_cause::unconfirmed);
  CHECK(unlock(write).failed_with(errc::lost));
  check_gives_both_back();
}

TEST_CASE_METHOD(downgrading, "a write lease whose validity ends during its downgrade learns of it at once") {
  const auto write = written({}, {.ttl = 10s});
  advance(9800ms);
  const auto read = downgrade(write);
  if (GENERATE(true, false)) server.sent(server.open().front());
  advance(write.value()->of->left() - 1ns);
  CHECK(heard().empty());
  advance(1ns);
  CHECK_FALSE(read.waits());
  CHECK(state(write) == lease_state::lost);
  CHECK(heard().ends_with("lost"));
}

TEST_CASE_METHOD(downgrading,
                 "a downgrade that Redis refuses has changed nothing, and the write hold is confirmed at once") {
  const auto write = written();
  const auto read = downgrade(write);
  errs("NOPERM no script");
  CHECK(read.failed_with(errc::no_permission));
  CHECK(state(write) == lease_state::held);
  advance(0ns);
  REQUIRE(sent("shared_renew") == 1);
  answers(replies::integers({1}));
  const auto again = downgrade(write);
  done();
  CHECK(again.granted());
}

TEST_CASE_METHOD(downgrading, "a downgrade that was never written has changed nothing") {
  link_down();
  link_up();
  const auto write = written();
  link_down();
  const auto read = downgrade(write);
  advance(settings.command_timeout);
  CHECK(read.failed_with(errc::unreachable));
  CHECK(state(write) != lease_state::lost);
  link_up();
  answers(replies::integers({1}));
  CHECK(state(write) == lease_state::held);
  unlock(write);
  frees_writer();
  check_nothing_is_left();
}

TEST_CASE_METHOD(downgrading, "a downgrade that finds the hold gone tells that it is lost") {
  const auto write = written();
  const auto read = downgrade(write);
  answers(replies::integer(0));
  CHECK(read.failed_with(errc::lost));
  CHECK(state(write) == lease_state::lost);
}

TEST_CASE_METHOD(downgrading,
                 "a downgrade that is confirmed too late loses the lease, and both fields are given back") {
  const auto write = written({}, {.ttl = 1s});
  advance(950ms);
  const auto read = downgrade(write);
  clock.skip(50ms);
  done();
  CHECK(read.failed_with(errc::lost));
  CHECK(unlock(write).failed_with(errc::lost));
  check_gives_both_back();
}

TEST_CASE("a downgrade counts when enough replicas have it") {
  auto wanting = without_turns();
  wanting.min_replicas = 1;
  downgrading d(wanting);
  const auto write = d.writes();
  d.answers(replies::integers({1}));
  d.server.replicas_have(1);
  d.run();
  const auto read = d.downgrade(write);
  d.done();
  CHECK(read.waits());
  SECTION("enough have it") {
    d.server.replicas_have(1);
    d.run();
    CHECK(read.granted());
  }
  SECTION("too few have it") {
    d.server.replicas_have(0);
    d.run();
    CHECK(read.failed_with(errc::not_replicated));
    CHECK(state(write) == lease_state::lost);
    d.unlock(write);
    d.check_gives_both_back();
  }
  SECTION("its caller leaves meanwhile") {
    read.cancel();
    CHECK(state(write) == lease_state::lost);
    d.unlock(write);
    d.server.replicas_have(1);
    d.run();
    d.check_gives_both_back();
  }
}

TEST_CASE("a count or a renewal behind a downgrade loses nothing while replicas are asked") {
  auto wanting = without_turns();
  wanting.min_replicas = 1;
  downgrading d(wanting);
  const owner task;
  const auto write = d.writes(task);
  d.answers(replies::integers({1}));
  d.server.replicas_have(1);
  d.run();
  REQUIRE(write.granted());
  const auto granted_with = [&](const lock_call& read) {
    CHECK(state(write) == lease_state::held);
    CHECK(d.in_flight() == 0);
    d.server.replicas_have(1);
    d.run();
    CHECK(read.granted());
  };
  SECTION("a count was under way when the downgrade began") {
    const auto again = d.writes(task);
    REQUIRE(again.granted());
    d.unlock(again);
    const auto read = d.downgrade(write);
    d.answers(replies::integer(1));
    CHECK(d.in_flight() == 1);
    d.done();
    granted_with(read);
  }
  SECTION("a renewal is asked for meanwhile") {
    const auto read = d.downgrade(write);
    const auto renewed = d.renew(write);
    CHECK(d.in_flight() == 1);
    d.done();
    CHECK(renewed.waits());
    granted_with(read);
    CHECK(renewed.failed_with(errc::not_held));
  }
  SECTION("the second copy of a renewal is sent behind the downgrade") {
    const auto renewed = d.renew(write);
    const auto read = d.downgrade(write);
    d.fails(errc::unconfirmed);
    d.done();
    d.answers(replies::integers({0}));
    CHECK(renewed.waits());
    granted_with(read);
    CHECK(renewed.failed_with(errc::not_held));
  }
}

TEST_CASE_METHOD(downgrading, "a renewal during a downgrade that Redis refuses has not raised the TTL") {
  const auto write = written();
  const auto read = downgrade(write);
  const auto renewed = renew(write);
  errs("NOPERM no script");
  CHECK(read.failed_with(errc::no_permission));
  CHECK(renewed.failed_with(errc::unreachable));
  CHECK(state(write) == lease_state::held);
}

TEST_CASE_METHOD(downgrading, "a downgrade is done although the end of the write lease finds no memory") {
  const auto write = written();
  locks->when_ended(write.value(), [](error_code) { throw std::bad_alloc(); });
  const auto read = downgrade(write);
  done();
  REQUIRE(read.granted());
  CHECK(state(write) == lease_state::released);
  unlock(read);
  frees_reader();
  check_nothing_is_left();
}

// ---- the caller leaves, or the lease does

TEST_CASE_METHOD(downgrading, "a cancelled downgrade that was not written leaves the write lease as it was") {
  const auto write = written();
  link_down();
  const auto read = downgrade(write);
  read.cancel();
  CHECK(read.failed_with(asio::error::operation_aborted));
  link_up();
  CHECK(sent("downgrade") == 1);
  answers(replies::integers({1}));
  CHECK(state(write) == lease_state::held);
  unlock(write);
  frees_writer();
  check_nothing_is_left();
}

TEST_CASE_METHOD(downgrading,
                 "a cancelled downgrade that was written loses the write lease, and gives both fields back") {
  const auto write = written();
  const auto read = downgrade(write);
  SECTION("at its first copy") {}
  SECTION("at its second copy, which was not written") { link_down(); }
  read.cancel();
  CHECK(read.failed_with(asio::error::operation_aborted));
  CHECK(state(write) == lease_state::lost);
  CHECK(unlock(write).failed_with(errc::lost));
  link_up();
  if (sent("downgrade") == 1) done();
  check_gives_both_back();
}

TEST_CASE_METHOD(downgrading, "a cancelled downgrade that waits for its turn sends nothing") {
  const owner task;
  const auto write = written(task), again = writes(task, {.ttl = 40s, .renew = true});
  const auto read = downgrade(write);
  read.cancel();
  CHECK(read.failed_with(asio::error::operation_aborted));
  answers(replies::integer(1));
  CHECK(again.granted());
  CHECK(sent("downgrade") == 0);
  CHECK(state(write) == lease_state::held);
}

TEST_CASE_METHOD(downgrading, "a lease that is unlocked during its downgrade is lost, and both fields are given back") {
  const auto write = written();
  const auto read = downgrade(write);
  const auto unlocked = unlock(write);
  CHECK(unlocked.waits());
  done();
  CHECK(read.failed_with(errc::not_held));
  CHECK(unlocked.failed_with(errc::lost));
  check_gives_both_back();
}

TEST_CASE_METHOD(downgrading, "a client that closes during a downgrade gives both fields back") {
  const auto write = written();
  const auto read = downgrade(write);
  const auto closed = close();
  CHECK(read.failed_with(errc::closed));
  CHECK(sent("write_release") == 1);
  CHECK(sent("read_release") == 1);
  done();
  not_yours();
  CHECK(closed.waits());
  frees_reader();
  CHECK(closed.succeeded());
  unlock(write);
}

TEST_CASE_METHOD(downgrading, "an engine that ends during a downgrade answers nobody") {
  const auto write = written();
  const auto read = downgrade(write);
  locks.reset();
  CHECK(read.waits());
}

TEST_CASE_METHOD(downgrading, "a draining client lets its owner downgrade, and waits for the read lease") {
  const auto write = written();
  verb_call drained;
  locks->drain(10s, [drained] { drained.answer({}); });
  run();
  const auto read = downgrade(write);
  done();
  advance(0ns);
  REQUIRE(read.granted());
  CHECK(drained.waits());
  unlock(read);
  frees_reader();
  advance(0ns);
  CHECK(drained.succeeded());
}
