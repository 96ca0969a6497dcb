// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/error.hpp>
#include <cstddef>
#include <functional>
#include <vector>

#include "unit/sync/starving.hpp"

namespace holdfast::test {

/// One caller who wants several locks, any or all of them.
struct several_fixture : engine_fixture {
  using engine_fixture::engine_fixture;

  const owner alice, bob;

  // What holds for a call, whether it wants any or all.

  /// `unwritten` was asked while the link was down.
  template <class Call>
  void check_cancelled_without_release(const Call& unwritten) {
    unwritten.cancel();
    CHECK(unwritten.error() == boost::asio::error::operation_aborted);
    link_up();
    CHECK(sent("release") == 0);
    check_nothing_is_left();
  }
  /// `bounded` has 100 ms for two locks, and Redis does not answer it.
  template <class Call>
  void check_result_by_answers_to_others(const Call& bounded) {
    const auto other = lock("c");
    advance(50ms);
    SECTION("it has") {
      server.reply(1, replies::nil());
      advance(50ms);
      CHECK(bounded.refused());
    }
    SECTION("it has not") {
      advance(50ms);
      CHECK(bounded.failed_with(errc::unreachable));
      CHECK(heard() == "acquire_failed");
    }
    CHECK(sent("release") == 2);
  }
  /// The client drains, and the owner of `last` holds `held` alone.
  template <class Call>
  void check_drain_ends_with(const lock_call& held, const Call& last, const verb_call& drained) {
    CHECK(last.waits());
    unlock(held);
    while (in_flight() > 0) not_yours();
    CHECK(last.failed_with(errc::shutting_down));
    advance(0ns);
    CHECK(drained.succeeded());
    check_nothing_is_left();
  }
};

/// Lets each allocation fail of each step of a call for several locks: it asks, is granted, finds one busy, is not
/// answered, and is cancelled. `wait` brings it to where it waits. Checks that nothing is left behind; returns the runs
/// of each step.
template <class Fixture, class Call>
std::vector<std::size_t> starve_each_step(Call (*ask)(Fixture&), const redis::reply& granted, const redis::reply& busy,
                                          std::function<void(Fixture&, Call&)> wait) {
  using step = std::function<void(Fixture&, Call&)>;
  std::vector<std::size_t> runs;
  const auto starve_step = [&](const step& before, const step& act) {
    const auto prepare = [&](Fixture& fixture) {
      auto asked = ask(fixture);
      before(fixture, asked);
      return asked;
    };
    runs.push_back(starve<Fixture>(prepare, act, [](Fixture& fixture, const Call& asked) {
      fixture.play_all();
      fixture.advance(31s);  // what there was no memory to give back ends with its TTL, and a waiter has looked again
      fixture.unlock_all();
      fixture.advance(31s);  // nobody renews what is left
      CHECK(fixture.node.fields_of(fixture.uuid) == 0);
      CHECK_FALSE(asked.waits());
      check_it_ends(fixture);
    }));
  };
  const auto answered = [](const redis::reply& answer) -> step {
    return [answer](Fixture& fixture, Call&) { fixture.server.reply(fixture.server.open().front(), answer); };
  };
  const step nothing = [](Fixture&, Call&) {};
  const step unanswered = [](Fixture& fixture, Call&) {
    fixture.server.fail(fixture.server.open().front(), errc::unconfirmed);
  };
  const step run = [](Fixture& fixture, Call&) { fixture.run(); };
  const step cancel = [](Fixture&, Call& asked) { asked.cancel(); };
  const step ask_anew = [ask](Fixture& fixture, Call& asked) {
    asked.cancel();
    asked = ask(fixture);
  };
  starve_step(nothing, ask_anew);
  starve_step(answered(granted), run);
  starve_step(answered(busy), run);
  starve_step(unanswered, run);
  starve_step(nothing, cancel);
  starve_step(wait, cancel);
  return runs;
}

}  // namespace holdfast::test
