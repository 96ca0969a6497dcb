// SPDX-License-Identifier: BSL-1.0
// Readers and writers in a cluster, behind sentinels, and with few permissions.
#include <sstream>
#include <string>
#include <vector>

#include "integration/cluster_world.hpp"
#include "integration/sentinel_world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

void be_woken(config& c) { c.poll_cap = 60s; }  // by a message or never

/// A server that has the name, and the word by which it counts the subscribers of a channel.
struct place_of_name {
  long long waiting(const std::string& stem) { return eye("ZCARD", stem + ":{" + key + "}").integer(); }
  bool can_wake(const client& redis) {
    return eye("PUBSUB", count, "holdfast_wake:{" + key + "}:" + redis.id()).array()[1] == 1;
  }

  raw_client& eye;
  std::string key;
  std::string count = "NUMSUB";
};

/// Two clients read, write and wait for each other.
template <class World>
void use_both_sides(World& w, const client& first, const client& second, const std::string& name, place_of_name at) {
  INFO(name);
  const auto a = first.shared_mutex(name), b = second.shared_mutex(name);
  // A reader of the second client would join a renewed hold that is younger than 5 ms.
  auto reads = w.run(a.lock_shared()), beside = w.run(b.lock_shared({.ttl = 1h}));
  CHECK(w.run(a.read_holds()) == 2);
  CHECK_FALSE(w.run(b.try_lock()));
  started<lease> writes(w, a.lock());
  // Until its subscription the client counts as dead, and keeps no reader out.
  w.until([&] { return writes.answer || (at.waiting("holdfast_queue") == 1 && at.can_wake(first)); });
  started<lease> late(w, b.lock_shared());
  w.until([&] { return late.answer || at.waiting("holdfast_readers") == 1; });
  w.run(reads.renew());
  w.run(reads.unlock());
  CHECK_FALSE(writes.answer);
  w.run(beside.unlock());
  w.until([&] { return writes.succeeded(); });
  CHECK(w.run(b.holder())->id == writes.answer->value().id());
  CHECK_FALSE(late.answer);
  w.run(writes.answer->value().renew());
  w.run(writes.answer->value().unlock());
  w.until([&] { return late.succeeded(); });
  CHECK(w.run(a.force_unlock()));
  CHECK(w.code_of(late.answer->value().unlock()) == errc::lost);
}

const std::string of_a_mutex =
    "resetkeys resetchannels ~app:* &redisson_lock__channel:{app:* "
    "-@all +eval +evalsha +exists +hexists +hget +hset +hdel +hlen +hgetall +pttl +pexpire +publish +del "
    "+subscribe +unsubscribe +ping +client|setname +client|id +client|kill +info +role +select ";
const std::string names_of_both_sides =
    "~{app:* ~holdfast_turn:{app:* ~holdfast_queue:{app:* ~holdfast_readers:{app:* "
    "&redisson_rwlock:{app:* &holdfast_wake:{app:* &holdfast_waiters:{app:* ";
const std::vector<std::string> commands_of_both_sides{"+get",   "+set",     "+time",   "+hmget",
                                                      "+zadd",  "+zrem",    "+zrange", "+zrank",
                                                      "+zcard", "+zpopmin", "+zscore", "+pubsub|numsub"};

struct limited_world : world {
  void allow(const std::string& rights) {
    std::vector<std::string> command{"ACL", "SETUSER", "locker", "reset", "on", ">secret"};
    std::istringstream words(rights);
    for (std::string word; words >> word;) command.push_back(word);
    REQUIRE_FALSE(eye.call(command).is_error());
    eye("ACL", "LOG", "RESET");
  }
  client locker() {
    return make([](config& c) { c.user = "locker", c.password = "secret", c.key_prefix = "app:"; });
  }
  bool refused_anything() { return !eye("ACL", "LOG").array().empty(); }
  void use(const client& first, const client& second) { use_both_sides(*this, first, second, "s", {eye, "app:s"}); }
};

}  // namespace

TEST_CASE("readers and writers wait for each other on each primary of a cluster") {
  calm_cluster_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  for (std::size_t node = 0; node < 3; ++node) {
    const auto name = w.rig.name_on(node);
    auto eye = w.to(node);
    use_both_sides(w, a, b, name, {eye, name, "SHARDNUMSUB"});
  }
}

TEST_CASE("readers and writers wait for each other through sentinels") {
  sentinel_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  auto eye = w.to_primary();
  use_both_sides(w, a, b, "s", {eye, "s"});
}

TEST_CASE_METHOD(limited_world, "a user with the permissions of the header may read, write and wait for either") {
  std::string all = of_a_mutex + names_of_both_sides;
  for (const auto& command : commands_of_both_sides) all += command + ' ';
  allow(all);
  use(locker(), locker());
  CHECK_FALSE(refused_anything());
}

TEST_CASE_METHOD(limited_world, "connect() does not ask for the permissions of a shared mutex: its first lock does") {
  allow(of_a_mutex);
  auto redis = locker();
  run(redis.connect());
  const auto s = redis.shared_mutex("s");
  for (const auto code :
       {code_of(s.lock()), code_of(s.lock_shared()), code_of(s.try_lock()), code_of(s.try_lock_shared())})
    CHECK(code == errc::no_permission);
  CHECK(keys().empty());
}
