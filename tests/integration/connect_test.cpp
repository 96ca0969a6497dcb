// SPDX-License-Identifier: BSL-1.0
// connect(): what it says of a server that cannot be used, and that it leaves nothing on one that can. lock() says the
// same.
#include <sstream>

#include "integration/world.hpp"
#include "support/server_version.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

const std::string canary = "canary-S3cr3t-%-Passw0rd";  // must appear in no text
/// What docs/guide/operating.md asks for, and no more.
const std::string least_privilege =
    "resetkeys resetchannels ~app:* &redisson_lock__channel:{app:* "
    "-@all +eval +evalsha +exists +hexists +hget +hset +hdel +hlen +hgetall +pttl +pexpire +publish +del "
    "+subscribe +unsubscribe +ping +client|setname +client|id +client|kill +info +role +select";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// A user "locker" with the canary as password.
void make_user(world& w, const std::string& rights) {
  std::vector<std::string> command{"ACL", "SETUSER", "locker", "reset", "on", ">" + canary};
  std::istringstream words(rights);
  for (std::string word; words >> word;) command.push_back(word);
  const auto reply = w.eye.call(command);
  INFO(reply.to_string());
  REQUIRE_FALSE(reply.is_error());
}

client make_locker(world& w) {
  return w.make(
      [](config& c) { c.user = "locker", c.password = canary, c.key_prefix = "app:", c.command_timeout = 2s; });
}

struct failure {
  error_code code;
  std::string text;
};

template <class T>
failure failure_of(world& w, asio::awaitable<T> op) {
  try {
    (void)w.run(std::move(op));
  } catch (const boost::system::system_error& e) {
    return {e.code(), e.what()};
  }
  return {};
}

/// The failure of connect() and of a plain lock(), which must be the same.
void check_refused(world& w, client& redis, errc code, const std::string& cause) {
  const auto early = failure_of(w, redis.connect()), late = failure_of(w, redis.mutex("m").lock());
  for (const auto& f : {early, late}) {
    INFO(f.text);
    CHECK(f.code == code);
    CHECK(contains(f.text, cause));
    CHECK(contains(f.text, w.server.socket_path()));
    CHECK_FALSE(contains(f.text, "anary"));
  }
  CHECK(failure_of(w, redis.mutex("m").try_lock()).code == code);
  CHECK(failure_of(w, redis.mutex("m").try_lock_for(5s)).code == code);
  drain(w.io);
  for (const auto& e : w.heard->all()) CHECK_FALSE(contains(e.detail, "anary"));
}

}  // namespace

TEST_CASE("connect leaves no key and no subscription behind") {
  world w;
  auto redis = w.make();
  w.run(redis.connect());
  CHECK(w.keys().empty());
  w.run(redis.connect());
  drain(w.io, 5s);
  CHECK(w.keys().empty());
  CHECK(w.eye("PUBSUB", "CHANNELS", of_locks).array().empty());
  CHECK(w.heard->count(kind::connected) == 1);
  CHECK(w.run(redis.mutex("m").try_lock()));
}

TEST_CASE("a password that is wrong or missing or of an unknown user is told as such") {
  redis_options options;
  options.password = "the-right-one";
  world w(options);
  const auto without = "redis+unix://" + w.server.socket_path();
  w.eye("ACL", "SETUSER", "locker", "on", ">another", "~*", "&*", "+@all");
  SECTION("wrong") {
    auto redis = w.make([&](config& c) { c.url = without, c.password = canary; });
    check_refused(w, redis, errc::auth_failed, "WRONGPASS");
  }
  SECTION("of another user") {
    auto redis = w.make([&](config& c) { c.url = without, c.user = "locker", c.password = canary; });
    check_refused(w, redis, errc::auth_failed, "WRONGPASS");
  }
  SECTION("unknown user") {
    auto redis = w.make([&](config& c) { c.url = without, c.user = "nobody", c.password = canary; });
    check_refused(w, redis, errc::auth_failed, "WRONGPASS");
  }
  SECTION("missing") {
    auto redis = w.make([&](config& c) { c.url = without; });
    check_refused(w, redis, errc::auth_failed, "NOAUTH");
  }
  SECTION("given where none is needed") {
    world open;
    auto redis = open.make([](config& c) { c.password = canary; });
    check_refused(open, redis, errc::auth_failed, "the server has no password");
  }
  CHECK(w.keys().empty());
}

TEST_CASE("a permission that is missing is told by connect before any lock is taken") {
  struct row {
    std::string missing, cause;
  };
  const auto [missing, cause] = GENERATE(values<row>({{"-evalsha", "evalsha"},
                                                      {"-eval", "'eval'"},
                                                      {"-exists", "run this command"},
                                                      {"-hexists", "run this command"},
                                                      {"-hlen", "run this command"},
                                                      {"-hget", "run this command"},
                                                      {"-hset", "run this command"},
                                                      {"-hdel", "run this command"},
                                                      {"-pttl", "run this command"},
                                                      {"-pexpire", "run this command"},
                                                      {"-publish", "run this command"},
                                                      {"-subscribe", "subscribe"},
                                                      {"resetchannels", "channel"},
                                                      {"resetchannels &other:*", "channel"},
                                                      {"resetkeys ~other:*", "key"}}));
  CAPTURE(missing);
  world w;
  make_user(w, least_privilege + " " + missing);
  auto redis = make_locker(w);
  const auto f = failure_of(w, redis.connect());
  INFO(f.text);
  CHECK(f.code == errc::no_permission);
  CHECK(
      (contains(f.text, cause) || contains(f.text, "run the '" + missing.substr(1) + "' command")));  // since Redis 7.2
  CHECK_FALSE(contains(f.text, "anary"));
  w.until([&] { return w.keys().empty(); }, 5s);  // without HDEL the probe ends with its TTL
  w.until([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().empty(); }, 5s);
}

TEST_CASE("a lock without a permission that it needs is refused and leaves no key") {
  const std::string missing = GENERATE("-evalsha", "-eval", "-exists", "-hset", "-pexpire", "resetkeys ~other:*");
  CAPTURE(missing);
  world w;
  make_user(w, least_privilege + " " + missing);
  auto redis = make_locker(w);
  const auto f = failure_of(w, redis.mutex("m").lock());
  INFO(f.text);
  CHECK(f.code == errc::no_permission);
  CHECK(contains(f.text, "lock 'm'"));
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("a waiter that may not subscribe is refused") {
  const std::string missing = GENERATE("-subscribe", "resetchannels");
  CAPTURE(missing);
  world w;
  w.eye("HSET", "app:m", "stranger:1", 1);
  w.eye("PEXPIRE", "app:m", 60'000);
  make_user(w, least_privilege + " " + missing);
  auto redis = make_locker(w);
  CHECK(failure_of(w, redis.mutex("m").lock()).code == errc::no_permission);
  CHECK(failure_of(w, redis.mutex("m").try_lock_for(10s)).code == errc::no_permission);
  CHECK_FALSE(w.run(redis.mutex("m").try_lock()));
}

TEST_CASE("permissions that only help may be missing") {
  const std::string missing =
      GENERATE("-client|setname", "-client|id", "-client|kill", "-info", "-role", "-ping", "-del -select -unsubscribe");
  CAPTURE(missing);
  if (missing.starts_with("-client|")) need_redis_7("an ACL can take a subcommand away");
  world w;
  make_user(w, least_privilege + " " + missing);
  auto redis = make_locker(w);
  w.run(redis.connect());
  CHECK(w.heard->count(kind::fencing_degraded) == (missing == "-client|id" || missing == "-info" ? 1 : 0));
  auto held = w.run(redis.mutex("m").lock());
  w.run(held.unlock());
  CHECK(w.keys().empty());
}

TEST_CASE("a missing permission to fence is told once, whichever connection finds out") {
  const std::string missing = GENERATE("-client|id", "-client|kill", "-info");
  CAPTURE(missing);
  if (missing.starts_with("-client|")) need_redis_7("an ACL can take a subcommand away");
  world w;
  w.eye("HSET", "app:m", "stranger:1", 1);
  w.eye("PEXPIRE", "app:m", 60'000);
  make_user(w, least_privilege + " " + missing);
  auto redis = make_locker(w);
  const std::string channel = "redisson_lock__channel:{app:m}";
  const auto subscribed = [&] { return w.eye("PUBSUB", "NUMSUB", channel).array()[1] == 1; };
  started<lease> got(w, redis.mutex("m").lock());
  w.until(subscribed);
  for (int i = 0; i < 2; ++i) {
    w.eye("CLIENT", "KILL", "TYPE", "pubsub");
    w.until(subscribed);
  }
  w.eye("DEL", "app:m");
  w.eye("PUBLISH", channel, "0");
  w.until([&] { return got.succeeded(); });
  CHECK(w.heard->count(kind::fencing_degraded) == 1);
}

TEST_CASE("the least privileges are enough for everything") {
  world w;
  make_user(w, least_privilege);
  auto a = make_locker(w), b = make_locker(w);
  const owner me;
  w.run(a.connect());
  auto outer = w.run(a.mutex("m", me).lock());
  auto inner = w.run(a.mutex("m", me).lock());
  CHECK(w.run(a.mutex("m").is_locked()));
  CHECK(w.run(a.mutex("m").hold_count(me)) == 2);
  CHECK(w.run(a.mutex("m").remaining_ttl()).has_value());
  w.run(inner.renew());
  CHECK_FALSE(w.run(b.mutex("m").try_lock_for(30ms)));
  started<lease> got(w, b.mutex("m").lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{app:m}").array()[1] == 1; });
  w.eye("CLIENT", "KILL", "USER", "locker");  // and a new connection that fences off the old one
  w.run(inner.unlock());
  w.run(outer.unlock());
  w.until([&] { return got.succeeded(); }, 3s);
  CHECK(w.run(a.mutex("m").force_unlock()));
  CHECK(w.code_of(got.answer->value().unlock()) == errc::lost);
  w.run(a.shutdown(5s));
  CHECK(w.keys().empty());
  CHECK(w.heard->count(kind::fencing_degraded) == 0);
}

TEST_CASE("a replica is not a primary") {
  world w;
  auto connected = w.make(), fresh = w.make();
  w.run(connected.connect());
  w.eye("REPLICAOF", "127.0.0.1", "1");
  check_refused(w, fresh, errc::not_primary, "replica");
  const auto outages = w.heard->count(kind::outage);
  const auto failed = failure_of(w, connected.mutex("m").try_lock());
  CHECK(failed.code == errc::unreachable);  // it was one for this client
  CHECK(failed.text.find("the server has become a replica") != std::string::npos);
  w.until([&] {
    return w.heard->count(kind::outage) > outages;
  });  // its connection is made anew: the address may lead elsewhere
  CHECK(w.keys().empty());
}

TEST_CASE("a node of a cluster is refused by name at connect and at first use") {
  redis_options options;
  options.tcp = true;  // the cluster's bus needs a port
  options.arguments = {"--cluster-enabled", "yes"};
  world w(options);
  auto redis = w.make([&](config& c) { c.url = w.server.unix_url(); });
  check_refused(w, redis, errc::not_primary, ": a cluster node; the URL of a cluster begins with redis+cluster://");
}

TEST_CASE("too many clients is told and lock waits until there is room") {
  world w;
  auto redis = w.make([](config& c) { c.command_timeout = 100ms, c.connect_timeout = 200ms; });
  auto connected = w.make([](config& c) { c.ttl = 300ms; });
  auto held = w.run(connected.mutex("held").lock());
  w.eye("CONFIG", "SET", "maxclients", "1");
  for (const auto& f : {failure_of(w, redis.connect()), failure_of(w, redis.mutex("m").try_lock())}) {
    INFO(f.text);
    CHECK(f.code == errc::server_refused);
    CHECK(contains(f.text, "max number of clients"));
  }
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return w.heard->count(kind::outage) >= 1; });
  CHECK_FALSE(got.answer);
  w.until([&] { return held.valid_for() < 220ms; });
  w.until([&] { return held.valid_for() > 280ms; });  // renewed: who is connected goes on
  w.eye("CONFIG", "SET", "maxclients", "1000");
  w.until([&] { return got.succeeded(); }, 7s);
}

TEST_CASE("a server that still loads its data refuses and lock waits until it has loaded") {
  need_redis_7("loading-process-events-interval-bytes");
  redis_options options;
  options.arguments = {"--rdbcompression", "no"};
  world w(options);
  for (int i = 0; i < 500; ++i) w.eye("SET", "key" + std::to_string(i), std::string(4096, 'x'));
  w.eye("SAVE");
  w.server.options().arguments = {"--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024"};
  w.server.options().wait_until_loaded = false;
  w.server.restart();
  w.eye = raw_client(w.server);
  REQUIRE(w.eye.call({"GET", "key"}).to_string().starts_with("LOADING"));
  auto redis = w.make([](config& c) { c.command_timeout = 2s; });
  started<lease> got(w, redis.mutex("m").lock());
  const auto f = failure_of(w, redis.mutex("n").try_lock());
  INFO(f.text);
  CHECK(f.code == errc::server_refused);
  CHECK(contains(f.text, "LOADING"));
  CHECK(failure_of(w, redis.connect()).code == errc::server_refused);
  w.until([&] { return got.succeeded(); });
}
