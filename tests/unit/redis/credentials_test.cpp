// SPDX-License-Identifier: BSL-1.0
// config::credentials: who is asked when, and how a connection is replaced whose login ends. On the test's clock,
// against servers that the test plays.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "redis/connection.hpp"
#include "redis/login.hpp"
#include "redis/pubsub.hpp"
#include "support/catch.hpp"
#include "support/plain_command.hpp"
#include "unit/redis/scripted_network.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

using texts = std::vector<std::string>;

/// Lets in who has the password of the moment.
struct guarded_server final : scripted_host {
  redis::reply answer(connection&, const std::vector<std::string>& argv) override {
    if (argv[0] == "AUTH") {
      logins.push_back(argv.size() == 3 ? argv[1] + '/' + argv[2] : argv[1]);
      return argv.back() == password ? replies::ok()
                                     : replies::error("WRONGPASS invalid username-password pair: " + argv.back());
    }
    if (argv[0] == "CLIENT") {
      killed += argv[1] == "KILL";
      return replies::integer(7);
    }
    if (argv[0] == "INFO") return replies::string("# Server\r\nredis_version:7.0.15\r\nrun_id:" + run + "\r\n");
    if (argv[0] == "ROLE") return strings({"master"});
    if (argv[0] == "PING") return replies::status("PONG");
    if (argv[0] == "SUBSCRIBE")
      return replies::array({replies::string("subscribe"), replies::string(argv[1]), replies::integer(1)});
    return replies::ok();
  }

  std::string password = "p0", run = "a";
  texts logins;
  int killed = 0;
};

struct listener final : redis::subscriber {
  void on_subscribed() override { ++subscribed; }
  void on_message(std::string_view) override {}
  void on_subscribe_failed(error_code code, const std::string&) override { failed = code; }
  int subscribed = 0;
  error_code failed;
};

struct answer {
  int times = 0;
  redis::outcome got;
  bool ok() const { return times == 1 && !got.error; }
  bool has(errc code) const { return times == 1 && got.error == code; }
};

struct fixture : scripted_environment {
  fixture() {
    network.hosts = {{redis::address{"A", 6379, {}}, &server}};
    node.at.host = "A";
    node.health_check_interval = {};  // no PING between the commands
    node.logins = std::make_shared<const redis::login_source>([this](const login_request& r) { return give(r); });
  }
  ~fixture() {
    if (link) link->close();
    if (hub) hub->close();
    poll();
  }

  login give(const login_request& r) {
    asked.push_back(std::string(r.host) + ':' + std::to_string(r.port) + (r.sentinel ? " sentinel" : ""));
    if (throws) throw std::runtime_error("canary-S3cr3t");
    return {user, password, valid_for};
  }
  redis::connection& connect() {
    link = std::make_shared<redis::connection>(services(), node, [this](const event& e) {
      events.emplace_back(to_string(e.kind));
      details.emplace_back(e.detail);
    });
    link->on_link_change([this](bool up) { links += up ? '+' : '-'; });
    return *link;
  }
  std::shared_ptr<answer> send() {
    auto a = std::make_shared<answer>();
    link->execute(plain_command(redis::make_command({"SET"}), {.timeout = 500ms}, [a](const redis::outcome& o) {
      ++a->times;
      a->got = o;
    }));
    return a;
  }
  std::shared_ptr<answer> call() {
    const auto a = send();
    alarms.advance(1ms);
    return a;
  }
  void after(detail::lease_clock::duration time) { alarms.advance(time); }

  guarded_server server;
  redis::endpoint node;
  std::string user, password = "p0";
  milliseconds valid_for{};
  bool throws = false;
  texts asked, events, details;
  std::string links;
  std::shared_ptr<redis::connection> link;
  std::shared_ptr<redis::pubsub> hub;
};

}  // namespace

TEST_CASE_METHOD(fixture, "each connection asks for its user and password when it introduces itself") {
  connect();
  user = "app";
  CHECK(call()->ok());
  CHECK(asked == texts{"A:6379"});
  CHECK(server.logins == texts{"app/p0"});
  server.password = password = "p1";
  after(2s);
  (*server.connections.begin())->end();
  CHECK(call()->ok());
  CHECK(server.logins == texts{"app/p0", "app/p1"});
  CHECK(asked.size() == 2);
}

TEST_CASE_METHOD(fixture, "what is asked names a sentinel and the path of a unix socket") {
  node.expected = redis::server_mode::sentinel;
  redis::ask_for_login(node, clock.now(), random);
  node.at = {"", 6379, "/run/redis.sock"};
  redis::ask_for_login(node, clock.now(), random);
  CHECK(asked == texts{"A:6379 sentinel", "/run/redis.sock:0 sentinel"});
}

TEST_CASE_METHOD(fixture, "a password that has just changed is asked for again before anybody is told") {
  connect();
  server.password = "p1";
  const auto a = send();
  after(1ms);
  CHECK(a->times == 0);
  password = "p1";
  after(100ms);
  CHECK(a->ok());
  CHECK(server.logins == texts{"p0", "p1"});
  CHECK(details.front() == "redis://A:6379: AUTH: WRONGPASS; config::credentials is asked again");
}

TEST_CASE_METHOD(fixture, "a password that is refused twice in a row is told") {
  connect();
  server.password = "p1";
  const auto a = send();
  after(100ms);
  CHECK(a->has(errc::auth_failed));
  CHECK(server.logins == texts{"p0", "p0"});
  for (const auto& d : details) CHECK(d.find("p0") == std::string::npos);
  password = "p1";
  after(2s);
  CHECK(call()->ok());
}

TEST_CASE_METHOD(fixture, "a login that cannot be used is told as auth_failed, without its text") {
  connect();
  SECTION("because of an exception") { throws = true; }
  SECTION("because the password ends with a line break") { password = "canary-S3cr3t\n"; }
  const auto a = call();
  CHECK(a->has(errc::auth_failed));
  CHECK(a->got.detail.find("config::credentials") != std::string::npos);
  CHECK(server.logins.empty());
  for (const auto& d : details) CHECK(d.find("canary") == std::string::npos);
  throws = false;
  password = "p0";
  after(2s);
  CHECK(call()->ok());
}

TEST_CASE_METHOD(fixture, "a login source may close its connection") {
  node.logins = std::make_shared<const redis::login_source>([this](const login_request&) {
    link->close();
    return login{"", "p0"};
  });
  connect();
  const auto a = call();
  CHECK(a->times == 0);
  CHECK(server.logins.empty());
}

TEST_CASE_METHOD(fixture, "a connection is replaced before its login ends, and nobody hears of an outage") {
  connect();
  valid_for = 80s;
  link->keep_watch(true);
  CHECK(call()->ok());
  after(59s);
  CHECK(server.logins.size() == 1);
  server.password = password = "p1";
  after(2s);
  CHECK(server.logins == texts{"p0", "p1"});
  CHECK(server.connections.size() == 1);
  CHECK(server.killed == 0);
  CHECK(call()->ok());
  CHECK(events == texts{"connected", "connected"});
  CHECK(links == "+");  // the same server: no hold is suspended
}

TEST_CASE_METHOD(fixture, "a replaced connection that finds another server tells of a loss and a return") {
  connect();
  valid_for = 80s;
  link->keep_watch(true);
  CHECK(call()->ok());
  server.run = "b";
  after(61s);
  CHECK(links == "+-+");
}

TEST_CASE_METHOD(fixture, "a replaced connection that cannot be made again is an outage") {
  connect();
  valid_for = 80s;
  link->keep_watch(true);
  CHECK(call()->ok());
  server.refuses = true;
  after(61s);
  CHECK(events == texts{"connected", "outage"});
  CHECK(links == "+-");
  CHECK_FALSE(link->answering());
  server.refuses = false;
  after(10s);
  CHECK(events.back() == "connected");
  CHECK(links == "+-+");
}

TEST_CASE_METHOD(fixture, "a connection that is being replaced counts as answering for a command's time alone") {
  connect();
  valid_for = 80s;
  link->keep_watch(true);
  CHECK(call()->ok());
  network.hosts.clear();  // a black hole
  after(60s);
  CHECK(link->answering());
  after(node.silence_limit + 1ms);
  CHECK_FALSE(link->answering());
}

TEST_CASE_METHOD(fixture, "a connection is not replaced while answers are to come, and writes nothing more") {
  connect();
  valid_for = 80s;
  link->keep_watch(true);
  CHECK(call()->ok());
  after(59'900ms);
  server.silent = true;
  const auto written = send();
  after(150ms);  // it is due
  const auto waits = send();
  after(50ms);
  CHECK(server.logins.size() == 1);
  server.silent = false;
  (*server.connections.begin())->send(replies::status("OK"));  // to the first
  after(10ms);
  CHECK(written->ok());
  CHECK(server.logins.size() == 2);
  CHECK(waits->ok());
  CHECK(events == texts{"connected", "connected"});
}

TEST_CASE_METHOD(fixture, "an idle connection is replaced by the next command, and keeps no timer until then") {
  connect();
  valid_for = 80s;
  CHECK(call()->ok());
  CHECK(alarms.idle());
  after(200s);
  CHECK(server.logins.size() == 1);
  SECTION("while it is there") {}
  SECTION("after the server has closed it") { (*server.connections.begin())->end(); }
  CHECK(call()->ok());
  CHECK(server.logins.size() == 2);
  CHECK(events == texts{"connected", "connected"});
}

TEST_CASE_METHOD(fixture, "a login that is good for no time makes no storm of connections") {
  connect();
  valid_for = GENERATE(1ms, -1ms, 999ms);
  link->keep_watch(true);
  after(10s);
  CHECK(server.logins.size() >= 10);
  CHECK(server.logins.size() <= 14);
}

TEST_CASE_METHOD(fixture, "a login that is good for ever is not replaced") {
  connect();
  valid_for = GENERATE(milliseconds(0), milliseconds::max());
  link->keep_watch(true);
  CHECK(call()->ok());
  after(24h);
  CHECK(server.logins.size() == 1);
}

TEST_CASE_METHOD(fixture, "a pub/sub connection is replaced as well, and its subscribers look again") {
  valid_for = 80s;
  hub = std::make_shared<redis::pubsub>(services(), node, 2s);
  listener a;
  const auto s = hub->subscribe("c", a);
  after(1ms);
  CHECK(a.subscribed == 1);
  server.password = password = "p1";
  after(61s);
  CHECK(server.logins == texts{"p0", "p1"});
  CHECK(a.subscribed == 2);
  CHECK_FALSE(a.failed);
  CHECK(server.killed == 0);
}
