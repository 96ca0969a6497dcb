// SPDX-License-Identifier: BSL-1.0
// What an operator asks: who holds a lock, where does it run, who waits. By the library, and by the commands of
// docs/guide/incident.md, operating.md and docs/pool_of_workers.md, each pasted into a shell as it stands there.
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

#include "integration/cluster_world.hpp"
#include "integration/world.hpp"
#include "support/temp_folder.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The shell block under `<!-- run: name -->`.
std::string block_of_the_pages(const std::string& name) {
  const auto page = read_file(INCIDENT_MD) + read_file(OPERATING_MD) + read_file(POOL_MD) + read_file(READERS_MD) +
                    read_file(START_MD) + read_file(LEADER_MD) + read_file(IN_ORDER_MD);
  const std::string marker = "<!-- run: " + name + " -->\n\n```sh\n";
  const auto at = page.find(marker);
  REQUIRE(at != page.npos);
  const auto begin = at + marker.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

std::string run_shell(const std::string& script) {
  const std::unique_ptr<FILE, int (*)(FILE*)> out(::popen(("sh '" + script + "' 2>&1").c_str(), "re"), ::pclose);
  REQUIRE(out);
  std::string text;
  std::array<char, 4096> some;
  while (const auto size = std::fread(some.data(), 1, some.size(), out.get())) text.append(some.data(), size);
  return text;
}

/// The options by which redis-cli logs in as the rig does.
std::string login_of(const real_redis& server) {
  const auto login = server.login();
  return login.size() == 3 ? " --user " + login[1] + " --pass " + login[2] + " --no-auth-warning" : "";
}

/// A shell whose redis-cli talks to the test's server.
class shell {
 public:
  explicit shell(const world& w) : shell("-s '" + w.server.socket_path() + '\'' + login_of(w.server)) {}
  explicit shell(const std::string& options) {
    write("where", "command -v redis-cli");
    auto real = run_shell(folder_.path() + "/where");
    if (real.empty()) skip("no redis-cli");
    real.pop_back();
    write("redis-cli", "exec '" + real + "' " + options + " \"$@\"");
    REQUIRE(::chmod((folder_.path() + "/redis-cli").c_str(), 0700) == 0);
  }

  /// What all blocks of those names print, one pasted after the other.
  template <class... Names>
  std::string paste(const Names&... names) const {
    return paste_for("orders:42", names...);
  }
  /// The same for another lock than that of the page.
  template <class... Names>
  std::string paste_for(const std::string& lock, const Names&... names) const {
    std::string text = "PATH='" + folder_.path() + "':\"$PATH\"\n";
    for (const auto& name : {std::string(names)...}) text += block_of_the_pages(name) + '\n';
    if (const auto at = text.find("LOCK=orders:42\n"); at != text.npos) text.replace(at, 14, "LOCK='" + lock + '\'');
    write("pasted", text);
    return run_shell(folder_.path() + "/pasted");
  }

 private:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() + '/' + name) << "#!/bin/sh\n" << text << '\n';
  }

  temp_folder folder_;
};

std::string own_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

}  // namespace

TEST_CASE("holder says whose hold it is and how often and for how long") {
  world w;
  auto a = w.make(), b = w.make();
  const owner me;
  CHECK_FALSE(w.run(b.mutex("m").holder()));
  auto outer = w.run(a.mutex("m", me).lock()), inner = w.run(a.mutex("m", me).lock());
  CHECK(outer.id() == w.eye("HKEYS", "m").strings().at(0));
  w.until([&] { return w.eye("HVALS", "m").strings() == std::vector<std::string>{"2"}; });
  CHECK(outer.id() == inner.id());
  CHECK(outer.id() == a.id() + ":1");
  for (auto* redis : {&a, &b}) {
    const auto who = w.run(redis->mutex("m").holder());
    REQUIRE(who);
    CHECK(who->id == outer.id());
    CHECK(who->count == 2);
    CHECK((who->ttl > 0ms && who->ttl <= 30s));
  }
  w.eye("PERSIST", "m");
  CHECK(w.run(b.mutex("m").holder())->ttl == milliseconds::max());
  w.run(inner.unlock());
  w.run(outer.unlock());
  CHECK_FALSE(w.run(b.mutex("m").holder()));
  CHECK(outer.id() == a.id() + ":1");  // for logs, to the end
  CHECK(w.run(a.mutex("m").lock()).id() == a.id() + ":2");
  CHECK(lease().id().empty());
}

TEST_CASE("holder knows Redisson's holds and refuses what is no lock of one owner") {
  world w;
  auto redis = w.make();
  w.eye("HSET", "java", "b983c153-7421-469a-addb-44fb92259a1b:17", "3");
  w.eye("PEXPIRE", "java", 20'000);
  const auto java = w.run(redis.mutex("java").holder());
  REQUIRE(java);
  CHECK(java->id == "b983c153-7421-469a-addb-44fb92259a1b:17");
  CHECK(java->count == 3);
  w.eye("HSET", "read-write", "mode", "read", "b983c153-7421-469a-addb-44fb92259a1b:17", "1");
  w.eye("HSET", "uncounted", "a:1", "many");
  w.eye("SET", "data", "x");
  for (const char* name : {"read-write", "uncounted", "data"}) {
    CAPTURE(name);
    CHECK(w.code_of(redis.mutex(name).holder()) == errc::corrupt_lock);
  }
  w.eye("HSET", "long", std::string(2 << 20, 'x'), "1");  // more than a reply of ours may have
  CHECK(w.run(redis.mutex("long").holder())->id == std::string(256, 'x'));
  CHECK(w.heard->count(event_kind::connected) == 1);
}

TEST_CASE("the name of a connection says which client it is, in which process, on which host") {
  world w;
  auto redis = w.make([](config& c) { c.client_name = "billing"; }),
       nameless = w.make([](config& c) { c.client_name.clear(); });
  CHECK(redis.id().size() == 36);
  CHECK(redis.id() != nameless.id());
  auto held = w.run(redis.mutex("m").lock());
  CHECK(w.run(nameless.mutex("n").lock()).held());
  started<lease> waiter(w, redis.mutex("m").lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").strings().at(1) == "1"; });
  const auto all = w.eye("CLIENT", "LIST").to_string();
  const auto name = " name=billing:" + redis.id() + ':' + std::to_string(::getpid()) + '@' + own_host() + ' ';
  const auto first = all.find(name);
  REQUIRE(first != all.npos);
  CHECK(all.find(name, first + 1) != all.npos);  // for commands, and for messages
  CHECK_FALSE(contains(all, nameless.id()));
  auto moved = std::move(redis);
  CHECK(redis.id().empty());
  CHECK(held.id().starts_with(moved.id()));
  w.run(held.unlock());
  w.until([&] { return waiter.succeeded(); });
}

TEST_CASE("the operating page's commands find holder and waiters, and wake them when they free the lock") {
  world w;
  const shell sh(w);
  auto patient = [](config& c) { c.poll_cap = 60s; };  // only a message wakes it in time
  auto a = w.make(patient), b = w.make(patient);
  auto held = w.run(a.mutex("orders:42").lock({.ttl = 60s}));
  started<lease> waiter(w, b.mutex("orders:42").lock());
  const std::string channel = "redisson_lock__channel:{orders:42}";
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", channel).strings().at(1) == "1"; });

  const auto who = sh.paste("who holds");
  CHECK(who.starts_with(held.id() + "\n1\n"));
  CHECK(std::stoi(who.substr(held.id().size() + 3)) > 0);

  const auto where = sh.paste("who holds", "where");
  CHECK(contains(where, "name=holdfast:" + a.id() + ':' + std::to_string(::getpid()) + '@' + own_host()));
  CHECK_FALSE(contains(where, b.id()));

  const auto waits = sh.paste("who holds", "who waits");
  CHECK(contains(waits, channel + "\n1\n"));
  CHECK(contains(waits, b.id()));

  w.pass(50ms);  // whatever woke it by now, it is busy: the rest is the work of the message
  CHECK_FALSE(waiter.answer);
  CHECK(sh.paste("who holds", "free").ends_with("\n1\n"));
  w.until([&] { return waiter.succeeded(); });
  CHECK(w.code_of(held.unlock()) == errc::lost);
  w.run(waiter.answer->value().unlock());
  CHECK(sh.paste("who holds", "free") == "\n-2\n0\n");

  const auto watch = sh.paste("watch");
  CHECK(contains(watch, "maxmemory-policy\nnoeviction\n"));
  CHECK(contains(watch, "evicted_keys:0"));
  CHECK(contains(watch, "aof_enabled:0"));
}

TEST_CASE("the incident page's commands free a lock whose name has a brace, and wake its waiters") {
  world w;
  const shell sh(w);
  auto redis = w.make([](config& c) { c.poll_cap = 60s; });
  for (const std::string name : {"{orders}:42", "orders:{42", "}{"}) {
    INFO(name);
    auto held = w.run(redis.mutex(name).lock({.ttl = 60s}));
    started<lease> waiter(w, redis.mutex(name).lock());
    w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:" + name).strings().at(1) == "1"; });
    CHECK(sh.paste_for(name, "who holds").starts_with(held.id() + "\n1\n"));
    CHECK(sh.paste_for(name, "who holds", "free").ends_with("\n1\n"));
    w.until([&] { return waiter.succeeded(); });
    CHECK(w.code_of(held.unlock()) == errc::lost);
    w.run(waiter.answer->value().unlock());
  }
}

TEST_CASE("the incident page's commands free a lock of a cluster from any node, and wake its waiters") {
  cluster_world w;
  auto redis = w.make([](config& c) { c.poll_cap = 60s; });
  for (const auto n : w.rig.primaries()) {
    const shell sh("-c -h 127.0.0.1 -p " + std::to_string(w.rig.node(n).port()) + login_of(w.rig.node(n)));
    for (const std::string name : {"orders:42", "{orders}:42"}) {
      INFO(name << " by node " << n);
      auto held = w.run(redis.mutex(name).lock({.ttl = 60s}));
      started<lease> waiter(w, redis.mutex(name).lock());
      w.until([&] { return w.awaited(name); });
      CHECK(sh.paste_for(name, "who holds").starts_with(held.id() + "\n1\n"));
      CHECK(sh.paste_for(name, "who holds", "free").ends_with("\n1\n"));
      w.until([&] { return waiter.succeeded(); });
      CHECK(w.code_of(held.unlock()) == errc::lost);
      w.run(waiter.answer->value().unlock());
    }
  }
}

TEST_CASE("the operating page's rotation leaves no time without a password") {
  world w;
  const shell sh(w);
  const auto let_in = [&](const std::string& password) {
    raw_client guest(w.server);
    return !guest.call({"AUTH", "locker", password}).is_error();
  };
  REQUIRE(sh.paste("acl") == "OK\n");
  CHECK(let_in("secret"));
  CHECK_FALSE(let_in("new secret"));
  REQUIRE(sh.paste("new password") == "OK\n");
  CHECK(let_in("secret"));
  CHECK(let_in("new secret"));
  REQUIRE(sh.paste("old password") == "OK\n");
  CHECK_FALSE(let_in("secret"));
  CHECK(let_in("new secret"));
}

TEST_CASE("the ACL lines of the operating page are enough, and a shell takes them") {
  world w;
  const shell sh(w);
  CHECK(sh.paste("acl") == "OK\n");
  auto redis = w.make(
      [](config& c) { c.user = "locker", c.password = "secret", c.key_prefix = "app:", c.command_timeout = 2s; });
  w.run(redis.connect());
  auto m = redis.mutex("m");
  auto held = w.run(m.lock());
  CHECK(w.run(m.holder())->id == held.id());
  CHECK(w.eye("HKEYS", "app:m").strings().at(0) == held.id());
  CHECK(contains(w.eye("CLIENT", "LIST").to_string(), redis.id()));
  started<lease> waiter(w, m.lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{app:m}").strings().at(1) == "1"; });
  CHECK(w.run(m.force_unlock()));
  w.until([&] { return waiter.succeeded(); });
  CHECK(w.heard->count(event_kind::fencing_degraded) == 0);

  const auto pool = redis.expirable_semaphore("p", 2);
  CHECK(w.code_of(pool.try_acquire()) == errc::no_permission);
  CHECK(sh.paste("acl of an expirable_semaphore") == "OK\n");
  auto permit = w.run(pool.acquire());
  started<lease> both(w, pool.acquire(2));
  w.until([&] { return w.eye("EXISTS", "holdfast_turn:{app:p}") == 1; });
  w.run(permit.renew());
  w.run(permit.unlock());
  w.until([&] { return both.succeeded(); });
  w.run(pool.set_permits(3));
  CHECK(w.run(pool.available()) == 1);
  CHECK(w.run(pool.force_release()) == 2);
  CHECK(w.eye("GET", "app:p") == "3");
  CHECK(w.eye("EXISTS", "{app:p}:timeout") == 0);
  w.eye("ACL", "SETUSER", "locker", "-get", "-set", "-time");  // the next kinds bring their own

  const auto prices = redis.shared_mutex("r");
  CHECK(w.code_of(prices.try_lock_shared()) == errc::no_permission);
  CHECK(sh.paste("acl of a shared_mutex") == "OK\n");
  auto reads = w.run(prices.lock_shared());
  started<lease> writes(w, prices.lock()), late(w, prices.lock_shared());
  w.until([&] { return w.eye("ZCARD", "holdfast_queue:{app:r}") == 1; });
  w.run(reads.renew());
  w.run(reads.unlock());
  w.until([&] { return writes.succeeded(); });
  CHECK_FALSE(late.answer);
  w.run(writes.answer->value().unlock());
  w.until([&] { return late.succeeded(); });
  CHECK(w.run(prices.read_holds()) == 1);
  CHECK(w.run(prices.force_unlock()));
  w.eye("ACL", "SETUSER", "locker", "-get", "-set", "-time");

  const auto ready = redis.latch("l");
  CHECK(w.code_of(ready.count_down()) == errc::no_permission);
  CHECK(sh.paste("acl of a latch") == "OK\n");
  CHECK(w.run(ready.try_set(1)));
  started<void> waits(w, ready.wait());
  w.until(
      [&] { return w.eye("PUBSUB", "NUMSUB", "redisson_countdownlatch__channel__{app:l}").strings().at(1) == "1"; });
  w.run(ready.count_down());
  w.until([&] { return waits.succeeded(); });
  w.eye("ACL", "SETUSER", "locker", "-get", "-set");

  const auto chief = redis.election("e");
  CHECK(w.code_of(chief.campaign("one")) == errc::no_permission);
  CHECK(sh.paste("acl of an election") == "OK\n");
  started<std::optional<leader_info>> observes(w, chief.next({}));
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "holdfast_election:{app:e}").strings().at(1) == "1"; });
  auto lead = w.run(chief.campaign("one"));
  w.until([&] { return observes.succeeded(); });
  w.run(chief.proclaim(lead, "two"));
  CHECK(w.run(chief.leader())->value == "two");
  CHECK(w.run(chief.force_unlock()));
  w.eye("ACL", "SETUSER", "locker", "-get", "-set", "-time");

  const auto seats = redis.fair_mutex("q");
  CHECK(w.code_of(seats.lock()) == errc::no_permission);
  CHECK(sh.paste("acl of a fair_mutex") == "OK\n");
  auto served = w.run(seats.lock());
  started<lease> second(w, seats.lock());
  w.until([&] { return w.eye("LLEN", "redisson_lock_queue:{app:q}") == 1; });
  w.run(served.renew());
  w.run(served.unlock());
  w.until([&] { return second.succeeded(); });
  started<lease> third(w, seats.lock());
  w.until([&] { return w.eye("LLEN", "redisson_lock_queue:{app:q}") == 1; });
  CHECK(w.run(seats.force_unlock()));
  w.until([&] { return third.succeeded(); });
  w.eye("ACL", "SETUSER", "locker", "-time");

  CHECK(w.code_of(redis.fenced_mutex("f").lock()) == errc::no_permission);
  CHECK(sh.paste("acl of a fenced_mutex") == "OK\n");
  CHECK(w.run(redis.fenced_mutex("f").lock()).token());
  CHECK(sh.paste("acl of a simple_mutex") == "OK\n");
  auto simple = redis.simple_mutex("s");
  auto simply_held = w.run(simple.lock());
  started<lease> next(w, simple.lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "holdfast_simple:{app:s}").strings().at(1) == "1"; });
  w.run(simply_held.renew());
  w.run(simply_held.unlock());
  w.until([&] { return next.succeeded(); });
  CHECK(w.run(simple.force_unlock()));
  auto elsewhere = w.make([](config& c) { c.user = "locker", c.password = "secret"; });  // without the prefix
  CHECK(w.code_of(elsewhere.mutex("m").lock()) == errc::no_permission);
}

TEST_CASE("the pool page's commands count its permits, and what it allows to delete costs no lease") {
  world w;
  const shell sh(w);
  auto redis = w.make();
  const auto pool = redis.expirable_semaphore("downloads", 3);
  auto two = w.run(pool.acquire(2));
  const auto looked = sh.paste("short of permits");
  CHECK(looked.starts_with("1\n2\n"));
  CHECK(looked.ends_with("\nredisson_sc:{downloads}\n0\n"));
  w.eye("SET", "holdfast_turn:{downloads}", "a door");
  w.eye("DEL", "downloads", "holdfast_turn:{downloads}");
  w.run(two.renew());
  auto one = w.run(pool.acquire());
  CHECK(sh.paste("short of permits").starts_with("0\n3\n"));
  w.run(one.unlock());
  w.run(two.unlock());
  CHECK(w.eye("GET", "downloads") == "3");
  auto third = w.run(pool.acquire());
  w.eye("DEL", "{downloads}:timeout");
  CHECK(w.code_of(third.renew()) == errc::lost);
  CHECK(w.run(pool.available()) == 2);
  w.run(pool.set_permits(3));
  CHECK(w.run(pool.available()) == 3);
}

TEST_CASE("the operating page's commands find the holder of a simple mutex, and wake waiters when they free it") {
  world w;
  const shell sh(w);
  auto patient = [](config& c) { c.poll_cap = 60s; };
  auto a = w.make(patient), b = w.make(patient);
  auto held = w.run(a.simple_mutex("orders:42").lock({.ttl = 60s}));
  started<lease> waiter(w, b.simple_mutex("orders:42").lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "holdfast_simple:{orders:42}").strings().at(1) == "1"; });
  CHECK(sh.paste("who holds a simple_mutex").starts_with(held.id() + "\n"));
  CHECK(sh.paste("who holds a simple_mutex", "free a simple_mutex").ends_with("\n1\n"));
  w.until([&] { return waiter.succeeded(); });
  CHECK(w.code_of(held.unlock()) == errc::lost);
  w.run(waiter.answer->value().unlock());
  CHECK(sh.paste("who holds a simple_mutex", "free a simple_mutex") == "\n-2\n0\n");
}
