// SPDX-License-Identifier: BSL-1.0
#include "redis/connection.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "integration/redis_rig.hpp"
#include "support/catch.hpp"
#include "support/host_name.hpp"
#include "support/server_version.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using direction = proxy::direction;
using detail::lease_clock;

TEST_CASE_METHOD(server_rig, "commands are answered in order, whatever bytes they hold") {
  const auto c = connect(direct());
  const std::string binary("a\0b\r\n$1\xff", 8);
  std::vector<answer_ptr> answers;
  for (int i = 0; i < 1000; ++i) answers.push_back(send(*c, {"INCR", "n"}));
  const auto set = send(*c, {"SET", binary, binary});
  const auto get = send(*c, {"GET", binary});
  const auto wrong = send(*c, {"LPUSH", binary, "x"});
  REQUIRE(until([&] { return wrong->times != 0; }));
  for (int i = 0; i < 1000; ++i) CHECK(answers[static_cast<std::size_t>(i)]->is(i + 1));
  CHECK(set->is("OK"));
  CHECK(get->is(binary));
  CHECK(wrong->got.reply.is_error());
  CHECK_FALSE(wrong->got.error);
  CHECK(events == std::vector<std::string>{"connected"});
  CHECK(details.front().starts_with(direct().to_string() + ": "));
  CHECK(details.front().ends_with(", standalone"));
  CHECK(links == "+");
}

TEST_CASE_METHOD(server_rig, "a burst of commands is one write, and large ones arrive") {
  const auto c = connect(direct());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  const std::string large(3'000'000, 'x');
  const auto set = send(*c, {"SET", "large", large});
  const auto size = send(*c, {"STRLEN", "large"});
  REQUIRE(until([&] { return size->times != 0; }));
  CHECK(set->is("OK"));
  CHECK(size->is(static_cast<long long>(large.size())));
}

TEST_CASE_METHOD(server_rig, "commands survive any cutting of the byte stream") {
  between().split(direction::to_client, 1);
  between().split(direction::to_server, 1);
  const auto c = connect(proxied());
  const auto set = send(*c, {"SET", "key", "value\r\n"});
  const auto get = send(*c, {"GET", "key"});
  const auto range = send(*c, {"CONFIG", "GET", "maxmemory"});
  REQUIRE(until([&] { return range->times != 0; }));
  CHECK(set->is("OK"));
  CHECK(get->is("value\r\n"));
  CHECK(range->got.reply.elements.size() == 2);
  const auto n = between().count();
  CHECK(n.connections == 1);
  CHECK(n.pieces_to_server == n.bytes_to_server);
  CHECK(n.pieces_to_client == n.bytes_to_client);
}

TEST_CASE_METHOD(server_rig,
                 "answers that wait to be read while others are handed on are no bytes that nobody asked for") {
  const auto c = connect(direct());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  const std::string text(100, 'x');
  std::size_t right = 0;
  const std::size_t all = 600;  // more than is read at once, and written in one go
  const auto count = [&](const redis::outcome& o) { right += !o.error && o.reply.text == text; };
  for (std::size_t i = 1; i < all; ++i)
    c->execute(plain_command(redis::make_command({"ECHO", text}), {.timeout = 20s}, [&, i](const redis::outcome& o) {
      if (i == 1) {
        std::this_thread::sleep_for(20ms);  // the executor is busy, and the server answers them all
        c->execute(plain_command(redis::make_command({"ECHO", text}), {.timeout = 20s}, count));
      }
      count(o);
    }));
  CHECK(until([&] { return right == all; }));
  CHECK(links == "+");
}

TEST_CASE_METHOD(server_rig, "an idle connection holds nothing and stays open") {
  const auto c = connect(proxied());
  const auto first = send(*c, {"PING"});
  must_become_idle();
  CHECK(first->is("PONG"));
  CHECK(between().count().open == 1);
  const auto second = send(*c, {"PING"});
  must_become_idle();
  CHECK(second->is("PONG"));
  CHECK(between().count().connections == 1);
}

TEST_CASE_METHOD(server_rig, "a watched connection holds the context until the watch ends, and works after it") {
  const auto c = connect(proxied());
  c->keep_watch(true);
  REQUIRE(until([&] { return links == "+"; }));  // made without any command
  run_for(30ms);
  CHECK_FALSE(io.stopped());
  c->keep_watch(false);
  must_become_idle();
  const auto ping = send(*c, {"PING"});
  must_become_idle();
  CHECK(ping->is("PONG"));
  CHECK(between().count().connections == 1);
  CHECK(links == "+");
}

TEST_CASE_METHOD(server_rig, "all addresses of a name are tried") {
  const auto& s = server({.tcp = true});  // at 127.0.0.1 alone
  const host_name many("many.example", {"::1", "127.0.0.2", "127.0.0.1", "127.0.0.3"});
  CHECK(call(*connect(tcp_endpoint("many.example", s.port())), {"PING"})->is("PONG"));
  const host_name none("none.example", {"127.0.0.2", "127.0.0.3"});
  const auto a = call(*connect(tcp_endpoint("none.example", s.port())), {"PING"}, 200ms);
  CHECK(a->has(errc::unreachable));
  CHECK(call(*connect(tcp_endpoint("127.0.0.1", s.port())), {"PING"})->is("PONG"));
}

TEST_CASE_METHOD(server_rig, "a name is resolved anew for each connection") {
  const auto& s = server({.tcp = true, .arguments = {"--bind", "127.0.0.1", "127.0.0.2"}});
  const auto port = ":" + std::to_string(s.port());
  const auto address = [&](redis::connection& to) {  // the server's end of it; empty without an answer
    const auto text = call(to, {"CLIENT", "INFO"})->got.reply.text;
    const auto at = text.find("laddr=");
    return at == text.npos ? std::string() : text.substr(at + 6, text.find(' ', at) - at - 6);
  };
  host_name name("moves.example", {"127.0.0.1"});
  const auto c = connect(tcp_endpoint("moves.example", s.port()));
  CHECK(address(*c) == "127.0.0.1" + port);
  name.move_to({"127.0.0.2"});
  CHECK(address(*c) == "127.0.0.1" + port);  // the old one goes on
  admin()("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  REQUIRE(until([&] { return address(*c) == "127.0.0.2" + port; }));
}

TEST_CASE_METHOD(server_rig, "a wrong password fails every command at once and is tried once a second") {
  server({.password = "right"});
  auto node = proxied();
  node.login.password = "wr0ng-secret";
  const auto c = connect(node);
  const auto start = lease_clock::now();
  const auto a = send(*c, {"PING"});
  const auto b = send(*c, {"PING"});
  REQUIRE(until([&] { return a->times != 0 && b->times != 0; }));
  CHECK(lease_clock::now() - start < 5s);
  CHECK(a->has(errc::auth_failed));
  CHECK(b->has(errc::auth_failed));
  CHECK(a->got.detail.find("WRONGPASS") != std::string::npos);
  for (int i = 0; i < 50; ++i) CHECK(call(*c, {"PING"})->has(errc::auth_failed));
  CHECK(between().count().connections <= 1 + static_cast<std::size_t>((lease_clock::now() - start) / 1s));
  must_become_idle();
  c->keep_watch(true);
  run_for(300ms);
  CHECK(between().count().connections <= 1 + static_cast<std::size_t>((lease_clock::now() - start) / 1s));
  for (const auto& text : details) CHECK(text.find("wr0ng-secret") == std::string::npos);
  CHECK(count("outage") == 1);
  admin()("CONFIG", "SET", "requirepass", "wr0ng-secret");
  REQUIRE(until([&] { return links == "+"; }));  // mended
  CHECK(call(*c, {"PING"})->is("PONG"));
}

TEST_CASE_METHOD(server_rig, "a password that is needed and not given") {
  server({.password = "right"});
  const auto c = connect(direct());
  const auto a = call(*c, {"PING"});
  CHECK(a->has(errc::auth_failed));
  CHECK(a->got.detail.find("NOAUTH") != std::string::npos);
}

TEST_CASE_METHOD(server_rig, "user, database and client name reach the server") {
  server();
  admin()("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all");
  auto node = direct();
  node.login.user = "app";
  node.login.password = "secret";
  node.db = 3;
  node.client_name = "holdfast";
  const auto c = connect(node);
  CHECK(call(*c, {"ACL", "WHOAMI"})->is("app"));
  CHECK(call(*c, {"CLIENT", "GETNAME"})->is("holdfast"));
  CHECK(call(*c, {"SET", "a", "b"})->is("OK"));
  admin()("SELECT", 3);
  CHECK(admin()("GET", "a") == "b");
}

TEST_CASE_METHOD(server_rig, "a refusal that mends itself is no answer, any other is one") {
  server();
  const auto before = lease_clock::now();
  SECTION("no room") {
    admin()("CONFIG", "SET", "maxclients", "1");
    const auto c = connect(direct());
    REQUIRE(call(*c, {"PING"})->has(errc::server_refused));
    CHECK_FALSE(c->answered_since(before));  // nobody need wait for it again, until there is room
    admin()("CONFIG", "SET", "maxclients", "100");
    REQUIRE(until([&] { return call(*c, {"PING"})->is("PONG"); }));
    CHECK(c->answered_since(before));
  }
  SECTION("no write") {
    const auto c = connect(direct());
    REQUIRE(call(*c, {"PING"})->is("PONG"));
    admin()("CONFIG", "SET", "min-replicas-to-write", "1");
    const auto connected = lease_clock::now();
    REQUIRE(call(*c, {"SET", "a", "b"})->got.reply.text.starts_with("NOREPLICAS"));
    CHECK_FALSE(c->answered_since(connected));
    REQUIRE(call(*c, {"GET"})->got.reply.is_error());
    CHECK(c->answered_since(connected));
  }
  SECTION("a password") {
    admin()("CONFIG", "SET", "requirepass", "right");
    const auto c = connect(direct());
    REQUIRE(call(*c, {"PING"})->has(errc::auth_failed));
    CHECK(c->answered_since(before));
  }
}

TEST_CASE_METHOD(server_rig, "a replica is refused") {
  server();
  admin()("REPLICAOF", "127.0.0.1", 1);
  const auto c = connect(direct());
  CHECK(call(*c, {"PING"})->has(errc::not_primary));
  admin()("REPLICAOF", "NO", "ONE");
  run_for(1100ms);
  CHECK(call(*c, {"PING"})->is("PONG"));
}

TEST_CASE_METHOD(server_rig, "without the permission to fence the observer is told once") {
  need_redis_7("an ACL can take a subcommand away");
  server();
  admin()("ACL", "SETUSER", "default", "-client|id");
  const auto c = connect(direct());
  c->keep_watch(true);
  REQUIRE(until([&] { return links == "+"; }));
  CHECK(events == std::vector<std::string>{"fencing_degraded", "connected"});
  CHECK(details[0].find("CLIENT ID: NOPERM") != std::string::npos);
  admin()("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  REQUIRE(until([&] { return links == "+-+"; }));
  CHECK(count("fencing_degraded") == 1);
}

TEST_CASE_METHOD(server_rig,
                 "more commands than may be pending are refused at once, but no obligation and nobody who is patient") {
  server();
  auto node = direct();
  node.pending_commands = 2;
  const auto c = connect(node);
  const auto a = send(*c, {"PING"});
  const auto b = send(*c, {"PING"});
  const auto x = send(*c, {"PING"});
  const auto kept = send(*c, {"PING"}, 20s, redis::urgency::obligation);
  const auto patient = send(*c, {"PING"}, 20s, redis::urgency::awaited);
  REQUIRE(until([&] { return a->times != 0 && b->times != 0 && x->times != 0 && patient->times != 0; }));
  CHECK(a->is("PONG"));
  CHECK(b->is("PONG"));
  CHECK(x->has(errc::overloaded));
  CHECK(kept->is("PONG"));
  CHECK(patient->is("PONG"));
}

TEST_CASE_METHOD(server_rig, "a command with no time left is not sent") {
  const auto c = connect(proxied());
  const auto a = call(*c, {"INCR", "n"}, -1ms);
  CHECK(a->has(errc::unreachable));
  CHECK(call(*c, {"GET", "n"})->got.reply.type == redis::reply::kind::nil);
}

TEST_CASE_METHOD(server_rig, "nobody is called after close(), for later commands neither") {
  const auto c = connect(direct());
  const auto a = send(*c, {"PING"});
  c->close();
  run_for(30ms);
  CHECK(a->times == 0);
  const auto b = send(*c, {"PING"});
  must_become_idle();
  CHECK(b->times == 0);
  CHECK(events.empty());
}

TEST_CASE_METHOD(server_rig, "handlers may send, close and destroy") {
  auto c = connect(direct());
  int answers = 0;
  std::function<void(redis::outcome)> again = [&](const redis::outcome&) {
    if (++answers < 100) c->execute(plain_command(redis::make_command({"PING"}), {.timeout = 20s}, again));
  };
  c->execute(plain_command(redis::make_command({"PING"}), {.timeout = 20s}, again));
  must_become_idle();
  CHECK(answers == 100);
  for (int i = 0; i < 10; ++i)
    c->execute(plain_command(redis::make_command({"PING"}), {.timeout = 20s}, [&](const redis::outcome&) {
      if (++answers == 105) c->close();
    }));
  must_become_idle();
  CHECK(answers == 105);
}

TEST_CASE_METHOD(server_rig, "several threads may run the context") {
  const auto c = connect(direct());
  std::atomic<int> answers = 0;
  const int total = 20'000;
  std::function<void()> one = [&] {
    c->execute(plain_command(redis::make_command({"PING"}), {.timeout = 20s}, [&](const redis::outcome& o) {
      if (o.error) FAIL(o.detail);
      if (++answers <= total - 64) asio::post(io, [&] { asio::post(strand, one); });
    }));
  };
  for (int i = 0; i < 64; ++i) asio::post(strand, one);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { io.run(); });
  for (auto& t : threads) t.join();
  CHECK(answers == total);
}
