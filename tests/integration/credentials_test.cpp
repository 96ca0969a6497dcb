// SPDX-License-Identifier: BSL-1.0
// Passwords and users that change while locks are held.
#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event::kind;

namespace {

const std::string canary = "canary-S3cr3t";

bool heard_of(const world& w, error_code reason) {
  const auto all = w.heard->all();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& e) { return e.what == kind::outage && e.reason == reason; });
}

bool anybody_read_the_password(const world& w) {
  const auto all = w.heard->all();
  return std::any_of(all.begin(), all.end(), [](const auto& e) { return e.detail.find(canary) != std::string::npos; });
}

}  // namespace

TEST_CASE("a password that changes leaves the connection and its holds alone until it has to be made again") {
  redis_options options;
  options.password = "before-" + canary;
  world w(options);
  auto redis = w.make([](config& c) { c.ttl = 900ms; });
  auto held = w.run(redis.mutex("m").lock());
  w.eye("CONFIG", "SET", "requirepass", "after-" + canary);
  CHECK(w.run(redis.mutex("n").lock()).held());
  CHECK(held.held());

  w.eye("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  w.until([&] { return heard_of(w, errc::auth_failed); });
  CHECK(w.code_of(redis.mutex("n").lock()) == errc::auth_failed);
  CHECK(held.state() == lease_state::suspended);
  w.until([&] { return w.heard->count(kind::lost) == 1; });  // by its validity alone
  CHECK_FALSE(held.held());

  w.eye("CONFIG", "SET", "requirepass", "before-" + canary);
  w.until([&] { return w.code_of(redis.mutex("n").try_lock()) == error_code{}; });
  CHECK_FALSE(anybody_read_the_password(w));
}

TEST_CASE("a user that is deleted loses its connection and is not let in again") {
  world w;
  w.eye("ACL", "SETUSER", "locker", "on", ">" + canary, "~*", "&*", "+@all");
  auto redis = w.make([](config& c) { c.ttl = 600ms, c.user = "locker", c.password = canary; });
  auto held = w.run(redis.mutex("m").lock());
  w.eye("ACL", "DELUSER", "locker");
  w.until([&] { return heard_of(w, errc::auth_failed); });
  CHECK(w.code_of(redis.mutex("m").try_lock()) == errc::auth_failed);
  w.until([&] { return w.heard->count(kind::lost) == 1; });
  CHECK(w.code_of(held.unlock()) == errc::lost);
  CHECK_FALSE(anybody_read_the_password(w));
}
