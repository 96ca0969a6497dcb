// SPDX-License-Identifier: BSL-1.0
// How soon an election has its next leader: after a kill, and after a resignation. And how soon observers know.
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "integration/world.hpp"
#include "support/fork.hpp"

using namespace holdfast;
using namespace holdfast::test;
using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

namespace {

using leader_now = std::optional<leader_info>;

constexpr auto ttl = 500ms;
constexpr long long generous = 3'000'000;  // µs, on a machine that is busy with other things

long long since(steady_clock::time_point begin) {
  return duration_cast<microseconds>(steady_clock::now() - begin).count();
}

struct hand_over_world : world {
  client candidate = make(be_woken), observer = make(be_woken);

  static void be_woken(config& c) { c.poll_cap = 60s; }
  static election of(const client& by) { return by.election("chief"); }
  bool has_candidate() { return eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{chief}").array()[1] == 1; }
  bool is_observed() { return eye("PUBSUB", "NUMSUB", "holdfast_election:{chief}").array()[1] == 1; }
};

}  // namespace

TEST_CASE_METHOD(hand_over_world, "a leader that is killed is followed at the end of its TTL, which observers see") {
  auto settings_of_other = settings();
  settings_of_other.ttl = ttl;
  settings_of_other.observer = nullptr;
  forked leader([&] {
    asio::io_context own;
    const client redis(own.get_executor(), settings_of_other);
    const auto lead = test::run(own, redis.election("chief").campaign("one"));
    for (;;) own.run_one_for(1s);
    return lead.held();
  });
  leader_now known;
  until([&] { return (known = run(of(observer).leader())).has_value(); });
  started<lease> next(*this, of(candidate).campaign("two"));
  until([&] { return has_candidate(); });
  leader.kill();
  const milliseconds left(eye("PTTL", "chief").integer());
  const auto killed = steady_clock::now();
  started<leader_now> observing(*this, of(observer).next(known));
  until([&] { return next.succeeded(); });
  const auto beyond_the_ttl = since(killed) - microseconds(left).count();
  CHECK(beyond_the_ttl < generous);
  CHECK(next.answer->value().token().value() > known->term);
  until([&] { return observing.succeeded(); });
  const auto observed_after = since(killed) - microseconds(left).count();
  CHECK(observed_after < generous);
}

TEST_CASE_METHOD(hand_over_world, "a leader that resigns is followed within a message, and so is its value") {
  auto lead = run(of(observer).campaign("one"));
  for (int round = 0; round < 5; ++round) {
    started<lease> next(*this, of(candidate).campaign("two"));
    started<leader_now> observing(*this, of(observer).next(run(of(observer).leader())));
    until([&] { return has_candidate() && is_observed(); });
    const auto resigned = steady_clock::now();
    started<void> unlocked(*this, lead.unlock());
    until([&] { return next.succeeded(); });
    const auto elected_after = since(resigned);
    CHECK(elected_after < generous);
    until([&] { return observing.succeeded() && unlocked.succeeded(); });
    const auto observed_after = since(resigned);
    CHECK(observed_after < generous);
    auto two = std::move(next.answer->value());
    started<leader_now> changing(*this, of(observer).next(run(of(observer).leader())));
    until([&] { return is_observed(); });
    const auto proclaimed = steady_clock::now();
    started<void> told(*this, of(candidate).proclaim(two, "two, ready"));
    until([&] { return changing.succeeded() && told.succeeded(); });
    const auto told_after = since(proclaimed);
    CHECK(told_after < generous);
    run(two.unlock());
    lead = run(of(observer).campaign("one"));
  }
}

TEST_CASE_METHOD(hand_over_world,
                 "a worker that is a candidate leads in each run, and is cancelled when it is deposed") {
  auto brief = make([](config& c) { c.ttl = 300ms; });
  std::vector<std::uint64_t> terms;
  bool again = false;
  auto body = [&](lease& lead) -> asio::awaitable<void> {
    terms.push_back(lead.token().value());
    if (again) co_return;
    asio::steady_timer never(co_await asio::this_coro::executor, 1h);
    co_await never.async_wait(asio::use_awaitable);
  };
  started<void> worker(*this, keep_running(of(brief).candidate("worker"), body,
                                           {.restart = restart_policy::on_failure, .first_backoff = 10ms}));
  until([&] { return terms.size() == 1; });
  const auto seen = run(of(observer).leader());
  REQUIRE(seen);
  CHECK(seen->value == "worker");
  CHECK(seen->term == terms.front());
  again = true;
  CHECK(run(of(observer).force_unlock()));
  until([&] { return worker.succeeded(); });
  CHECK(terms.size() == 2);
  CHECK(terms.back() > terms.front());
}
