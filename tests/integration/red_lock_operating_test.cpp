// SPDX-License-Identifier: BSL-1.0
// What an operator of the primaries of a red_lock does: restarts, replacements, other lists, passwords and permissions.
#include <sstream>

#include "integration/red_world.hpp"
#include "support/least_rights.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds longest = 1s, usual = 60s;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// What an operator makes of a server that votes at once.
void prepare(red_world& w, std::size_t n, std::chrono::milliseconds longest_ttl) {
  const auto info = w.eyes[n]("INFO", "server").to_string();
  w.eyes[n]("SET", "holdfast:redlock",
            info.substr(info.find("\nrun_id:") + 8, 40) + ' ' + std::to_string(longest_ttl.count()));
}

/// Of a client of these servers alone, which has no path to the last of them.
config of(red_world& w, const std::vector<std::size_t>& nodes, std::size_t missing,
          std::chrono::milliseconds longest_ttl) {
  auto c = w.settings();
  c.red_lock.longest_ttl = longest_ttl;
  c.ttl = longest_ttl / 2;
  c.red_lock.primaries.clear();
  for (const auto n : nodes) c.red_lock.primaries.push_back(w.node(n).url());
  for (auto n = nodes.size() - missing; n < nodes.size(); ++n) c.red_lock.primaries[n] += "-nobody";
  return c;
}

void wait_for_the_longest_ttl(red_world& w) {
  const auto over = steady_clock::now() + longest;
  w.until([&] { return steady_clock::now() >= over; });
}

}  // namespace

TEST_CASE("a primary that keeps its locks over a restart renews them, and votes on others when its wait is over") {
  for (const auto nested : both) {
    red_world w(5, {.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
    const auto short_lived = [](config& c) { c.ttl = c.red_lock.longest_ttl = 3s; };
    w.founded(short_lived);
    auto x = w.that_sees({0, 1, 2}, short_lived), y = w.that_sees({2, 3, 4}, short_lived);
    auto held = w.run(x.red_lock("m", nested).lock());
    w.until([&] { return w.where("m") == "ABC"; });
    w.restart(2);
    CHECK(w.eyes[2]("EXISTS", "m") == 1);
    w.until([&] { return !w.code_of(held.renew()); });  // by A, B and C, as soon as that is connected
    CHECK(w.code_of(y.red_lock("n", nested).try_lock()) == errc::quorum_failed);
    auto other = w.run(y.red_lock("n", nested).lock());
    CHECK(w.eyes[2]("EXISTS", "n") == 1);
    CHECK(w.heard->count(kind::vote_withheld) == 1);
    CHECK(held.held());
    CHECK(w.heard->count(kind::lost) == 0);
  }
}

TEST_CASE("without the wait, a primary that keeps its locks over a restart lets nobody have a second") {
  for (const auto nested : both) {
    red_world w(5, {.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
    const auto at_once = [](config& c) { c.red_lock.delayed_restart = false; };
    auto x = w.that_sees({0, 1, 2}, at_once), y = w.that_sees({2, 3, 4}, at_once);
    auto held = w.run(x.red_lock("m", nested).lock());
    w.until([&] { return w.where("m") == "ABC"; });
    w.restart(2);
    CHECK_FALSE(w.run(y.red_lock("m", nested).try_lock_for(200ms)));
    CHECK(held.held());
    auto other = w.run(y.red_lock("n", nested).try_lock());
    CHECK(other);
  }
}

TEST_CASE("a restart that nobody can see, because INFO is refused, and that keeps the marker, allows two holders") {
  least_rights::skip_if_in_force("its own rule withholds INFO");
  for (const auto nested : both) {
    red_world w(5, {.arguments = {"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-info", "-role"}});
    w.founded();
    asio::io_context elsewhere;  // of another process, which hears of the restart later
    client x(elsewhere, of(w, {0, 1, 2, 3, 4}, 2, usual));
    auto y = w.that_sees({2, 3, 4});
    w.eyes[2]("SAVE");
    auto held = test::run(elsewhere, x.red_lock("m", nested).lock());
    w.until([&] { return w.where("m") == "ABC"; });
    w.restart(2);
    auto second = w.run(y.red_lock("m", nested).lock());
    CHECK(second.held());
    CHECK(held.held());
    CHECK(w.heard->count(kind::delayed_restart_degraded) == 3);  // each client
    CHECK(test::run(elsewhere, held.lost()) == errc::lost);
  }
}

TEST_CASE("while some clients know three primaries and others five, two majorities need not meet") {
  for (const auto nested : both) {
    red_world w;
    for (std::size_t n = 0; n < 5; ++n) prepare(w, n, usual);
    client old(w.io, of(w, {0, 1, 2}, 1, usual)), grown(w.io, of(w, {0, 1, 2, 3, 4}, 0, usual));
    auto held = w.run(old.red_lock("m", nested).lock());
    CHECK(w.where("m") == "AB");
    auto second = w.run(grown.red_lock("m", nested).lock());
    CHECK(second.held());
    CHECK(held.held());
  }
}

TEST_CASE("a list that grows as documented gives no second holder, even beside a client that was only stopped") {
  for (const auto nested : both) {
    red_world w;
    for (std::size_t n = 0; n < 5; ++n) prepare(w, n, longest);
    asio::io_context elsewhere;  // of a process that was stopped: nothing of it runs any more
    client old(elsewhere, of(w, {0, 1, 2}, 1, longest));
    auto held = test::run(elsewhere, old.red_lock("m", nested).lock());
    wait_for_the_longest_ttl(w);
    for (auto& eye : w.eyes) eye("DEL", "holdfast:redlock");
    client grown(w.io, of(w, {0, 1, 2, 3, 4}, 0, longest));
    const auto began = steady_clock::now();
    auto second = w.run(grown.red_lock("m", nested).lock());
    CHECK_FALSE(held.held());
    CHECK(steady_clock::now() - began >= longest);  // the votes were waited for
  }
}

TEST_CASE("a primary that is replaced too early gives a second holder, and none as documented") {
  for (const bool too_early : {true, false})
    for (const auto nested : both) {
      INFO("too early: " << too_early);
      const auto longest_ttl = too_early ? usual : longest;
      red_world w(6);
      for (std::size_t n = 0; n < 6; ++n) prepare(w, n, longest_ttl);
      client old(w.io, of(w, {0, 1, 2, 3, 4}, 2, longest_ttl)), fresh(w.io, of(w, {0, 1, 5, 3, 4}, 0, longest_ttl));
      auto held = w.run(old.red_lock("m", nested).lock());
      CHECK(w.where("m") == "ABC");
      w.node(2).kill();
      if (!too_early) wait_for_the_longest_ttl(w);
      auto second = w.run(fresh.red_lock("m", nested).lock());
      CHECK(held.held() == too_early);
    }
}

namespace {

const std::string canary = "canary-S3cr3t-%-Passw0rd";  // must appear in no text

/// The password of a user "app", which has these rights at each of the servers.
void make_user(red_world& w, const std::string& rights) {
  std::istringstream words("reset on >" + canary + " resetkeys resetchannels " + rights);
  std::vector<std::string> command{"ACL", "SETUSER", "app"};
  for (std::string word; words >> word;) command.push_back(word);
  for (auto& eye : w.eyes) REQUIRE(eye.call(command) == "OK");
}

client as_app(red_world& w) {
  return w.make([](config& c) {
    c.user = "app";
    c.password = canary;
    c.key_prefix = "app:";
  });
}

/// What docs/guide/operating.md asks for, and no more: what each kind needs on one server, and the marker.
const std::string connecting =
    " -@all +subscribe +unsubscribe +ping +client|setname +client|id +client|kill +info +role";
const std::string of_red_plain =
    "~app:* &redisson_lock__channel:{app:* ~holdfast:redlock*" + connecting +
    " +eval +evalsha +exists +hexists +hget +hset +hdel +hlen +hgetall +pttl +pexpire +publish +del +get +set";
const std::string of_red_simple = "~app:* &holdfast_simple:{app:* ~holdfast:redlock*" + connecting +
                                  " +eval +evalsha +getrange +set +del +hdel +pttl +pexpire +publish +exists +get";

/// All that a lock does, from a new installation on.
void live(red_world& w, client& redis, reentrancy nested) {
  w.run(red_lock::initialise(redis));
  const owner me;
  auto lock = redis.red_lock("m", me, nested);
  auto held = w.run(lock.lock());
  if (nested == reentrancy::reentrant) w.run(w.run(lock.lock()).unlock());
  CHECK(w.run(lock.is_locked()));
  CHECK(w.run(lock.holder())->id == held.id());
  CHECK(w.run(lock.hold_count(me)) == 1);
  CHECK(w.run(lock.remaining_ttl()).has_value());
  // Each primary has twice its last response time for its vote. Under load two of them may be later than that.
  w.until([&] {
    try {
      return !w.run(redis.red_lock("m", nested).try_lock());
    } catch (const error& failed) {
      CHECK(failed.code() == errc::quorum_failed);
      return false;
    }
  });
  started<lease> waits(w, redis.red_lock("m", nested).lock());
  w.until([&] { return !w.eyes[0]("PUBSUB", "CHANNELS", of_locks).array().empty(); });
  w.run(held.renew());
  w.run(held.unlock());
  w.until([&] { return waits.succeeded(); }, 4s);
  CHECK(w.run(lock.force_unlock()));
}

}  // namespace

TEST_CASE("a user of a red_lock needs what its kind needs and the marker, and no more") {
  for (const auto nested : both) {
    red_world w(3);
    const bool reentrant = nested == reentrancy::reentrant;
    make_user(w, reentrant ? of_red_plain : of_red_simple);
    auto redis = as_app(w);
    live(w, redis, nested);
    if (reentrant) w.run(redis.connect());
    // A primary that comes back empty gets its vote.
    w.eyes[0]("DEL", "holdfast:redlock");
    CHECK(w.run(redis.red_lock("n", nested).lock()).held());
    w.until([&] { return w.heard->count(kind::vote_withheld) == 1; });
  }
}

TEST_CASE("a permission that a majority of the primaries withholds is told by the first red_lock and by connect") {
  struct row {
    const char* missing;
    bool plain, simple;  // of which lock
  };
  for (const auto& [missing, plain, simple] :
       {row{"-eval", true, true}, row{"-get", true, true}, row{"-hset", true, false}, row{"-exists", true, false},
        row{"-set", false, true}, row{"resetkeys ~app:*", true, true}, row{"resetkeys ~other:*", true, true}})
    for (const auto nested : both) {
      const bool reentrant = nested == reentrancy::reentrant;
      if (!(reentrant ? plain : simple)) continue;
      INFO(missing << ", reentrant: " << reentrant);
      red_world w(3);
      w.founded();
      make_user(w, (reentrant ? of_red_plain : of_red_simple) + ' ' + missing);
      auto redis = as_app(w);
      const auto text = text_of_failure([&] { (void)w.run(redis.red_lock("m", nested).lock()); });
      INFO(text);
      CHECK(contains(text, "permission denied by Redis"));
      for (std::size_t n = 0; n < 3; ++n) CHECK(contains(text, w.node(n).socket_path()));
      CHECK_FALSE(contains(text, "anary"));
      CHECK(w.code_of(redis.red_lock("m", nested).try_lock()) == errc::no_permission);
      if (reentrant) CHECK(w.code_of(redis.connect()) == errc::no_permission);
    }
}

TEST_CASE("without SET nobody can give a primary its vote, and that is told") {
  for (const auto nested : both) {
    red_world w(3);
    make_user(w, of_red_plain + " -set");
    if (nested == reentrancy::not_reentrant) make_user(w, of_red_simple + " -set");
    auto redis = as_app(w);
    CHECK(w.code_of(red_lock::initialise(redis)) == errc::no_permission);
    std::string text;
    for (int i = 0; i < 100 && !contains(text, "permission denied by Redis"); ++i)
      text = text_of_failure([&] { (void)w.run(redis.red_lock("m", nested).try_lock()); });
    CHECK(contains(text, "permission denied by Redis"));
    CHECK(contains(text, "it was to be given a vote"));
  }
}

TEST_CASE("a user without EVALSHA is told so by connect, and at the first release") {
  for (const auto nested : both) {
    red_world w(3);
    w.founded();
    make_user(w, (nested == reentrancy::reentrant ? of_red_plain : of_red_simple) + " -evalsha");
    auto redis = as_app(w);
    auto held = w.run(redis.red_lock("m", nested).lock());  // by its text, as the servers may not know the script
    CHECK(w.code_of(held.unlock()) == errc::no_permission);
    if (nested == reentrancy::reentrant) CHECK(w.code_of(redis.connect()) == errc::no_permission);
  }
}

TEST_CASE("connect is content with a majority of the primaries, and says of each what is wrong") {
  for (const std::size_t wrong : {1, 2, 3}) {
    INFO(wrong << " of 5 passwords are wrong");
    red_world w;
    for (std::size_t n = 0; n < wrong; ++n) w.eyes[n]("ACL", "SETUSER", "app", "on", ">another", "~*", "&*", "+@all");
    for (auto n = wrong; n < 5; ++n) w.eyes[n]("ACL", "SETUSER", "app", "on", ">" + canary, "~*", "&*", "+@all");
    auto founder = w.founded();
    auto redis = as_app(w);
    const auto text = text_of_failure([&] { w.run(redis.connect()); });
    INFO(text);
    CHECK(text.empty() == (wrong < 3));
    for (std::size_t n = 0; n < wrong; ++n) {
      if (wrong == 3) CHECK(contains(text, w.node(n).socket_path() + ": AUTH: WRONGPASS"));
      w.until([&] {
        const auto told = w.heard->all();
        return std::any_of(told.begin(), told.end(), [&](const auto& e) {
          return e.what == kind::outage && e.reason == errc::auth_failed && contains(e.detail, w.node(n).socket_path());
        });
      });
    }
    if (wrong == 3) CHECK(w.code_of(redis.connect()) == errc::auth_failed);
    if (wrong == 3) CHECK(w.code_of(redis.red_lock("m").lock()) == errc::auth_failed);
    if (wrong < 3) CHECK(w.run(redis.red_lock("m").lock()).held());
    CHECK_FALSE(contains(text, "anary"));
    for (const auto& e : w.heard->all()) CHECK_FALSE(contains(e.detail, "anary"));
  }
}

TEST_CASE("connect says of a majority that is dead or silent that there is no quorum, and names each") {
  red_world w;
  auto redis = w.make([](config& c) { c.command_timeout = c.connect_timeout = 100ms; });
  w.node(2).kill();
  for (const std::size_t n : {3, 4}) w.node(n).stop();
  const auto text = text_of_failure([&] { w.run(redis.connect()); });
  INFO(text);
  CHECK(contains(text, "no quorum"));
  for (const std::size_t n : {2, 3, 4}) CHECK(contains(text, w.node(n).socket_path()));
  for (const std::size_t n : {3, 4}) w.node(n).cont();
}

TEST_CASE("a permission that a minority of the primaries withholds costs nothing") {
  for (const auto nested : both) {
    red_world w(3);
    w.founded();
    make_user(w, nested == reentrancy::reentrant ? of_red_plain : of_red_simple);
    w.eyes[1]("ACL", "SETUSER", "app", "-pexpire", "-get");
    auto redis = as_app(w);
    if (nested == reentrancy::reentrant) w.run(redis.connect());
    auto held = w.run(redis.red_lock("m", nested).lock());
    w.run(held.renew());
    w.run(held.unlock());
    w.until([&] { return w.where("app:m").empty(); });
  }
}
