// SPDX-License-Identifier: BSL-1.0
// An ACL that withholds PUBLISH, SPUBLISH or the channel: a lock is released all the same, and the observer hears once
// that waiters are not told.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "integration/every_kind.hpp"
#include "lua_scripts.hpp"
#include "protocol/replies.hpp"

using namespace holdfast;
using namespace holdfast::test;
namespace lua = holdfast::detail::lua;

namespace {

/// At every server a user "app" who may do everything but this.
void withhold(lock_world& w, const std::vector<std::string>& rules) {
  std::vector<std::string> command{"ACL", "SETUSER", "app", "reset", "on", ">secret", "~*", "&*", "+@all"};
  command.insert(command.end(), rules.begin(), rules.end());
  REQUIRE(w.eye.call(command) == "OK");
}

void be_app(config& c) { c.user = "app", c.password = "secret"; }

error_code first_reason(recorder& heard) {
  for (const auto& e : heard.all())
    if (e.what == event_kind::notifications_degraded) return e.reason;
  return {};
}

}  // namespace

TEST_CASE(
    "without PUBLISH a lock is released and forced open, a waiter has it by asking, and the observer hears once") {
  of_every_kind([](const lock_kind& k, lock_world& w) {
    withhold(w, {"-publish"});
    auto redis = w.make([](config& c) { be_app(c), c.poll_cap = 100ms; });
    auto held = w.run(k(redis).lock());
    auto other = w.make([](config& c) { c.poll_cap = 100ms; });
    started<lease> waits(w, k(other).lock());
    w.until([&] { return w.eye("PUBSUB", "NUMSUB", k.channel).array().at(1) == 1; });
    CHECK(text_of_failure([&] { w.run(held.unlock()); }) == "");
    w.until([&] { return waits.succeeded(); });
    CHECK(w.run(k(redis).force_unlock()));
    w.until([&] { return k.owner_of(w.eye).empty(); });
    held = w.run(k(redis).lock());
    w.run(held.unlock());
    w.until([&] { return w.locks().empty(); });  // of several primaries, the last one answers later
    CHECK(w.heard->count(event_kind::notifications_degraded) == 1);
    CHECK(first_reason(*w.heard) == errc::no_permission);
    CHECK(w.heard->count(event_kind::release_failed) == 0);
    error_code code;
    try {
      w.run(redis.connect());
    } catch (const error& e) {
      code = e.code();
    }
    CHECK(code == errc::no_permission);
  });
}

TEST_CASE("a release that may not publish, by whatever word, frees the lock and brings the server's words") {
  lock_world w(1);
  const bool sharded = w.eye("INFO", "server").to_string().find("redis_version:6") == std::string::npos;
  const std::string word = GENERATE("publish", "spublish", "auto", "both");
  if (word == "spublish" && !sharded) return;
  const std::string withheld = GENERATE("-publish", "-spublish", "resetchannels");
  CAPTURE(word, withheld);
  if (!sharded && withheld == "-spublish") return;
  withhold(w, {withheld});
  raw_client app(w.node(0));
  REQUIRE(app("AUTH", "app", "secret") == "OK");
  const bool refused = withheld == "resetchannels" || word == "both" ||
                       (withheld == "-publish") == (word == "publish" || (word == "auto" && !sharded));
  const auto check = [&](const value& reply, int otherwise) {
    INFO(reply.to_string());
    CHECK_FALSE(w.eye("EXISTS", "m") == 1);
    CHECK_FALSE(reply.is_error());
    if (refused)
      CHECK(detail::classify(reply.to_string()).code == errc::no_permission);
    else
      CHECK(reply == otherwise);
  };
  w.eye("HSET", "m", "a:1", 1);
  check(app("EVAL", lua::release.body, 1, "m", word, "c", "a:1"), 0);
  w.eye("HSET", "m", "a:1", 1);
  check(app("EVAL", lua::force_release.body, 1, "m", word, "c"), 1);
  w.eye("SET", "m", "a:1", "PX", 10'000);
  check(app("EVAL", lua::simple_release.body, 1, "m", word, "c", "a:1"), 0);
  w.eye("SET", "m", "a:1", "PX", 10'000);
  check(app("EVAL", lua::simple_force_release.body, 1, "m", word, "c"), 1);
}
