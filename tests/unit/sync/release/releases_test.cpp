// SPDX-License-Identifier: BSL-1.0
#include "sync/release/releases.hpp"

#include "support/seeded_random.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// Releases alone; the answers are those of the engine's fixture, whose engine is not used.
struct fixture : engine_fixture, detail::release_host {
  detail::environment around{clock, timers, server, random, settings};
  const detail::uuid client{0, 0};
  const detail::owner_field field{client, 1};
  int begun = 0, ended = 0;
  std::optional<detail::releases> under_test{std::in_place, around};

  verb_call release(nanoseconds valid_for = 30s, milliseconds ttl = 30s) {
    verb_call c;
    under_test->release(*this, keys("a"), field, ttl, clock.now(), clock.now() + valid_for,
                        clock.now() + detail::command_budget(settings, ttl), detail::only(0),
                        [c](const auto& failed) { c.answer(failed); });
    return c;
  }
  void in_background(milliseconds ttl = 30s) { under_test->release_in_background(*this, keys("a"), field, ttl); }

 private:
  void release_begins() override { ++begun; }
  detail::departure departs(const detail::lock_keys&, bool) override { return {}; }
  bool keeps_place(const detail::lock_keys&) const override { return false; }
  void release_ends(const release_end&) override { ++ended; }
};

}  // namespace

TEST_CASE_METHOD(fixture, "a release is one command that says 0") {
  const auto r = release();
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  CHECK_FALSE(under_test->idle());
  frees();
  CHECK(r.succeeded());
  CHECK(begun == 1);
  CHECK(ended == 1);
  CHECK(under_test->idle());
  CHECK(timers.idle());
  CHECK(heard().empty());  // who waits for it tells of it
}

TEST_CASE_METHOD(fixture, "a release whose message is refused has released, and the observer is told once") {
  for (int times = 0; times < 2; ++times) {
    const auto r = release();
    answers(replies::string("ERR ACL failure in script: User app has no permissions to run the 'publish' command"));
    CHECK(r.succeeded());
  }
  CHECK(under_test->idle());
  REQUIRE(heard() == "notifications_degraded");
  CHECK(events->all.back().reason == errc::no_permission);
  CHECK(events->all.back().detail.find("run the 'publish' command") != std::string_view::npos);
}

TEST_CASE_METHOD(fixture, "the first answer not yours means lost") {
  const auto r = release();
  not_yours();
  CHECK(r.failed_with(errc::lost));
  CHECK(ended == 1);  // free for whoever waits here, and no message says so
}

TEST_CASE_METHOD(fixture, "not yours to a repeated release means released while the validity lasts") {
  const auto r = release();
  fails(errc::unconfirmed);
  advance(0ms);
  CHECK(server.count() == 2);
  not_yours();
  CHECK(r.succeeded());
  CHECK(ended == 1);
}

TEST_CASE_METHOD(fixture, "not yours to a repeated release means unconfirmed once the validity is over") {
  const auto r = release(100ms);
  advance(90ms);
  fails(errc::unconfirmed);
  advance(10ms);
  not_yours();
  CHECK(r.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(fixture, "not yours from another server than the first copy went to means unconfirmed") {
  const auto r = release();
  server.change_server();
  fails(errc::unconfirmed);
  advance(0ms);
  not_yours();
  CHECK(r.failed_with(errc::unconfirmed));
  CHECK(heard() == "release_given_up");
}

TEST_CASE_METHOD(fixture, "not yours after a copy has ended inside its script means unconfirmed") {
  const auto r = release();
  server.reply_after_part(0, replies::nil());
  run();
  CHECK(r.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(fixture, "not yours after copies were written to two servers means unconfirmed, whichever says so") {
  const auto r = release();
  fails(errc::unconfirmed);
  server.change_server();
  advance(0ms);
  fails(errc::unconfirmed);
  server.change_server_back();
  advance(50ms);
  REQUIRE(server.count() == 3);
  not_yours();
  CHECK(r.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(fixture, "a release that waits for a connection is withdrawn when the key must be gone") {
  link_down();
  in_background();
  advance(1h);
  CHECK(under_test->idle());
  link_up();
  CHECK(in_flight() == 0);
}

TEST_CASE_METHOD(fixture, "not yours after a release that was never written means lost") {
  const auto r = release();
  fails(errc::unreachable);
  advance(0ms);
  not_yours();
  CHECK(r.failed_with(errc::lost));
}

TEST_CASE_METHOD(fixture, "not yours after a release that the server refused means lost") {
  const auto r = release();
  errs("LOADING Redis is loading the dataset in memory");
  advance(0ms);
  not_yours();
  CHECK(r.failed_with(errc::lost));
}

TEST_CASE_METHOD(fixture, "a release of several keys is sent again every 20 ms while their slot moves") {
  seeded_random jitter(1);  // with it a backoff grows
  detail::environment with_jitter{clock, timers, server, jitter, settings};
  under_test.emplace(with_jitter);
  in_background();
  errs("TRYAGAIN Multiple keys request during rehashing of slot");
  advance(0ms);
  for (std::size_t sent = 2; sent < 20; ++sent) {
    REQUIRE(server.count() == sent);
    errs("TRYAGAIN Multiple keys request during rehashing of slot");
    advance(20ms);
  }
  frees();
  CHECK(under_test->idle());
  under_test.reset();
}

TEST_CASE_METHOD(fixture, "a release without an answer is unconfirmed after the command timeout and goes on") {
  const auto r = release();
  advance(500ms - 1ns);
  CHECK(r.waits());
  advance(1ns);
  CHECK(r.failed_with(errc::unconfirmed));
  CHECK_FALSE(under_test->idle());
  advance(10s);
  CHECK(server.count() == 1);  // it is on its way: only the end of its connection is a reason to repeat it
  frees();
  CHECK(heard() == "released_late");
  CHECK(under_test->idle());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(fixture, "a release of a short lease answers within a fifth of its TTL") {
  const auto r = release(90ms, 100ms);
  CHECK(server.last().timeout == 20ms);
  advance(20ms);
  CHECK(r.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(fixture, "however often a release fails its caller is answered on time") {
  random.number = ~0ULL / 3;
  const auto r = release();
  const auto began = clock.now();
  while (r.waits()) {
    if (in_flight() > 0) fails(errc::unconfirmed);
    REQUIRE(timers.advance_to_next());
  }
  CHECK(r.failed_with(errc::unconfirmed));
  CHECK(clock.now() == began + 500ms);
}

TEST_CASE_METHOD(fixture, "a release whose first copy waited to be written has its whole time from then on") {
  server.block();
  const auto r = release();
  advance(300ms);
  server.unblock();
  run();
  advance(100ms);
  fails(errc::unconfirmed);
  advance(399ms);
  CHECK(r.waits());
  advance(1ms);
  CHECK(r.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(fixture, "the time that a release waits for a connection counts, whatever ended the last one") {
  link_down();
  server.link_ended_idle = true;
  const auto r = release();
  advance(400ms);
  link_up();
  CHECK(in_flight() == 1);
  link_down();
  advance(99ms);
  CHECK(r.waits());
  advance(1ms);
  CHECK(r.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(fixture, "a release is repeated at once and then after pauses that grow to a second") {
  in_background();
  fails(errc::unconfirmed);
  advance(0ms);
  CHECK(server.count() == 2);
  fails(errc::unconfirmed);
  CHECK(*timers.next_due() == clock.now() + 20ms);
  random.number = 1'000'000'000;
  nanoseconds longest{};
  for (int i = 0; i < 20; ++i) {
    advance(*timers.next_due() - clock.now());
    fails(errc::unreachable);
    longest = std::max(longest, *timers.next_due() - clock.now());
    random.number += 7'777'777;
  }
  CHECK(longest > 300ms);
  CHECK(longest <= 1s);
}

TEST_CASE_METHOD(fixture, "a release gives up when the key must be gone anyway") {
  link_down();
  const auto r = release();
  const auto began = clock.now();
  while (!under_test->idle()) REQUIRE(timers.advance_to_next());
  CHECK(clock.now() - began >= 30s + 500ms);
  CHECK(clock.now() - began <= 30s + 2500ms);
  CHECK(r.failed_with(errc::unconfirmed));
  CHECK(heard() == "release_given_up");
  CHECK(last_event().reason == errc::unconfirmed);
  CHECK(timers.idle());
}

TEST_CASE_METHOD(fixture, "a background release that finds nothing has done its work") {
  in_background();
  not_yours();
  CHECK(heard() == "released_late");
  CHECK(last_event().name == "a");
  CHECK(ended == 1);
}

TEST_CASE("a release is repeated while the failure may mend itself and fails at once else") {
  struct row {
    const char* reply;
    errc connection, code;  // code: none while it goes on
  };
  const row all[] = {
      {"LOADING Redis is loading the dataset in memory", {}, {}},
      {"BUSY Redis is busy running a script.", {}, {}},
      {"MISCONF Redis is configured to save RDB snapshots", {}, {}},
      {"", errc::unreachable, {}},
      {"", errc::unconfirmed, {}},
      {"", errc::server_refused, {}},
      {"", errc::overloaded, {}},
      {"READONLY You can't write against a read only replica.", {}, errc::not_primary},
      {"NOPERM this user has no permissions", {}, errc::no_permission},
      {"WRONGTYPE Operation against a key", {}, errc::corrupt_lock},
      {"", errc::auth_failed, errc::auth_failed},
      {"", errc::closed, errc::closed},
  };
  for (const auto& [reply, connection, code] : all) {
    CAPTURE(reply, error_code(connection).message());
    fixture f;
    const auto r = f.release();
    connection == errc{} ? f.errs(reply) : f.fails(connection);
    if (code != errc{}) {
      CHECK(r.failed_with(code));
      CHECK(f.under_test->idle());
      CHECK(f.timers.idle());
    } else {
      CHECK(r.waits());
      f.advance(0ms);
      f.frees();
      CHECK(r.succeeded());
    }
  }
}

TEST_CASE_METHOD(fixture, "an answer of an unexpected form is a protocol error") {
  const auto r = release();
  answers(replies::ok());
  CHECK(r.failed_with(errc::protocol_error));
  CHECK(under_test->idle());
}

TEST_CASE_METHOD(fixture, "a background release that is refused for good is told to the observer") {
  in_background();
  errs("NOPERM this user has no permissions");
  CHECK(heard() == "release_given_up");
  CHECK(last_event().reason == errc::no_permission);
  CHECK(last_event().detail.starts_with("NOPERM"));
}

TEST_CASE_METHOD(fixture, "a server that lost the script gets its text once") {
  const auto r = release();
  errs("NOSCRIPT No matching script.");
  CHECK(server.last().argv[0] == "EVAL");
  frees();
  CHECK(r.succeeded());
}

TEST_CASE_METHOD(fixture, "who waits for idleness is told when the last release has ended") {
  int idle = 0;
  under_test->when_idle([&] { ++idle; });
  CHECK(idle == 1);
  release();
  in_background();
  under_test->when_idle([&] { ++idle; });
  frees();
  CHECK(idle == 1);
  frees();
  CHECK(idle == 2);
}

TEST_CASE_METHOD(fixture, "abandoned releases answer unconfirmed and send nothing any more") {
  const auto r = release();
  in_background();
  fails(errc::unconfirmed);
  const auto before = server.count();
  under_test->abandon();
  CHECK(r.failed_with(errc::unconfirmed));
  CHECK(under_test->idle());
  frees();  // too late for the one in flight
  CHECK(timers.idle());
  CHECK(server.count() == before);
  CHECK(begun == 2);
  CHECK(ended == 2);
}

TEST_CASE_METHOD(fixture, "an abandoned background release is told to the observer") {
  in_background();
  under_test->abandon();
  CHECK(heard() == "release_given_up");
  CHECK(last_event().reason == errc::unconfirmed);
}

TEST_CASE_METHOD(fixture, "destroyed releases leave no timer") {
  release();
  fails(errc::unconfirmed);
  CHECK_FALSE(timers.idle());
  under_test.reset();
  CHECK(timers.idle());
}
