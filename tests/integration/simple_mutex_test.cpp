// SPDX-License-Identifier: BSL-1.0
// A simple mutex beside clients of other languages, which follow the recipes of Redis' documentation.
#include "integration/every_kind.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

/// Another client, by its documented commands alone.
struct other_client {
  explicit other_client(world& w) : redis(w.server) {}

  bool lock(const std::string& token, std::chrono::milliseconds ttl) {
    return redis("SET", "m", token, "NX", "PX", ttl.count()) == "OK";
  }
  bool unlock(const std::string& token) {
    return redis("EVAL",
                 "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end", 1,
                 "m", token) == 1;
  }
  bool extend(const std::string& token, std::chrono::milliseconds ttl) {
    return redis("EVAL",
                 "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else "
                 "return 0 "
                 "end",
                 1, "m", token, ttl.count()) == 1;
  }

  raw_client redis;
};

const std::string binary_token("\0\xff\r\n$*", 6);

}  // namespace

TEST_CASE("a simple mutex and another client's lock exclude each other, whatever its token is") {
  for (const auto& token : {std::string("0a1b2c"), binary_token, std::string(), std::string(1000, 'x')}) {
    world w;
    other_client other(w);
    auto redis = w.make();
    const auto mutex = redis.simple_mutex("m");
    REQUIRE(other.lock(token, 60s));
    CHECK_FALSE(w.run(mutex.try_lock()));
    CHECK(w.run(mutex.is_locked()));
    CHECK(other.extend(token, 50s));
    CHECK(w.run(mutex.remaining_ttl()).value() <= 50s);
    CHECK(other.unlock(token));
    auto held = w.run(mutex.lock());
    CHECK_FALSE(other.lock(token, 60s));
    CHECK_FALSE(other.unlock(token));
    CHECK_FALSE(other.extend(token, 60s));
    CHECK(held.held());
    w.run(held.unlock());
    CHECK(other.lock(token, 60s));
  }
}

TEST_CASE("another client can tell our hold by its lease's id, and use it") {
  world w;
  other_client other(w);
  auto redis = w.make();
  auto held = w.run(redis.simple_mutex("m").lock());
  CHECK(w.eye("GET", "m") == held.id());
  CHECK(other.extend(held.id(), 120s));
  w.run(held.renew());
  CHECK(w.eye("PTTL", "m").integer() > 100'000);  // a renewal never shortens
  CHECK(other.unlock(held.id()));
  CHECK(w.code_of(held.unlock()) == errc::lost);
}

TEST_CASE("a release without a message is seen before long") {
  world w;
  other_client other(w);
  auto redis = w.make();
  REQUIRE(other.lock("token", 60s));
  started<lease> waiting(w, redis.simple_mutex("m").lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "holdfast_simple:{m}").array()[1] == 1; });
  w.pass(300ms);  // by now it looks every 250 ms
  CHECK(other.unlock("token"));
  w.until([&] { return waiting.succeeded(); }, 3s);  // the poll cap is 5 s, the TTL 60 s
}

TEST_CASE("a TTL that was shortened from outside ends the hold when it is noticed") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 400ms; });
  auto held = w.run(redis.simple_mutex("m").lock());
  w.eye("PEXPIRE", "m", 1);
  CHECK(w.run(held.lost()) == errc::lost);
  CHECK(w.keys().empty());
}

TEST_CASE("a long string is data, and no force_unlock deletes it") {
  world w;
  auto redis = w.make();
  const std::string data(257, 'x');
  w.eye("SET", "m", data, "PX", 60'000);
  CHECK(w.code_of(redis.simple_mutex("m").force_unlock()) == errc::corrupt_lock);
  CHECK(w.eye("GET", "m") == data);
  CHECK_FALSE(w.run(redis.simple_mutex("m").try_lock()));
}

TEST_CASE("a string without a TTL is data, and no force_unlock deletes it") {
  world w;
  auto redis = w.make();
  // A semaphore's or a latch's counter, a bucket, a redis-py lock without a timeout.
  for (const std::string data : {"3", "\x04>some", ""}) {
    w.eye("SET", "m", data);
    CHECK(w.code_of(redis.simple_mutex("m").force_unlock()) == errc::corrupt_lock);
    const auto text = text_of_failure([&] { w.run(redis.simple_mutex("m").force_unlock()); });
    CHECK(text.find("without a TTL") != text.npos);
    CHECK(w.eye("GET", "m") == data);
    CHECK(w.eye("PTTL", "m") == -1);
  }
  w.eye("PEXPIRE", "m", 60'000);
  CHECK(w.run(redis.simple_mutex("m").force_unlock()));
}

TEST_CASE("who may lock needs no more than the documented permissions, and hears of one that is missing") {
  const std::vector<std::string> needed{"+getrange", "+set",  "+del",     "+pexpire",   "+pttl",        "+hdel",
                                        "+publish",  "+eval", "+evalsha", "+subscribe", "+unsubscribe", "+exists"};
  const auto life = [](world& w, client& redis) {
    auto mutex = redis.simple_mutex("m");
    auto held = w.run(mutex.lock());
    (void)w.run(mutex.try_lock());
    started<lease> waiting(w, redis.simple_mutex("m").lock());
    w.until([&] { return w.eye("PUBSUB", "NUMSUB", "holdfast_simple:{m}").array()[1] == 1; });
    w.run(held.renew());
    w.run(held.unlock());
    w.until([&] { return waiting.succeeded(); });
    w.run(waiting.answer->value().unlock());
  };
  const auto make_user = [](world& w, const std::vector<std::string>& may) {
    std::vector<std::string> rules{
        "ACL", "SETUSER", "app", "reset", "on", ">secret", "~m", "resetchannels", "&holdfast_simple:*", "-@all"};
    rules.insert(rules.end(), may.begin(), may.end());
    for (const auto* connects : {"+client|id", "+client|setname", "+client|kill", "+info", "+role", "+ping"})
      rules.push_back(connects);
    REQUIRE(w.eye.call(rules) == "OK");
  };
  const auto as_app = [](config& c) { c.url.replace(c.url.find("://"), 3, "://app:secret@"); };
  {
    world w;
    make_user(w, needed);
    auto redis = w.make(as_app);
    life(w, redis);
    CHECK(w.keys().empty());
  }
  for (const auto* missing : {"+set", "+evalsha"}) {
    INFO("without " << missing);
    const bool takes = std::string_view(missing) != "+set";
    world w;
    auto fewer = needed;
    std::erase(fewer, missing);
    make_user(w, fewer);
    auto redis = w.make(as_app);
    CHECK(w.code_of(redis.simple_mutex("m").try_lock()) == errc::no_permission);
    CHECK(w.keys().empty());
    if (!takes) CHECK(w.code_of(redis.simple_mutex("m").lock()) == errc::no_permission);
    if (!takes) continue;
    auto held = w.run(redis.simple_mutex("m").lock());
    CHECK(w.code_of(held.unlock()) == errc::no_permission);  // it ends with its TTL
  }
}
