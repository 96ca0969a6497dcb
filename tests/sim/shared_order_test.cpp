// SPDX-License-Identifier: BSL-1.0
// A shared mutex from script to script: turns, places, dead clients, Redisson on the same key. A long random walk shows
// that nobody writes beside others, whatever is lost.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "sim/script_rig.hpp"
#include "sim/shared_rig.hpp"
#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/real_cluster.hpp"
#include "support/real_redis.hpp"
#include "support/seeded_random.hpp"

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using namespace test::scripts;
using namespace test::shared_rig;
using test::value;
namespace lua = detail::lua;

/// A server, and clients that listen on channels.
struct scene {
  asked ask;
  std::function<void(const std::string& channel)> listen;   // another client subscribes
  std::function<void(const std::string& channel)> silence;  // the last one that did has gone
  std::function<void()> pass;                               // time goes on, by more than soon_over

  std::string does(const arguments& command) const { return text_of(ask(command)); }
  void has_only(const std::vector<arguments>& commands) const {
    REQUIRE(ask({"FLUSHALL"}) == "OK");
    for (const auto& command : commands) REQUIRE_FALSE(ask(command).is_error());
  }
  std::string turn_now() const { return does({"GET", turn}); }
  std::string members(const std::string& set) const { return does({"ZRANGE", set, "0", "-1"}); }
  long long ttl_of(const std::string& key) const { return ask({"PTTL", key}).integer(); }
  bool exists(const std::string& key) const { return ask({"EXISTS", key}) == 1; }
};
const std::string soon_over = "2";

struct simulated_scene {
  simulated servers;
  std::map<std::string, sim::node::session_id> listeners;
  scene on{servers.all.primary,
           [this](const std::string& name) {
             listeners[name] = servers.node.connect();
             servers.node.execute(listeners[name], {"SUBSCRIBE", name});
           },
           [this](const std::string& name) { servers.node.disconnect(listeners.at(name)); },
           [this] { servers.clock_us += 10'000; }};
};

struct scene_on_server {
  explicit scene_on_server(test::real_redis& of) : server(of) {}
  test::real_redis& server;
  test::raw_client client{server};
  std::multimap<std::string, test::raw_client> listeners;
  scene on{[this](const arguments& command) { return client.call(command); },
           [this](const std::string& name) { listeners.emplace(name, server)->second.subscribe(name); },
           [this](const std::string& name) { listeners.erase(name); },
           [this] {
             // A key that lives as long shows that the time is over.
             client("SET", "{m}clock", "x", "PX", soon_over);
             const auto limit = std::chrono::steady_clock::now() + 10s;
             while (client("EXISTS", "{m}clock") == 1) REQUIRE(std::chrono::steady_clock::now() < limit);
           }};
};

struct real_scene {
  test::real_redis server;
  scene_on_server there{server};
  const scene& on = there.on;
};

void on_both(void (*check)(const scene&)) {
  SECTION("simulated") { check(simulated_scene().on); }
  SECTION("real") {
    need_redis();
    check(real_scene().on);
  }
}

arguments wants_to_read(const std::string& owner) { return read_acquire(owner, "1"); }
arguments wants_to_write(const std::string& owner) { return write_acquire(owner, "1"); }
arguments reads_no_more(const std::string& owner) { return read_release("publish", owner, "0"); }
arguments writes_no_more(const std::string& owner) { return write_release("publish", owner, "0"); }

void check_wire(const scene& on) {
  on.has_only({});
  CHECK(on.does(read_acquire(my1, "0")) == "[1, 0, 0]");
  CHECK(on.does({"HGETALL", lock}) == "[mode, read, me:1, 1]");
  CHECK(on.does({"PTTL", lock}) == "ttl");
  CHECK(on.does({"GET", deadline(my1)}) == "1");
  CHECK(on.does({"PTTL", deadline(my1)}) == "ttl");
  CHECK(on.does(reads_no_more(my1)) == "[1, 0]");
  CHECK_FALSE(on.exists(lock));
  CHECK_FALSE(on.exists(deadline(my1)));
  CHECK(on.does(write_acquire(my1, "0")) == "[1]");
  CHECK(on.does({"HGETALL", lock}) == "[mode, write, me:1:write, 1]");
  CHECK(on.does({"PTTL", lock}) == "ttl");
  CHECK(on.does(writes_no_more(my1)) == "[0, 0, 0]");
  CHECK_FALSE(on.exists(lock));
  for (const auto& key : {queue, readers, turn}) CHECK_FALSE(on.exists(key));
}

void check_turn_of_a_writer(const scene& on) {
  on.listen(wake + waiter);
  on.has_only({});
  CHECK(on.does(wants_to_read(other1)) == "[1, 0, 0]");
  CHECK(on.does(wants_to_write(waiter1)) == "[0, ttl, 0]");
  CHECK(on.ttl_of(queue) > 20'000);
  CHECK(on.ttl_of(queue) <= 30'000);
  CHECK(on.does(wants_to_read(my1)) == "[0, ttl]");
  CHECK(on.members(readers) == "[me]");
  CHECK(on.does(read_release("publish", other1, "0", "20")) == "[1, 1]");
  CHECK(on.members(queue) == "[]");
  // Nobody else gets the lock in this turn.
  on.ask({"SET", turn, waiter, "PX", reserve_ms});
  CHECK(on.does(wants_to_read(my1)) == "[0, -2]");
  CHECK(on.does(write_acquire(my1, "0")) == "[0, -2, -1]");
  CHECK(on.does(write_acquire(waiter1, "2")) == "[1]");
  CHECK_FALSE(on.exists(turn));
  CHECK(on.members(queue) == "[]");
}

void check_turn_of_readers(const scene& on) {
  on.listen(wake + waiter);
  on.has_only({});
  const auto third = dead + ":1";
  CHECK(on.does(wants_to_write(dead + ":9")) == "[1]");
  for (const auto& owner : {my1, other1}) CHECK(on.does(wants_to_read(owner)) == "[0, ttl]");
  CHECK(on.does(wants_to_write(waiter1)) == "[0, ttl, 0]");
  CHECK(on.does(writes_no_more(dead + ":9")) == "[1, 2, 0]");
  CHECK(on.turn_now() == "r");
  CHECK(on.does({"PTTL", turn}) == "long");
  CHECK(on.does({"ZRANGE", readers, "0", "-1", "WITHSCORES"}) == "[me, 0, other, 0]");
  // A client that comes now waits for the next turn, and a writer for the readers.
  CHECK(on.does(read_acquire(third, "0")) == "[0, -2]");
  CHECK(on.does(wants_to_write(waiter1)) == "[0, -2, 0]");
  CHECK(on.does(wants_to_read(my1)) == "[1, 1, 0]");
  CHECK(on.does(read_acquire(third, "0")) == "[0, ttl]");
  // The other one is still to come.
  CHECK(on.does(reads_no_more(my1)) == "[1, 0]");
  CHECK(on.does(wants_to_read(other1)) == "[1, 1, 0]");
  CHECK(on.members(readers) == "[]");
  CHECK(on.does(reads_no_more(other1)) == "[1, 1]");
  CHECK(on.turn_now() == "waiter");
  CHECK(on.does({"PTTL", turn}) == "long");
}

void check_turn_that_nobody_takes(const scene& on) {
  on.listen(wake + waiter);
  on.has_only({{"SET", turn, other, "PX", soon_over}, {"ZADD", queue, "5", waiter}});
  on.pass();
  CHECK(on.does(write_acquire(my1, "0")) == "[0, -2, -1]");  // others wait
  CHECK(on.does(write_acquire(my1, "1")) == "[1]");
  on.has_only({{"SET", turn, "r", "PX", soon_over}, {"ZADD", readers, "0", other}, {"ZADD", queue, "5", waiter}});
  on.pass();
  CHECK(on.does(wants_to_read(my1)) == "[1, 1, 0]");
  // Readers that did not come are not asked again.
  on.has_only({{"ZADD", readers, "0", other, "7", me}});
  CHECK(on.does(wants_to_write(waiter1)) == "[1]");
  CHECK(on.does(writes_no_more(waiter1)) == "[0, 1, 0]");
  CHECK(on.members(readers) == "[me]");
  // A turn without a TTL is nobody's.
  on.has_only({{"SET", turn, waiter}});
  CHECK(on.does(read_acquire(my1, "0")) == "[1, 0, 0]");
  on.has_only({{"SET", turn, waiter}});
  CHECK(on.does(write_acquire(my1, "0")) == "[1]");
}

void check_woken_writer_that_comes_late(const scene& on) {
  on.has_only({});
  on.listen(wake + waiter);
  CHECK(on.does(wants_to_write(my1)) == "[1]");
  CHECK(on.does(wants_to_write(other1)) == "[0, ttl, 0]");
  CHECK(on.does(write_acquire(waiter1, "2")) == "[0, ttl, 0]");
  CHECK(on.members(queue) == "[waiter, other]");
  CHECK(on.does(wants_to_write(waiter1)) == "[0, ttl, 0]");  // a place is kept
  CHECK(on.does(write_release("publish", my1, "2")) == "[2, 0, 1]");
  CHECK(on.turn_now() == "waiter");
  CHECK(on.members(queue) == "[other, me]");
}

void check_dead_clients(const scene& on) {
  on.listen(wake + waiter);
  const std::vector<arguments> waiting{{"ZADD", queue, "1", dead, "2", waiter, "3", other}};
  on.has_only(waiting);
  CHECK(on.does(read_acquire(my1, "0")) == "[1, 3, 0]");
  CHECK(on.does(reads_no_more(my1)) == "[1, 1]");
  CHECK(on.turn_now() == "waiter");
  CHECK(on.members(queue) == "[other]");
  on.has_only(waiting);
  CHECK(on.does(wants_to_write(my1)) == "[1]");
  CHECK(on.does(writes_no_more(my1)) == "[2, 0, 1]");
  CHECK(on.turn_now() == "waiter");
  on.has_only({{"ZADD", queue, "1", dead, "2", other}});
  CHECK(on.does(wants_to_write(my1)) == "[1]");
  CHECK(on.does(writes_no_more(my1)) == "[0, 0, 0]");
  CHECK(on.turn_now() == "(nil)");
  CHECK(on.members(queue) == "[]");
  // A client that does not wait comes after living clients alone.
  for (const auto& set : {queue, readers}) {
    on.has_only({{"ZADD", set, "1", dead, "2", waiter, "3", other}});
    CHECK(on.does(write_acquire(my1, "0")) == "[0, -2, -1]");
    CHECK(on.members(set) == "[waiter, other]");
    on.has_only({{"ZADD", set, "1", dead, "2", other}});
    CHECK(on.does(write_acquire(my1, "0")) == "[1]");
    CHECK(on.members(set) == "[]");
  }
}

void check_places_that_end(const scene& on) {
  on.listen(wake + waiter);
  const auto leaves_writers = [](const std::string& owner) { return write_release("publish", owner, "1"); };
  const auto leaves_readers = [](const std::string& owner) { return read_release("publish", owner, "1"); };
  // The turn of a client that leaves is the next one's.
  on.has_only({{"SET", turn, me, "PX", long_ms}, {"ZADD", queue, "5", waiter}});
  CHECK(on.does(leaves_writers(my1)) == "(nil)");
  CHECK(on.turn_now() == "waiter");
  on.has_only({{"SET", turn, me, "PX", long_ms}, {"ZADD", readers, "5", other}});
  CHECK(on.does(leaves_writers(my1)) == "(nil)");
  CHECK(on.turn_now() == "r");
  // A turn of others is left alone.
  on.has_only({{"SET", turn, waiter, "PX", long_ms}, {"ZADD", queue, "5", me, "6", other}});
  CHECK(on.does(leaves_writers(my1)) == "(nil)");
  CHECK(on.turn_now() == "waiter");
  CHECK(on.members(queue) == "[other]");
  // While the lock is held, there is no turn to give.
  on.has_only({{"ZADD", queue, "5", me, "6", waiter}});
  CHECK(on.does(read_acquire(other1, "0")) == "[1, 2, 0]");
  CHECK(on.does(leaves_writers(my1)) == "(nil)");
  CHECK(on.turn_now() == "(nil)");
  CHECK(on.members(queue) == "[waiter]");
  // Of the readers that were asked the last one gives the turn on.
  on.has_only(
      {{"SET", turn, "r", "PX", long_ms}, {"ZADD", readers, "0", me, "0", other}, {"ZADD", queue, "5", waiter}});
  CHECK(on.does(leaves_readers(my1)) == "(nil)");
  CHECK(on.turn_now() == "r");
  CHECK(on.does(leaves_readers(other1)) == "(nil)");
  CHECK(on.turn_now() == "waiter");
  // A reader that was not asked has no turn.
  on.has_only({{"SET", turn, other, "PX", long_ms}, {"ZADD", readers, "7", me}, {"ZADD", queue, "5", waiter}});
  CHECK(on.does(leaves_readers(my1)) == "(nil)");
  CHECK(on.turn_now() == "other");
  CHECK(on.members(readers) == "[]");
  // A release of a hold takes the place as well.
  on.has_only({{"ZADD", queue, "5", me}});
  CHECK(on.does(write_acquire(my1, "1")) == "[1]");
  CHECK(on.members(queue) == "[]");
  on.ask({"ZADD", queue, "5", me});
  CHECK(on.does(leaves_writers(my1)) == "[0, 0, 0]");
  CHECK(on.members(queue) == "[]");
}

void check_dead_readers(const scene& on) {
  const auto read_by = [&](const std::string& fields, const std::vector<arguments>& more) {
    on.has_only({});
    arguments all{"HSET", lock, "mode", "read"};
    for (std::size_t i = 0; i < std::stoul(fields); ++i) {
      all.push_back("gone:" + std::to_string(i));
      all.push_back("2");
    }
    on.ask(all);
    on.ask({"PEXPIRE", lock, long_ms});
    for (const auto& command : more) on.ask(command);
    return on.does(write_acquire(my1, "0"));
  };
  CHECK(read_by("64", {}) == "[1]");
  CHECK(read_by("65", {}) == "[0, long, -1]");
  // Redisson has a deadline for each of a reader's holds.
  CHECK(read_by("3", {{"SET", "{m}:gone:2:rwlock_timeout:2", "1"}}) == "[0, long, -1]");
  CHECK(read_by("3", {{"SET", "{m}:gone:2:rwlock_timeout:3", "1"}}) == "[1]");
  // A dead reader is left to its TTL while others read.
  on.has_only({{"HSET", lock, "mode", "read", other1, "1"}, {"PEXPIRE", lock, long_ms}});
  CHECK(on.does(read_acquire(my1, "0")) == "[1, 0, 0]");
  CHECK(on.does(reads_no_more(my1)) == "[0, 0]");
  CHECK_FALSE(on.exists(deadline(my1)));
  CHECK(on.does(write_acquire(my1, "0")) == "[1]");
}

void check_renewals(const scene& on) {
  const auto renew = [&](const std::string& owner, const arguments& more = {}) {
    const bool writes = owner.ends_with(":write");
    arguments args{ms, owner};
    args.insert(args.end(), more.begin(), more.end());
    return on.does(eval(lua::shared_renew, {lock, writes ? lock : deadline(owner)}, args));
  };
  const auto write1 = my1 + ":write";
  on.has_only({});
  on.does(read_acquire(my1, "0"));
  on.ask({"DEL", deadline(my1)});
  CHECK(renew(my1) == "[1]");
  CHECK(on.does({"PTTL", deadline(my1)}) == "ttl");
  for (const auto& key : {lock, deadline(my1)}) on.ask({"PEXPIRE", key, long_ms});
  CHECK(renew(my1) == "[1]");
  CHECK(on.does({"PTTL", lock}) == "long");
  CHECK(on.does({"PTTL", deadline(my1)}) == "long");
  for (const auto& key : {lock, deadline(my1)}) on.ask({"PEXPIRE", key, "1000"});
  CHECK(renew(my1) == "[1]");
  CHECK(on.does({"PTTL", lock}) == "ttl");
  CHECK(on.does({"PTTL", deadline(my1)}) == "ttl");
  on.ask({"PERSIST", lock});
  CHECK(renew(my1, {long_ms}) == "[1]");
  CHECK(on.does({"PTTL", lock}) == "long");
  on.has_only({});
  on.does(write_acquire(my1, "0"));
  on.ask({"PERSIST", lock});
  CHECK(renew(write1) == "[1]");
  CHECK(on.does({"PTTL", lock}) == "ttl");
  // A field in the other mode is no hold.
  on.ask({"HSET", lock, "mode", "read"});
  CHECK(renew(write1) == "[-1]");
  on.has_only({{"HSET", lock, "mode", "write", my1, "1"}, {"PEXPIRE", lock, long_ms}});
  CHECK(renew(my1) == "[-1]");
  on.has_only({{"HSET", lock, my1, "1"}, {"PEXPIRE", lock, long_ms}});
  CHECK(renew(my1) == "[-1]");
  // A key of another type keeps none of the others from being renewed.
  on.has_only({{"SET", lock, "text"}, {"HSET", "n", "mode", "write", write1, "1"}});
  CHECK(on.does(eval(lua::shared_renew, {lock, lock, "n", "n"}, {ms, ms, write1, write1})) == "[0, 1]");
  CHECK(on.does({"PTTL", "n"}) == "ttl");
}

void check_downgrade(const scene& on) {
  on.listen(wake + waiter);
  on.has_only({});
  on.does(write_acquire(my1, "0"));
  on.ask({"PEXPIRE", lock, "1000"});
  CHECK(on.does(wants_to_read(other1)).starts_with("[0, "));
  CHECK(on.does(wants_to_write(waiter1)).starts_with("[0, "));
  CHECK(on.does(downgrade("publish", my1)) == "1");
  CHECK(on.does({"HGETALL", lock}) == "[mode, read, me:1, 1]");
  CHECK(on.does({"PTTL", lock}) == "ttl");
  CHECK(on.does({"PTTL", deadline(my1)}) == "ttl");
  CHECK(on.turn_now() == "r");
  // A second copy counts from its own time, and shortens nothing.
  for (const auto& key : {lock, deadline(my1)}) on.ask({"PEXPIRE", key, "1000"});
  CHECK(on.does(downgrade("publish", my1)) == "1");
  for (const auto& key : {lock, deadline(my1)}) CHECK(on.does({"PTTL", key}) == "ttl");
  for (const auto& key : {lock, deadline(my1)}) on.ask({"PEXPIRE", key, long_ms});
  CHECK(on.does(downgrade("publish", my1)) == "1");
  for (const auto& key : {lock, deadline(my1)}) CHECK(on.does({"PTTL", key}) == "long");
  for (const auto& key : {lock, deadline(my1)}) on.ask({"PEXPIRE", key, ms});
  CHECK(on.does(writes_no_more(my1)) == "(nil)");
  CHECK(on.does(wants_to_read(other1)) == "[1, 1, 0]");
  CHECK(on.does(wants_to_write(waiter1)) == "[0, ttl, 0]");
  CHECK(on.does(reads_no_more(my1)) == "[0, 0]");
  CHECK(on.does(reads_no_more(other1)) == "[1, 1]");
  CHECK(on.turn_now() == "waiter");
  CHECK(on.does(downgrade("publish", my1)) == "0");
}

void check_peers(const scene& on) {
  const std::string java = "00000000-0000-4000-8000-0000000000ee:7";
  const auto peer_reads = peer::call(peer::read_lock, java), peer_writes = peer::call(peer::write_lock, java),
             peer_read_ends = peer::call(peer::read_unlock, java),
             peer_write_ends = peer::call(peer::write_unlock, java);
  on.has_only({});
  // It reads, twice.
  CHECK(on.does(peer_reads) == "(nil)");
  CHECK(on.does(peer_reads) == "(nil)");
  CHECK(on.does(write_acquire(my1, "0")) == "[0, ttl, -1]");
  CHECK(on.does(read_acquire(my1, "0")) == "[1, 0, 0]");
  CHECK(on.does(peer_writes) == "ttl");
  CHECK(on.does(peer_read_ends) == "0");
  CHECK(on.does(peer_read_ends) == "0");
  // Our read hold stays, although the peer was there before it.
  CHECK(on.does({"HGETALL", lock}) == "[mode, read, me:1, 1]");
  CHECK(on.does({"PTTL", lock}) == "ttl");
  CHECK(on.does(peer_writes) == "ttl");
  CHECK(on.does(peer_reads) == "(nil)");
  CHECK(on.does(reads_no_more(my1)) == "[0, 0]");
  CHECK(on.does(write_acquire(my1, "0")) == "[0, ttl, -1]");
  CHECK(on.does(peer_read_ends) == "1");
  // We write.
  CHECK(on.does(write_acquire(my1, "0")) == "[1]");
  CHECK(on.does(peer_reads) == "ttl");
  CHECK(on.does(peer_writes) == "ttl");
  CHECK(on.does(peer_write_ends) == "(nil)");
  CHECK(on.does(downgrade("publish", my1)) == "1");
  CHECK(on.does(peer_reads) == "(nil)");
  CHECK(on.does(reads_no_more(my1)) == "[0, 0]");
  CHECK(on.does(peer_read_ends) == "1");
  // It writes, and reads under its write hold.
  CHECK(on.does(peer_writes) == "(nil)");
  CHECK(on.does(read_acquire(my1, "0")) == "[0, ttl]");
  CHECK(on.does(write_acquire(my1, "0")) == "[0, ttl, -1]");
  CHECK(on.does(peer_reads) == "(nil)");
  CHECK(on.does(eval(lua::shared_holder, {lock}, {})).starts_with("[write, " + java + ", 1, "));
  CHECK(on.does(peer_write_ends) == "1");
  CHECK(on.does(write_acquire(my1, "0")) == "[0, ttl, -1]");
  CHECK(on.does(read_acquire(my1, "0")) == "[1, 0, 0]");
  CHECK(on.does(peer_read_ends) == "0");
  CHECK(on.does(eval(lua::shared_force, {lock}, {"publish", channel})) == "1");
  // It died while it read.
  CHECK(on.does(peer_reads) == "(nil)");
  on.ask({"DEL", "{m}:" + java + ":rwlock_timeout:1"});
  CHECK(on.does(write_acquire(my1, "0")) == "[1]");
  // A subscriber of the channel that is no client of ours is a waiting peer.
  on.does(writes_no_more(my1));
  on.listen(channel);
  on.listen(waiters_channel);
  CHECK(on.does(read_acquire(my1, "0")) == "[1, 0, 0]");
  on.listen(channel);
  CHECK(on.does(read_acquire(other1, "0")) == "[1, 0, 1]");
}

/// Random scripts of four clients and two peers, while keys are lost and clients die.
class random_walk {
 public:
  random_walk(const scene& on, std::uint64_t seed) : on_(on), random_(seed) {
    on.has_only({});
    for (auto& client : clients_) client = born();
  }

  void step() {
    const auto dice = below(100);
    if (dice < 1) return die(clients_[below(clients_.size())]);
    if (dice < 2) return lose_the_lock();
    if (dice < 5) return void(on_.ask({"DEL", std::array{queue, readers, turn}[below(3)]}));
    if (dice < 8) return on_.pass();
    if (dice < 25) return act(peers_[below(peers_.size())]);
    act(clients_[below(clients_.size())]);
  }
  /// Nobody wants anything new, and everybody who waits is served.
  void drain() {
    for (int round = 0; round < 1000; ++round) {
      bool over = true;
      for (auto& java : peers_) give_back(java);
      for (auto& client : clients_) {
        for (const char side : {'r', 'w'})
          if (client.waits.contains(side)) ask_for(client, side, true);
        over = over && client.waits.empty() && client.holds.empty();
        while (!client.holds.empty()) give_back(client);
      }
      if (over) return;
      on_.pass();
    }
    FAIL("somebody waits for ever");
  }
  std::size_t grants() const noexcept { return grants_; }
  std::size_t grants_of_peers() const noexcept { return grants_of_peers_; }

 private:
  struct client {
    std::string id;
    int number = 0;
    std::set<char> waits{};               // to read, to write
    std::map<std::string, char> holds{};  // its owners, in its view
  };
  struct peer_of_java {
    std::string owner;
    int reads = 0;
    bool writes = false;
  };

  std::size_t below(std::size_t n) { return random_.next() % n; }
  client born() {
    auto number = std::to_string(++last_);
    client made{"00000000-0000-8000-8000-" + std::string(12 - number.size(), '0') + number};
    on_.listen(wake + made.id);
    return made;
  }
  /// The answers to a command, and to the copy of it that comes now and then.
  std::pair<value, std::optional<value>> twice(const arguments& command) {
    auto first = on_.ask(command);
    INFO(text_of(first));
    REQUIRE_FALSE(first.is_error());
    check_lock();
    if (below(100) >= 15) return {std::move(first), std::nullopt};
    auto second = on_.ask(command);
    check_lock();
    return {std::move(first), std::move(second)};
  }
  static bool acquired(const value& answer) { return answer.elements.at(0) == 1; }

  void check_lock() const {
    const auto found = on_.ask({"HGETALL", lock}).strings();
    if (found.empty()) return;
    REQUIRE(on_.ttl_of(lock) >= 0);
    std::map<std::string, std::string> fields;
    for (std::size_t i = 0; i < found.size(); i += 2) fields[found[i]] = found[i + 1];
    REQUIRE(fields.contains("mode"));
    if (fields["mode"] == "write") REQUIRE(fields.size() == 2);
  }
  void grant(const std::string& owner, char side) {
    INFO(owner << " gets side " << side);
    for (const auto& [holder, other_side] : held_) {
      INFO(holder << " has side " << other_side);
      REQUIRE((side == 'r' && other_side == 'r'));
    }
    held_[owner] = side;
    ++grants_;
  }

  void act(client& actor) {
    switch (below(8)) {
      case 0: return void(actor.waits.insert(below(3) == 0 ? 'w' : 'r'));
      case 1: return renew(actor);
      case 2: return leave(actor);
      case 3: return downgrade_of(actor);
      case 4:
      case 5: return give_back(actor);
      default:
        for (const char side : {'r', 'w'})
          if (actor.waits.contains(side) && below(2)) return ask_for(actor, side, false);
    }
  }

  void ask_for(client& actor, char side, bool stands) {
    const auto owner = actor.id + ":" + std::to_string(++actor.number);
    const bool asked = on_.ask({"GET", turn}) == actor.id;
    const std::string stand = side == 'w' && asked ? "2" : stands || below(5) ? "1" : "0";
    const auto [first, second] = twice(side == 'r' ? read_acquire(owner, stand) : write_acquire(owner, stand));
    if (second && acquired(first)) REQUIRE(acquired(*second));
    if (!acquired(second ? *second : first)) return;
    actor.waits.erase(side);
    actor.holds[owner] = side;
    grant(owner, side);
  }

  void give_back(client& actor) {
    if (actor.holds.empty()) return;
    const auto [owner, side] = *std::next(actor.holds.begin(), static_cast<std::ptrdiff_t>(below(actor.holds.size())));
    const bool live = held_.erase(owner) == 1;
    actor.holds.erase(owner);
    const auto [first, second] =
        twice(side == 'r' ? read_release("publish", owner, actor.waits.contains('r') ? "0" : "1", soon_over)
                          : write_release("publish", owner, actor.waits.contains('w') ? "2" : "0", soon_over));
    REQUIRE(first.is_nil() == !live);
    if (second) REQUIRE(second->is_nil());
  }

  void leave(client& actor) {
    if (actor.waits.empty() || below(4) != 0) return;
    const auto side = *actor.waits.begin();
    actor.waits.erase(side);
    const auto never_held = actor.id + ":" + std::to_string(++actor.number);
    REQUIRE(twice(side == 'r' ? read_release("publish", never_held, "1", soon_over)
                              : write_release("publish", never_held, "1", soon_over))
                .first.is_nil());
  }

  void renew(client& actor) {
    for (const auto& [owner, side] : actor.holds) {
      const auto field = side == 'r' ? owner : owner + ":write";
      const auto answer =
          twice(eval(lua::shared_renew, {lock, side == 'r' ? deadline(owner) : lock}, {ms, field})).first;
      REQUIRE(acquired(answer) == held_.contains(owner));
    }
  }

  void downgrade_of(client& actor) {
    for (auto& [owner, side] : actor.holds) {
      if (side != 'w' || below(2)) continue;
      const bool live = held_.contains(owner);
      const auto [first, second] = twice(downgrade("publish", owner, soon_over));
      REQUIRE((first == 1) == live);
      if (second) REQUIRE(*second == first.number);
      side = 'r';
      if (live) held_[owner] = 'r';
    }
  }

  void act(peer_of_java& actor) {
    const auto call = [&](std::string_view script) {
      auto answer = on_.ask(peer::call(script, actor.owner));
      REQUIRE_FALSE(answer.is_error());
      check_lock();
      return answer;
    };
    if (actor.writes || actor.reads == 2 || (actor.reads > 0 && below(2))) return give_back(actor);
    const char side = actor.reads > 0 || below(2) ? 'r' : 'w';
    if (!call(side == 'r' ? peer::read_lock : peer::write_lock).is_nil()) return;
    if (actor.reads == 0 || !held_.contains(actor.owner)) grant(actor.owner, side);
    if (side == 'w') actor.writes = true;
    if (side == 'r') actor.reads = on_.ask({"HGET", lock, actor.owner}).integer();
    ++grants_of_peers_;
  }
  void give_back(peer_of_java& actor) {
    while (actor.writes || actor.reads > 0) {
      const bool live = held_.contains(actor.owner);
      const auto answer = on_.ask(peer::call(actor.writes ? peer::write_unlock : peer::read_unlock, actor.owner));
      REQUIRE(answer.is_nil() == !live);
      actor.writes = false;
      actor.reads = live ? std::max(0, actor.reads - 1) : 0;
      if (actor.reads == 0) held_.erase(actor.owner);
      check_lock();
    }
  }

  /// Its write hold ends by the TTL. A read hold's deadline ends so, and its field stays while others read.
  void die(client& actor) {
    on_.silence(wake + actor.id);
    for (const auto& [owner, side] : actor.holds) {
      if (held_.erase(owner) == 0) continue;
      if (side == 'w')
        on_.ask({"DEL", lock});
      else
        on_.ask({"DEL", deadline(owner)});
    }
    actor = born();
  }
  void lose_the_lock() {
    on_.ask({"DEL", lock});
    held_.clear();
  }

  const scene& on_;
  test::seeded_random random_;
  long long last_ = 0;
  std::array<client, 4> clients_;
  std::array<peer_of_java, 2> peers_{peer_of_java{"00000000-0000-4000-8000-000000000001:7"},
                                     peer_of_java{"00000000-0000-4000-8000-000000000002:7"}};
  std::map<std::string, char> held_;  // by owner: each hold that somebody was granted and may believe in
  std::size_t grants_ = 0, grants_of_peers_ = 0;
};

void walk(const scene& on, std::uint64_t seed, int steps) {
  random_walk walker(on, seed);
  for (int i = 0; i < steps; ++i) {
    INFO("seed " << seed << ", step " << i);
    walker.step();
  }
  walker.drain();
  CHECK(walker.grants() > static_cast<std::size_t>(steps) / 20);
  CHECK(walker.grants_of_peers() > static_cast<std::size_t>(steps) / 100);
}

}  // namespace

TEST_CASE("a shared mutex is stored as Redisson stores it") { on_both(check_wire); }

TEST_CASE("readers that come while a client waits to write are kept out, and the client gets its turn") {
  on_both(check_turn_of_a_writer);
}

TEST_CASE("after a writer all that wait to read come, and then the next writer") { on_both(check_turn_of_readers); }

TEST_CASE("a turn that nobody takes ends") { on_both(check_turn_that_nobody_takes); }

TEST_CASE("a client that was asked to write and comes late waits before the others") {
  on_both(check_woken_writer_that_comes_late);
}

TEST_CASE("a dead client in the queue of writers is passed over") { on_both(check_dead_clients); }

TEST_CASE("a client that leaves takes its place and its turn with it") { on_both(check_places_that_end); }

TEST_CASE("a lock of dead readers is free to write") { on_both(check_dead_readers); }

TEST_CASE("a renewal of a shared mutex makes a lost deadline again, and shortens none") { on_both(check_renewals); }

TEST_CASE("a write hold becomes a read hold, and readers that wait are asked") { on_both(check_downgrade); }

TEST_CASE("a shared mutex and Redisson's on one key exclude each other") { on_both(check_peers); }

TEST_CASE("all keys of a shared mutex are in the slot of its name, also those that no script declares") {
  need_redis();
  test::real_cluster cluster;
  const auto slot = cluster.slot_of(lock);
  const auto at = cluster.owner(slot);
  scene_on_server there(cluster.node(at));
  for (const auto check : {check_wire, check_dead_readers, check_turn_of_readers, check_peers}) check(there.on);
  // While the slot moves, a script with a missing key is put off.
  there.on.has_only({{"HSET", lock, "mode", "read", other1, "1"}, {"PEXPIRE", lock, ms}});
  cluster.begin_move(slot, (at + 1) % test::real_cluster::shards);
  for (const auto& call : {read_acquire(my1, "1"), write_acquire(my1, "1"), reads_no_more(other1)})
    CHECK(there.on.ask(call).text.starts_with("TRYAGAIN"));
  CHECK(there.on.does({"HGETALL", lock}) == "[mode, read, other:1, 1]");
}

TEST_CASE("nobody writes beside others in a random walk, and everybody who waits is served") {
  SECTION("simulated") {
    for (const auto seed : {1U, 2U, 3U}) walk(simulated_scene().on, seed, 5'000);
  }
  SECTION("real") {
    need_redis();
    walk(real_scene().on, 4, 2'000);
  }
}

TEST_CASE("a shared mutex tells a writer by name, its readers by the channel, and peers where there are some") {
  simulated_scene scene;
  const auto& on = scene.on;
  std::vector<std::string> told;
  scene.servers.node.on_publish = [&](std::string_view name, std::string_view payload) {
    std::string line(name == wake + waiter ? "wake" : name == channel ? "channel" : name);
    told.push_back(line.append(" ").append(payload));
  };
  const auto after = [&](const std::vector<arguments>& found, const arguments& command) {
    on.has_only(found);
    told.clear();
    on.ask(command);
    return std::exchange(told, {});
  };
  using lines = std::vector<std::string>;
  const std::vector<arguments> reads{{"HSET", lock, "mode", "read", my1, "1"}},
      writes{{"HSET", lock, "mode", "write", my1 + ":write", "1"}};
  const auto with = [](std::vector<arguments> all, const arguments& more) {
    all.push_back(more);
    return all;
  };
  const arguments writer_waits{"ZADD", queue, "5", waiter}, reader_waits{"ZADD", readers, "5", waiter},
      dead_waits{"ZADD", queue, "5", dead};
  on.listen(wake + waiter);
  scene.servers.node.execute(scene.servers.node.connect(), {"SSUBSCRIBE", wake + waiter});
  for (const auto* word : {"publish", "both"}) {
    const std::string copy = word == std::string_view("both") ? "0" : "";
    const auto lines_of = [&](const std::string& name, const std::string& payload) {
      return copy.empty() ? lines{name + payload} : lines{name + copy + payload, name + payload};
    };
    CHECK(after(reads, read_release(word, my1, "0")) == lines_of("channel ", "0"));
    CHECK(after(with(reads, writer_waits), read_release(word, my1, "0")) == lines_of("wake ", "w"));
    CHECK(after(with(reads, dead_waits), read_release(word, my1, "0")) == lines_of("channel ", "1"));
    // The clients behind the called one hear of the call.
    const arguments behind{"ZADD", queue, "6", other};
    auto both = lines_of("wake ", "w");
    for (const auto& line : lines_of("channel ", "2")) both.push_back(line);
    CHECK(after(with(with(reads, writer_waits), behind), read_release(word, my1, "0")) == both);
    CHECK(after(with(with(reads, writer_waits), reader_waits), read_release(word, my1, "0")) == both);
    // Their rank is less by the dead clients, too.
    const arguments dead_before{"ZADD", queue, "4", dead};
    auto two_left = lines_of("wake ", "w");
    for (const auto& line : lines_of("channel ", "3")) two_left.push_back(line);
    CHECK(after(with(with(with(reads, dead_before), writer_waits), behind), read_release(word, my1, "0")) == two_left);
    CHECK(after(with(with(with(writes, dead_before), writer_waits), behind), write_release(word, my1, "0")) ==
          two_left);
    CHECK(after(with(with(writes, writer_waits), behind), write_release(word, my1, "0")) == both);
    CHECK(after(writes, write_release(word, my1, "0")) == lines_of("channel ", "1"));
    CHECK(after(writes, write_release(word, my1, "2")) == lines_of("channel ", "1"));
    CHECK(after(with(writes, writer_waits), write_release(word, my1, "0")) == lines_of("wake ", "w"));
    CHECK(after(with(writes, reader_waits), write_release(word, my1, "0")) == lines_of("channel ", "1"));
    CHECK(after(with(with(writes, writer_waits), reader_waits), write_release(word, my1, "0")) ==
          lines_of("channel ", "1"));
    CHECK(after(writes, downgrade(word, my1)) == lines_of("channel ", "1"));
    CHECK(after(reads, eval(lua::shared_force, {lock}, {word, channel})) == lines_of("channel ", "1"));
    // The door that a client kept closed opens.
    const std::vector<arguments> behind_a_door{
        {"HSET", lock, "mode", "read", other1, "1"}, {"ZADD", queue, "5", me}, reader_waits};
    CHECK(after(behind_a_door, write_release(word, my1, "1")) == lines_of("channel ", "1"));
    CHECK(after(with(behind_a_door, writer_waits), write_release(word, my1, "1")).empty());
    CHECK(after(with(reads, {"HSET", lock, other1, "1"}), read_release(word, my1, "0")).empty());
    CHECK(after({}, read_release(word, my1, "0")).empty());
    CHECK(after({}, write_release(word, my1, "0")).empty());
  }
  // A peer waits.
  on.listen(channel);
  CHECK(after(with(reads, writer_waits), read_release("publish", my1, "0")) == lines{"wake w", "channel 0"});
  CHECK(after(with(writes, writer_waits), write_release("publish", my1, "0")) == lines{"wake w", "channel 1"});
}

TEST_CASE("a client that listens by SSUBSCRIBE lives for scripts that publish so") {
  simulated_scene scene;
  const auto& on = scene.on;
  auto& node = scene.servers.node;
  node.execute(node.connect(), {"SSUBSCRIBE", wake + waiter});
  const auto turn_after = [&](const char* word) {
    on.has_only({{"ZADD", queue, "5", waiter}});
    on.does(read_acquire(my1, "0"));
    on.does(read_release(word, my1, "0"));
    return on.turn_now();
  };
  for (const auto* word : {"spublish", "auto", "both"}) CHECK(turn_after(word) == "waiter");
  CHECK(turn_after("publish") == "(nil)");
  for (const auto* word : {"spublish", "auto", "both", "publish"}) {
    CAPTURE(word);
    on.has_only({{"HSET", lock, "mode", "read", other1, "1"}, {"PEXPIRE", lock, ms}, {"ZADD", queue, "5", waiter}});
    CHECK(on.does(read_acquire(my1, "0", word)).starts_with(word == std::string_view("publish") ? "[1" : "[0"));
  }
}

TEST_CASE("a user who may not do a part of a shared mutex's script never leaves a lock without a TTL") {
  need_redis();
  real_scene scene;
  const auto& on = scene.on;
  test::raw_client guest(scene.server);
  on.listen(wake + waiter);
  const std::vector<std::string> commands{
      "exists", "hmget", "hget", "hset", "hdel",   "hlen",  "hgetall", "pttl",   "pexpire", "set",    "get",
      "del",    "time",  "zadd", "zrem", "zrange", "zrank", "zcard",   "zscore", "zpopmin", "pubsub", "publish"};
  const auto all_but = [&](const std::string& withheld) {
    arguments rule{"ACL", "SETUSER", "guest", "reset", "on", "nopass", "~*", "&*", "+eval"};
    for (const auto& command : commands)
      if (command != withheld) rule.push_back("+" + command);
    REQUIRE(on.ask(rule) == "OK");
    REQUIRE(guest("AUTH", "guest", "x") == "OK");
  };
  const std::vector<std::vector<arguments>> states{
      {},
      {{"ZADD", queue, "5", waiter, "6", dead}},
      {{"ZADD", readers, "5", other}},
      {{"HSET", lock, "mode", "read", other1, "1"}, {"PEXPIRE", lock, ms}, {"SET", deadline(other1), "1", "PX", ms}},
      {{"HSET", lock, "mode", "read", my1, "1"}, {"PEXPIRE", lock, ms}, {"ZADD", queue, "5", waiter}},
      {{"HSET", lock, "mode", "write", my1 + ":write", "1"}, {"PEXPIRE", lock, ms}, {"ZADD", readers, "5", other}}};
  const std::vector<arguments> calls{read_acquire(my1, "1"),
                                     write_acquire(my1, "1"),
                                     read_release("publish", my1, "1"),
                                     write_release("publish", my1, "2"),
                                     downgrade("publish", my1),
                                     eval(lua::shared_renew, {lock, deadline(my1)}, {ms, my1}),
                                     eval(lua::shared_force, {lock}, {"publish", channel})};
  for (const auto& withheld : commands)
    for (std::size_t s = 0; s < states.size(); ++s)
      for (const auto& call : calls) {
        INFO(call.at(1).substr(0, 40) << ", state " << s << ", without " << withheld);
        on.has_only(states[s]);
        all_but(withheld);
        const auto answer = guest.call(call);
        INFO(text_of(answer));
        CHECK(on.ttl_of(lock) != -1);
        // Without PUBSUB or PUBLISH everything goes on.
        if (withheld.starts_with("pub")) CHECK_FALSE(answer.is_error());
      }
}
