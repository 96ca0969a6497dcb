// SPDX-License-Identifier: BSL-1.0
// Passwords and users that change while locks are held.
#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

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

namespace {

/// The user of a server whose password changes, and what a client is told of it.
struct rotated_user {
  explicit rotated_user(world& w) : of(w) { set(); }

  std::string password() const { return "p" + std::to_string(number) + '-' + canary; }
  void set() { of.eye("ACL", "SETUSER", "locker", "reset", "on", ">" + password(), "~*", "&*", "+@all"); }
  void change() {
    ++number;
    set();
  }
  std::function<login(const login_request&)> source(milliseconds valid_for) {
    return [this, valid_for](const login_request&) {
      ++asked;
      return login{"locker", password(), valid_for};
    };
  }

  world& of;
  int number = 0, asked = 0;
};

/// Takes one lock again and again until `over`.
asio::awaitable<int> contend(mutex m, const bool& over) {
  int holds = 0;
  while (!over) {
    auto held = co_await m.lock();
    co_await held.unlock();
    ++holds;
  }
  co_return holds;
}

}  // namespace

TEST_CASE("locks are held and wanted while the password changes each second") {
  world w;
  rotated_user user(w);
  const auto changing = [&](config& c) {
    c.ttl = 5s;
    c.turns = false;
    c.credentials = user.source(1s);  // as a token that ends with the second
  };
  auto a = w.make(changing), b = w.make(changing);
  auto held = w.run(a.mutex("held").lock());
  bool over = false;
  started one(w, contend(a.mutex("m"), over)), two(w, contend(b.mutex("m"), over));
  asio::steady_timer each_second(w.io);
  std::function<void()> rotate = [&] {
    each_second.expires_after(1s);
    each_second.async_wait([&](error_code stopped) {
      if (stopped) return;
      user.change();
      rotate();
    });
  };
  rotate();
  w.until([&] { return user.number >= 5; }, 30s);
  over = true;
  w.until([&] { return one.succeeded() && two.succeeded(); });
  each_second.cancel();
  CHECK(one.answer->value() > 0);
  CHECK(two.answer->value() > 0);
  CHECK(user.asked >= 8);  // each of two connections four times at least
  CHECK(held.held());
  CHECK(w.heard->count(kind::lost) == 0);
  CHECK_FALSE(heard_of(w, errc::auth_failed));
  CHECK_FALSE(anybody_read_the_password(w));
}

TEST_CASE("a connection whose login ends is replaced, and nobody notices") {
  world w;
  rotated_user user(w);
  auto redis = w.make([&](config& c) { c.credentials = user.source(1s); });
  auto held = w.run(redis.mutex("held").lock());
  w.until([&] { return w.heard->count(kind::connected) >= 4; }, 20s);
  CHECK(held.state() == lease_state::held);
  CHECK(w.heard->count(kind::outage) == 0);
  CHECK(w.heard->count(kind::suspended) == 0);
  w.run(held.unlock());
}

TEST_CASE("a user's two passwords are rotated, and nobody notices") {
  world w;
  rotated_user user(w);
  auto redis = w.make([&](config& c) { c.credentials = user.source(0ms); });
  auto held = w.run(redis.mutex("held").lock());
  const auto old = user.password();
  w.eye("ACL", "SETUSER", "locker", ">new-" + canary);
  for (int i = 0; i < 2; ++i) {  // with the old one, then with the new one
    w.eye("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    CHECK(w.code_of(redis.mutex("m").lock()) == error_code{});
    user.number = 7;
    if (i == 0) w.eye("ACL", "SETUSER", "locker", ">" + user.password(), "<" + old);
  }
  CHECK(w.run(redis.mutex("n").lock()).held());
  CHECK(held.held());
  CHECK_FALSE(heard_of(w, errc::auth_failed));
}
