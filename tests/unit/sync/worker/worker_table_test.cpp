// SPDX-License-Identifier: BSL-1.0
// The workers of an engine: their pauses, and the observer's count of their states.
#include "sync/worker/worker_table.hpp"

#include <string>
#include <utility>

#include "base/cancelled.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using detail::counted_worker;
using detail::counted_worker_ptr;

namespace {

/// "+waiting m" for a worker that has entered a state, "-waiting m" for one that has left it, "returned m" for a run.
struct state_journal final : observer {
  void measured(const measurement& m) noexcept override {
    using kind = measurement_kind;
    if (m.kind == kind::worker_run_ended) return note("", to_string(m.outcome), m.name);
    if (m.kind == kind::worker_entered) note("+", to_string(m.state), m.name);
    if (m.kind == kind::worker_left) note("-", to_string(m.state), m.name);
  }
  void note(std::string_view sign, std::string_view state, std::string_view name) {
    text += (text.empty() ? "" : ", ") + std::string(sign) + std::string(state) + " " + std::string(name);
  }
  std::string take() { return std::exchange(text, {}); }
  std::string text;
};

struct workers_of_engine : engine_fixture {
  workers_of_engine() { settings.observer = journal; }

  verb_call pause(nanoseconds shortest, nanoseconds longest) {
    verb_call call;
    place = locks->workers().pause(shortest, longest,
                                   [call](const std::optional<detail::failure>& failed) { call.answer(failed); });
    return call;
  }
  void move(std::uint64_t number, worker_state to, const std::string& name = "m") {
    locks->workers().move(worker, {.number = number, .to = to, .name = name});
  }

  const std::shared_ptr<state_journal> journal = std::make_shared<state_journal>();
  counted_worker_ptr worker = std::make_shared<counted_worker>(counted_worker{.lock_kind = "mutex"});
  detail::cancellable_ptr place;
};

}  // namespace

TEST_CASE_METHOD(workers_of_engine, "a pause ends between its shortest and its longest time") {
  const auto exact = pause(5s, 5s);
  advance(5s - 1ns);
  CHECK_FALSE(exact.succeeded());
  advance(1ns);
  CHECK(exact.succeeded());
  for (int n = 0; n < 50; ++n) {
    const auto drawn = pause(1s, 2s);
    advance(1s - 1ns);
    CHECK_FALSE(drawn.succeeded());
    advance(1s + 1ns);
    CHECK(drawn.succeeded());
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(workers_of_engine, "a cancelled pause ends once and at once") {
  const auto first = pause(5s, 5s), second = pause(6s, 6s);
  place->cancel();
  CHECK(second.failed_with(detail::cancelled()));
  CHECK(first.waits());
  place->cancel();
  advance(5s);
  CHECK(first.succeeded());
}

TEST_CASE_METHOD(workers_of_engine, "a drain ends each pause and refuses others, though the client stays open") {
  const auto held = hold("m", by(owner()));
  const auto one = pause(1h, 1h), two = pause(2h, 2h);
  locks->drain(1h, [] {});
  CHECK(one.failed_with(errc::shutting_down));
  CHECK(two.failed_with(errc::shutting_down));
  CHECK_FALSE(locks->closed());
  CHECK(pause(1s, 1s).failed_with(errc::shutting_down));
}

TEST_CASE_METHOD(workers_of_engine, "an observer is told of each state that a worker enters and leaves") {
  move(1, worker_state::waiting, "");
  move(2, worker_state::running);
  locks->workers().run_ended(*worker, "m", run_outcome::returned);
  move(3, worker_state::pausing);
  CHECK(journal->take() == "+waiting , -waiting , +running m, returned m, -running m, +pausing m");
  move(4, worker_state::stopped);
  CHECK(journal->take() == "-pausing m");
}

TEST_CASE_METHOD(workers_of_engine, "a move that a later one has overtaken counts for nothing") {
  move(2, worker_state::running);
  move(1, worker_state::waiting);
  CHECK(journal->take() == "+running m");
  move(4, worker_state::stopped);
  move(3, worker_state::pausing);
  CHECK(journal->take() == "-running m");
}

TEST_CASE_METHOD(workers_of_engine, "the end of the client is the end of each worker's state, once") {
  move(1, worker_state::running);
  CHECK(journal->take() == "+running m");
  close();
  CHECK(journal->take() == "-running m");
  move(2, worker_state::stopped);
  CHECK(journal->take().empty());
}
