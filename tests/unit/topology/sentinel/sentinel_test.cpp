// SPDX-License-Identifier: BSL-1.0
// Sentinels and servers that the test plays itself, on its own clock.
#include "topology/sentinel/sentinel.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/plain_command.hpp"
#include "unit/redis/scripted_network.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

redis::address at(const std::string& host) { return {host, 6379, {}}; }

/// What both kinds of server say in a handshake.
std::optional<redis::reply> introduction(const std::vector<std::string>& argv, const std::string& mode,
                                         const std::string& role, const std::string& run) {
  if (argv[0] == "CLIENT") return replies::integer(7);
  if (argv[0] == "PING") return replies::status("PONG");
  if (argv[0] == "ROLE") return strings({role});
  if (argv[0] == "INFO")
    return replies::string("# Server\r\nredis_version:7.0.15\r\nredis_mode:" + mode + "\r\nrun_id:" + run + "\r\n");
  return std::nullopt;
}

redis::reply acknowledgement(const std::vector<std::string>& argv) {
  std::string word = argv[0] == "SUBSCRIBE" ? "subscribe" : "unsubscribe";
  return replies::array({replies::string(word), replies::string(argv.back()), replies::integer(1)});
}

struct fake_server final : scripted_host {
  explicit fake_server(std::string r) : run(std::move(r)) {}
  redis::reply answer(connection&, const std::vector<std::string>& argv) override {
    if (auto said = introduction(argv, "standalone", role, run)) return *std::move(said);
    if (argv[0] == "SUBSCRIBE" || argv[0] == "UNSUBSCRIBE") return acknowledgement(argv);
    commands.push_back(argv[0]);
    return role == "master" ? replies::string(run) : replies::error("READONLY You can't write against a replica.");
  }

  std::string run, role = "master";
  std::vector<std::string> commands;
};

struct fake_sentinel final : scripted_host {
  redis::reply answer(connection& from, const std::vector<std::string>& argv) override {
    if (!error.empty()) return replies::error(error);
    if (auto said = introduction(argv, "sentinel", "sentinel", run)) return *std::move(said);
    if (argv[0] == "SUBSCRIBE" || argv[0] == "UNSUBSCRIBE") {
      log += argv[0] == "SUBSCRIBE" ? 's' : 'u';
      if (argv[0] == "SUBSCRIBE") subscribed.insert(&from);
      return acknowledgement(argv);
    }
    const auto& what = argv.at(1);
    if (what == "MYID") return replies::string(run);
    if (what == "SENTINELS") return others;
    const bool known = argv.at(2) == name;
    if (what == "MASTER") {
      if (!known) return replies::error("ERR No such master with that name");
      return strings({"name", name, "ip", primary, "port", "6379", "flags", "master", "config-epoch",
                      std::to_string(epoch), "down-after-milliseconds", "1000"});
    }
    log += '?';
    if (!known) return replies::nil();
    return strings({primary, "6379"});
  }
  void publish(const std::string& text) {
    for (auto* c : connections)
      if (subscribed.count(c) != 0)
        c->send(replies::array({replies::string("message"), replies::string("+switch-master"), replies::string(text)}));
  }
  void promote(const std::string& host, std::uint64_t in) {
    primary = host;
    epoch = in;
  }

  std::string run, name = "orders", primary = "A", error;
  std::uint64_t epoch = 0;
  redis::reply others = replies::array({});
  std::set<connection*> subscribed;
  std::string log;  // s: SUBSCRIBE, ?: a question
};

struct answer {
  int times = 0;
  redis::outcome got;

  bool is(std::string_view text) const { return times == 1 && !got.error && got.reply.text == text; }
  bool has(errc code) const { return times == 1 && got.error == code; }
};

/// One that observers hear of.
struct named_command final : redis::command {
  void append_to(std::string& out) const override { out += redis::make_command({"SET", "k", "v"}); }
  void answered(const redis::outcome&) override {}
  const redis::command_name* counted_as() const noexcept override { return &name; }
  static constexpr redis::command_name name{"SET", false};
};

struct listener final : redis::subscriber {
  void on_subscribed() override { ++subscribed; }
  void on_message(std::string_view) override {}
  void on_subscribe_failed(error_code, const std::string&) override { ++failed; }
  int subscribed = 0, failed = 0;
};

/// To whom commands went, and which connections there are.
struct counting final : observer {
  void measured(const measurement& m) noexcept override {
    using kind = measurement_kind;
    const std::string node(m.connection->node);
    if (m.kind == kind::command) ++commands[node];
    if (m.kind == kind::connection_up) ++up[node];
    if (m.kind == kind::connection_down) --up[node];
  }
  std::map<std::string, int> commands, up;
};

/// Servers A, B and C, and three sentinels who think that A is the primary.
struct fixture : scripted_environment {
  fixture() {
    network.hosts = {{at("A"), &a}, {at("B"), &b}, {at("C"), &c}};
    for (int n = 0; n < 3; ++n) {
      sentinels[n].run = "s" + std::to_string(n);
      network.hosts[at(sentinels[n].run)] = &sentinels[n];
      auto& seed = which.servers.emplace_back();
      seed.at = at(sentinels[n].run);
      seed.expected = redis::server_mode::sentinel;
    }
    which.kind = detail::deployment::sentinel;
    which.primary_name = "orders";
  }
  ~fixture() {
    if (servers) servers->close();
    poll();
  }

  detail::sentinel& make() {
    servers = std::make_unique<detail::sentinel>(services(counts), which, behaviour, [this](const event& e) {
      events.push_back(std::string(to_string(e.kind)));
      details.push_back(std::string(e.detail));
    });
    servers->on_link_change([this](detail::node_id, bool up) { links += up ? '+' : '-'; });
    return *servers;
  }
  void pass(detail::lease_clock::duration by) { alarms.advance(by); }
  std::shared_ptr<answer> send(detail::lease_clock::duration timeout = 500ms) {
    auto got = std::make_shared<answer>();
    servers->execute("key", plain_command(redis::make_command({"SET", "k", "v"}), {.timeout = timeout}, [got](auto o) {
                       ++got->times;
                       got->got = std::move(o);
                     }));
    return got;
  }
  void all_promote(const std::string& host, std::uint64_t epoch) {
    for (auto& s : sentinels) s.promote(host, epoch);
  }
  std::size_t count(const std::string& what) const {
    return static_cast<std::size_t>(std::count(events.begin(), events.end(), what));
  }
  std::string detail_of(const std::string& what) const {
    const auto found = std::find(events.begin(), events.end(), what);
    return found == events.end() ? "" : details[static_cast<std::size_t>(found - events.begin())];
  }
  std::size_t connections() const {
    std::size_t n = 0;
    for (const auto& s : sentinels) n += s.connections.size();
    return n;
  }

  fake_server a{"A"}, b{"B"}, c{"C"};
  fake_sentinel sentinels[3];
  detail::server_list which;
  config behaviour;
  std::vector<std::string> events, details;
  std::string links;
  std::shared_ptr<observer> counts;
  std::unique_ptr<detail::sentinel> servers;
};

}  // namespace

TEST_CASE_METHOD(
    fixture, "a command goes to the primary that the sentinels name, and each is asked after it was subscribed to") {
  make();
  CHECK(connections() == 0);
  const auto got = send();
  pass(1ms);
  CHECK(got->is("A"));
  for (const auto& s : sentinels) CHECK(s.log == "s??");
  CHECK(events == std::vector<std::string>{"connected"});
  CHECK(servers->where("key") == "redis://A:6379");
  CHECK(servers->run_of("key") == "A");
}

TEST_CASE_METHOD(fixture, "the connections to each sentinel and to the primary ask for a login of their own") {
  std::map<std::string, int> asked;
  const auto logins = std::make_shared<const redis::login_source>([&](const login_request& r) {
    ++asked[std::string(r.host) + (r.sentinel ? " sentinel" : "")];
    return login{};
  });
  for (auto& seed : which.servers) seed.logins = logins;
  which.discovered.logins = logins;
  make();
  const auto got = send();
  pass(1ms);
  CHECK(got->is("A"));
  CHECK(asked == std::map<std::string, int>{{"A", 1}, {"s0 sentinel", 2}, {"s1 sentinel", 2}, {"s2 sentinel", 2}});
}

TEST_CASE_METHOD(fixture, "commands and connections are counted at the primary that they went to") {
  const auto counted = std::make_shared<counting>();
  counts = counted;
  make().keep_watch(true);
  auto first = std::make_shared<named_command>(), second = std::make_shared<named_command>();
  servers->execute("key", {first, {.timeout = 500ms}});
  pass(1ms);
  CHECK(counted->commands == std::map<std::string, int>{{"redis://A:6379", 1}});
  CHECK(counted->up["redis://A:6379"] == 1);
  sentinels[1].promote("B", 1);
  sentinels[1].publish("orders A 6379 B 6379");
  pass(1ms);
  servers->execute("key", {second, {.timeout = 500ms}});
  pass(1ms);
  CHECK(counted->commands == std::map<std::string, int>{{"redis://A:6379", 1}, {"redis://B:6379", 1}});
  CHECK(counted->up["redis://A:6379"] == 0);
  CHECK(counted->up["redis://B:6379"] == 1);
}

TEST_CASE_METHOD(fixture, "a message of one sentinel about our primary sends both connections elsewhere at once") {
  make().keep_watch(true);
  listener heard;
  const auto kept = servers->subscribe("channel", heard);
  pass(100ms);
  REQUIRE(heard.subscribed == 1);
  sentinels[1].promote("B", 1);
  SECTION("about another one it does not") {
    sentinels[1].publish("orders2 A 6379 B 6379");
    pass(1ms);
    CHECK(servers->where("key") == "redis://A:6379");
    return;
  }
  sentinels[1].publish("orders A 6379 B 6379");
  pass(1ms);
  CHECK(servers->where("key") == "redis://B:6379");
  CHECK(a.connections.empty());
  CHECK(b.connections.size() == 2);
  CHECK(heard.subscribed == 2);
  CHECK(links == "+-+");
  CHECK(events == std::vector<std::string>{"connected", "primary_changed", "outage", "connected"});
  CHECK(detail_of("primary_changed") == "from redis://A:6379 to redis://B:6379");
  CHECK(detail_of("outage") == "redis://A:6379: the primary is redis://B:6379 now");
  CHECK(send()->times == 0);
  pass(0ms);
  CHECK(b.commands.size() == 1);
}

TEST_CASE_METHOD(fixture,
                 "an obligation that is sent when the next primary is there goes before all that waited for it") {
  std::vector<std::uint64_t> told;
  make().on_link_change([&](detail::node_id, bool up) {
    if (!up) return;
    told.push_back(servers->server_of("key"));
    servers->execute("key", plain_command(redis::make_command({"DEL", "k"}),
                                          {.timeout = 500ms, .rank = redis::urgency::obligation}, [](auto) {}));
  });
  CHECK(servers->server_of("key") == 0);
  servers->keep_watch(true);
  pass(100ms);
  const auto before = send();
  pass(1ms);
  all_promote("B", 1);
  sentinels[1].publish("orders A 6379 B 6379");
  pass(0ms);
  const auto waited = send();
  pass(1ms);
  CHECK(b.commands == std::vector<std::string>{"DEL", "SET"});
  REQUIRE(told.size() == 2);
  CHECK(told[0] == before->got.server);
  CHECK(told[1] == waited->got.server);
  CHECK(told[0] != told[1]);
}

TEST_CASE_METHOD(fixture, "a switch that no message tells is found by the question of the next second") {
  make().keep_watch(true);
  pass(100ms);
  all_promote("B", 1);
  pass(1s);
  CHECK(servers->where("key") == "redis://B:6379");
}

TEST_CASE_METHOD(
    fixture, "a command that waits for its answer is unconfirmed at the switch, one that waits to be sent is kept") {
  make().keep_watch(true);
  pass(100ms);
  a.silent = true;
  const auto written = send();
  pass(1ms);
  b.refuses = true;
  sentinels[0].promote("B", 1);
  sentinels[0].publish("orders A 6379 B 6379");
  pass(1ms);
  CHECK(written->has(errc::unconfirmed));
  const auto waits = send();
  pass(10ms);
  CHECK(waits->times == 0);
  b.refuses = false;
  pass(400ms);
  CHECK(waits->is("B"));
}

TEST_CASE_METHOD(fixture, "the loss of the primary's connection leads to questions at once") {
  make().keep_watch(true);
  pass(100ms);
  all_promote("B", 1);
  (*a.connections.begin())->end();
  a.refuses = true;
  pass(1ms);
  CHECK(servers->where("key") == "redis://B:6379");
  CHECK(b.connections.size() == 1);
}

TEST_CASE_METHOD(fixture, "a stale sentinel that answers first sends nobody to the old primary") {
  make();
  sentinels[1].promote("B", 1);
  sentinels[2].promote("B", 1);
  const auto got = send();
  pass(1ms);
  CHECK(got->is("B"));
  CHECK(a.commands.empty());
}

TEST_CASE_METHOD(fixture, "an address that is no primary yet is asked again after 200 ms, and commands wait") {
  make();
  all_promote("B", 1);
  b.role = "slave";
  const auto got = send(5s);
  pass(1s);
  CHECK(got->times == 0);
  CHECK(a.commands.empty());
  b.role = "master";
  pass(220ms);
  CHECK(got->is("B"));
  CHECK(count("outage") == 1);
}

TEST_CASE_METHOD(fixture, "a primary that is demoted by hand is left until the sentinels name another") {
  make().keep_watch(true);
  pass(10ms);
  a.role = "slave";
  const auto refused = send();
  pass(1ms);
  CHECK(refused->times == 1);
  const auto waits = send(5s);
  pass(300ms);
  CHECK(waits->times == 0);
  all_promote("C", 1);
  pass(1s);
  CHECK(waits->is("C"));
}

TEST_CASE_METHOD(fixture, "nothing holds the context while nobody needs the primary, and the connections stay") {
  make();
  listener heard;
  auto kept = servers->subscribe("channel", heard);
  const auto got = send();
  pass(100ms);
  REQUIRE(got->is("A"));
  const auto open = connections();
  kept.reset();
  pass(10ms);
  CHECK(alarms.idle());
  CHECK(connections() == open);
  const auto questions = sentinels[0].log;
  pass(1h);
  CHECK(sentinels[0].log == questions);
}

TEST_CASE_METHOD(fixture,
                 "sentinels and a primary that cannot be reached hold the context no longer than who waits for them") {
  const auto let_in = GENERATE(0, 1, 3);  // sentinels
  for (int n = let_in; n < 3; ++n) sentinels[n].silent = true;
  network.hosts.erase(at("A"));
  make();
  const auto got = send(700ms);
  pass(700ms);
  REQUIRE(got->has(errc::unreachable));
  pass(510ms);  // a question may be under way
  CHECK(alarms.idle());
}

TEST_CASE_METHOD(fixture, "after a pause the sentinels are asked before a command goes out on the old connection") {
  make();
  const auto first = send();
  pass(1h);
  REQUIRE(first->is("A"));
  all_promote("B", 1);
  const auto second = send();
  pass(1ms);
  CHECK(second->is("B"));
  CHECK(a.commands.size() == 1);
}

TEST_CASE_METHOD(fixture, "after a pause silent sentinels delay a command by a quarter of a second at most") {
  make();
  const auto first = send();
  pass(1h);
  REQUIRE(first->is("A"));
  for (auto& s : sentinels) s.silent = true;
  const auto second = send();
  pass(19ms);
  CHECK(second->times == 0);
  pass(232ms);  // sooner, where they do not answer PING
  CHECK(second->is("A"));
}

TEST_CASE_METHOD(fixture, "an unlock and a lock soon after it stop and begin nothing") {
  make();
  send();
  pass(100ms);
  const auto before = sentinels[0].log;
  for (int n = 0; n < 100; ++n) {
    const auto got = send();
    pass(2ms);
    CHECK(got->is("A"));
  }
  CHECK(sentinels[0].log == before);
}

TEST_CASE_METHOD(fixture, "no sentinel answers: commands fail, and the text has each and its cause") {
  make();
  for (auto& s : sentinels) s.refuses = true;
  const auto got = send();
  pass(501ms);
  REQUIRE(got->has(errc::unreachable));
  for (const auto* const host : {"s0", "s1", "s2"})
    CHECK_THAT(got->got.detail, contains_text(std::string("redis://") + host + ":6379: connection refused"));
  CHECK_THAT(servers->trouble("key").detail, contains_text("no sentinel names the primary orders"));
  CHECK(servers->trouble("key").code == errc::unreachable);
}

TEST_CASE_METHOD(fixture, "sentinels in a black hole are told, too") {
  make();
  for (const auto& s : sentinels) network.hosts.erase(at(s.run));
  const auto got = send(4s);
  const auto brief = send(500ms);
  pass(5s);
  REQUIRE(got->has(errc::unreachable));
  CHECK_THAT(got->got.detail, contains_text("redis://s2:6379"));
  CHECK_THAT(brief->got.detail, contains_text("redis://s2:6379"));
}

TEST_CASE_METHOD(fixture, "a name that no sentinel knows is a wrong setting") {
  which.primary_name = "ordres";
  make();
  sentinels[2].refuses = true;
  listener heard;
  const auto kept = servers->subscribe("channel", heard);
  const auto got = send();
  pass(10ms);
  REQUIRE(got->has(errc::invalid_config));
  CHECK_THAT(got->got.detail, contains_text("ordres"));
  CHECK(heard.failed == 1);
}

TEST_CASE_METHOD(fixture, "sentinels that ask for a password are told by the setting's name") {
  for (auto& s : sentinels) s.error = "NOAUTH Authentication required.";
  make();
  const auto got = send();
  pass(10ms);
  REQUIRE(got->has(errc::auth_failed));
  CHECK_THAT(got->got.detail, contains_text("sentinel.password"));
}

TEST_CASE_METHOD(fixture, "an ordinary server in place of a sentinel is told") {
  for (const auto& s : sentinels) network.hosts[at(s.run)] = &a;
  make();
  const auto got = send();
  pass(10ms);
  REQUIRE(got->has(errc::not_primary));
  CHECK_THAT(got->got.detail, contains_text("redis+sentinel://"));
}

TEST_CASE_METHOD(fixture, "sentinels are learnt, asked and listened to") {
  which.servers.resize(1);
  const auto listed = [](const std::string& run) { return strings({"ip", run, "port", "6379", "runid", run}); };
  sentinels[0].others = replies::array({listed("s1"), listed("s2")});
  make().keep_watch(true);
  pass(10ms);
  CHECK(sentinels[1].log.find("s?") != std::string::npos);
  CHECK(sentinels[2].log.find("s?") != std::string::npos);
  sentinels[2].promote("B", 1);
  sentinels[2].publish("orders A 6379 B 6379");
  pass(1ms);
  CHECK(servers->where("key") == "redis://B:6379");
}

TEST_CASE_METHOD(fixture,
                 "addresses that sentinels tell are translated by the node map, those that were given are not") {
  which.node_map = {{at("A"), at("C")}, {at("s0"), at("nowhere")}};
  make();
  const auto got = send();
  pass(10ms);
  CHECK(got->is("C"));
}

TEST_CASE_METHOD(fixture, "a thousand sentinels are thirty-two, and the primary stays") {
  std::vector<redis::reply> crowd;
  for (int n = 0; n < 1000; ++n)
    crowd.push_back(strings({"ip", "x" + std::to_string(n), "port", "1", "runid", "r" + std::to_string(n)}));
  sentinels[0].others = replies::array(std::move(crowd));
  make();
  const auto got = send();
  pass(10s);
  CHECK(got->is("A"));
}

TEST_CASE_METHOD(fixture, "no majority of the sentinels is told once for each time, and holds go on") {
  make().keep_watch(true);
  pass(100ms);
  sentinels[0].silent = sentinels[1].silent = true;
  pass(1900ms);
  CHECK(count("sentinels_unreachable") == 0);
  pass(1200ms);
  CHECK(count("sentinels_unreachable") == 1);
  CHECK_THAT(detail_of("sentinels_unreachable"), contains_text("redis://s1:6379"));
  pass(30s);
  CHECK(count("sentinels_unreachable") == 1);
  CHECK(links == "+");
  sentinels[0].silent = false;
  pass(10s);
  sentinels[0].silent = true;
  pass(10s);
  CHECK(count("sentinels_unreachable") == 2);
}

TEST_CASE_METHOD(fixture, "a strict client sends nothing while there is no majority, as if the link were down") {
  behaviour.sentinel.strict = true;
  make().keep_watch(true);
  pass(100ms);
  CHECK(links == "+");
  sentinels[0].silent = sentinels[1].silent = true;
  pass(3200ms);
  CHECK(links == "+-");
  const auto waits = send(60s);
  pass(10s);
  CHECK(waits->times == 0);
  CHECK(a.commands.empty());
  sentinels[0].silent = false;
  pass(5s);
  CHECK(waits->is("A"));
  CHECK(links == "+-+");
}

TEST_CASE_METHOD(fixture, "a TTL that cannot outlive a failover is told once, with the arithmetic") {
  behaviour.ttl = GENERATE(5'279ms, 5'280ms);
  make().keep_watch(true);
  pass(5s);
  CHECK(count("ttl_shorter_than_failover") == (behaviour.ttl < 5'280ms ? 1 : 0));
  if (behaviour.ttl < 5'280ms) CHECK_THAT(detail_of("ttl_shorter_than_failover"), contains_text("1.6 * (down-after"));
}

TEST_CASE_METHOD(fixture, "from close() on nobody is called, whatever is under way") {
  make().keep_watch(true);
  const auto when = GENERATE(0ms, 1ms, 100ms);
  if (when != 0ms) pass(when);
  const auto got = send();
  servers->close();
  const auto told = events.size();
  sentinels[0].publish("orders A 6379 B 6379");
  pass(10s);
  CHECK(got->times == 0);
  CHECK(events.size() == told);
  CHECK(alarms.idle());
  CHECK(connections() == 0);
}
