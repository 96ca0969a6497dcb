// SPDX-License-Identifier: BSL-1.0
// The probe of connect().
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE_METHOD(engine_fixture, "the probe uses every permission on a name of nobody") {
  verb_call probed;
  locks->probe(detail::plain_lock, [&](const auto& failed) { probed.answer(failed); });
  const auto key = "__probe:" + uuid;
  CHECK(subscribers(key) == 1);
  for (const auto& script :
       {"acquire(" + key + "; 1000, #1)", "set_hold_count(" + key + "; 1000, #1, 2)", "renew(" + key + "; 1000, #1)",
        "release(" + key + "; publish, redisson_lock__channel:{" + key + "}, #1)"}) {
    CHECK(last_sent() == script);
    errs("NOSCRIPT No matching script.");
    REQUIRE(in_flight() == 1);  // as text, before anything else
    CHECK(last_sent() == script);
    answers(obey(unanswered()));
  }
  CHECK(in_flight() == 0);
  CHECK(probed.waits());
  acknowledges(key);
  CHECK(probed.succeeded());
  CHECK(subscribers(key) == 0);
  CHECK(timers.idle());
  CHECK(node.empty());
}

TEST_CASE_METHOD(engine_fixture, "the probe ends at the first refusal") {
  verb_call probed;
  locks->probe(detail::plain_lock, [&](const auto& failed) { probed.answer(failed); });
  const auto key = "__probe:" + uuid;
  SECTION("of a command") {
    grants();
    errs("NOPERM this user has no permissions to run the 'evalsha' command");
    CHECK(probed.failed_with(errc::no_permission));
  }
  SECTION("of the subscription") {
    server.refuse(channel(key), errc::no_permission);
    run();
    CHECK(probed.failed_with(errc::no_permission));
  }
  SECTION("of the connection") {
    fails(errc::auth_failed);
    CHECK(probed.failed_with(errc::auth_failed));
  }
  SECTION("by silence") {
    advance(2500ms);
    CHECK(probed.failed_with(errc::unreachable));
  }
  CHECK(subscribers(key) == 0);
  advance(2500ms);
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "each primary is probed, by a name and a channel that live there") {
  const auto stem = "__probe:" + uuid;
  server.each_primary = {"", "{1}", "{2}"};
  lives_on(1, stem + "{1}");
  lives_on(2, stem + "{2}");
  play();
  verb_call probed;
  locks->probe(detail::plain_lock, [&](const auto& failed) { probed.answer(failed); });
  SECTION("all let it") {
    run();
    CHECK(probed.succeeded());
    for (const detail::node_id primary : {0U, 1U, 2U}) {
      std::size_t scripts = 0;
      for (std::size_t i = 0; i < server.count(); ++i) scripts += server.sent(i).node == primary;
      CHECK(scripts == 4);
    }
  }
  SECTION("one does not") {
    server.refuse(channel(stem + "{2}"), errc::no_permission);
    run();
    CHECK(probed.failed_with(errc::no_permission));
  }
  for (const auto& end : server.each_primary) CHECK(subscribers(stem + end) == 0);
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "primaries that were met by the first probe are probed as well, within its time") {
  const auto stem = "__probe:" + uuid;
  verb_call probed;
  locks->probe(detail::plain_lock, [&](const auto& failed) { probed.answer(failed); });
  lives_on(2, stem);  // nobody knew
  lives_on(1, stem + "{1}");
  server.each_primary = {"", "{1}"};
  advance(1s);
  acknowledges(stem);
  for (int i = 0; i < 5; ++i) answers(obey(unanswered()));
  CHECK(probed.waits());
  CHECK(unanswered().keys() == std::vector{stem + "{1}"});
  advance(1500ms);
  CHECK(probed.failed_with(errc::unreachable));
  CHECK(subscribers(stem + "{1}") == 0);
}

TEST_CASE_METHOD(engine_fixture, "a probe without an acknowledgement is unreachable") {
  verb_call probed;
  locks->probe(detail::plain_lock, [&](const auto& failed) { probed.answer(failed); });
  while (in_flight()) answers(obey(unanswered()));
  advance(2500ms);
  CHECK(probed.failed_with(errc::unreachable));
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "a probe ends at its deadline though a command was sent anew, and says why") {
  verb_call probed;
  locks->probe(detail::plain_lock, [&](const auto& failed) { probed.answer(failed); });
  advance(2s);
  errs("NOSCRIPT No matching script.");  // its text has the whole time of a command again
  server.why_silent.detail = "fake:6379: Connection refused";
  advance(500ms - 1ns);
  CHECK(probed.waits());
  advance(1ns);
  CHECK(probed.failed_with(errc::unreachable));
  CHECK(probed.detail() == "fake:6379: Connection refused");
  advance(5s);
  CHECK(timers.idle());
}
