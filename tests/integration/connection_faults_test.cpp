// SPDX-License-Identifier: BSL-1.0
// What happens to commands when servers and networks fail.
#include "redis/connection.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "integration/redis_rig.hpp"
#include "support/catch.hpp"
#include "support/no_memory.hpp"
#include "support/sanitized.hpp"
#include "support/skip.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using direction = proxy::direction;
using detail::lease_clock;

TEST_CASE_METHOD(server_rig, "a watched connection that is lost is noticed and made again") {
  const auto c = connect(direct());
  c->keep_watch(true);
  REQUIRE(until([&] { return links == "+"; }));
  run_for(1100ms);
  admin()("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  REQUIRE(until([&] { return links == "+-+"; }));
  CHECK(events == std::vector<std::string>{"connected", "outage", "connected"});
  CHECK(reasons[1] == errc::unreachable);
}

TEST_CASE_METHOD(server_rig, "an idle connection that the server closed is replaced before anything is written to it") {
  const auto c = connect(direct());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  must_become_idle();
  admin()("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  std::this_thread::sleep_for(20ms);
  CHECK(call(*c, {"PING"})->is("PONG"));
  CHECK(links == "+-+");
}

TEST_CASE_METHOD(server_rig, "a server that is not there is unreachable at the command's deadline and not before") {
  auto node = unix_endpoint("/nonexistent/socket");
  const auto c = connect(node);
  const auto start = lease_clock::now();
  const auto a = call(*c, {"PING"}, 100ms);
  REQUIRE(a->has(errc::unreachable));
  CHECK(a->got.detail == "redis+unix:///nonexistent/socket: No such file or directory");
  CHECK(a->when >= start + 100ms);
  CHECK(a->when < start + 2s);
  CHECK(count("outage") == 1);  // not one for each attempt
  must_become_idle();
}

TEST_CASE_METHOD(server_rig, "a name that does not resolve is unreachable") {
  const auto c = connect(tcp_endpoint("no-such-host.invalid", 6379));
  const auto a = call(*c, {"PING"}, 300ms);
  REQUIRE(a->has(errc::unreachable));
  CHECK(a->got.detail.find("redis://no-such-host.invalid:6379") == 0);
}

TEST_CASE_METHOD(server_rig, "a command that waits for the server to come up is served in time") {
  server();
  const auto node = direct();
  server().kill();
  const auto c = connect(node);
  const auto a = send(*c, {"PING"});
  run_for(100ms);
  CHECK(a->times == 0);
  server().restart();
  REQUIRE(until([&] { return a->times != 0; }));
  CHECK(a->is("PONG"));
  CHECK(events.back() == "connected");
}

TEST_CASE_METHOD(server_rig, "what was written when the server died is unconfirmed at once, what was not waits") {
  const auto c = connect(direct());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  server().stop();
  const auto written = send(*c, {"PING"});
  run_for(20ms);
  server().kill();
  REQUIRE(until([&] { return written->times != 0; }));
  CHECK(written->has(errc::unconfirmed));
  CHECK(written->got.detail.find("redis+unix://") == 0);
  const auto waiting = send(*c, {"PING"});
  server().restart();
  REQUIRE(until([&] { return waiting->times != 0; }));
  CHECK(waiting->is("PONG"));
  CHECK(links == "+-+");
}

TEST_CASE_METHOD(server_rig, "a server that stopped answering loses its connection, and the next one fences it off") {
  const auto c = connect(proxied());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  server().stop();
  const auto start = lease_clock::now();
  const auto a = call(*c, {"INCR", "n"}, 60ms);
  CHECK(a->has(errc::unconfirmed));
  CHECK(a->when >= start + 60ms);
  REQUIRE(until([&] { return links == "+-"; }));
  server().cont();
  const auto b = send(*c, {"PING"});
  REQUIRE(until([&] { return b->times != 0; }));
  CHECK(b->is("PONG"));
  // The predecessor was fenced off: ID twice, KILL once.
  CHECK(between().count().commands["CLIENT"] == 3);
  CHECK(between().count().connections == 2);
}

TEST_CASE_METHOD(server_rig, "a predecessor that owed nothing is not fenced off") {
  const auto c = connect(proxied());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  between().cut();
  std::this_thread::sleep_for(20ms);
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  CHECK(between().count().commands["CLIENT"] == 2);
}

TEST_CASE_METHOD(server_rig, "a late reply is not taken for the next command's") {
  const auto c = connect(proxied());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  between().delay(direction::to_client, 10ms);
  for (int i = 0; i < 20; ++i) {
    const auto late = send(*c, {"ECHO", "late"}, 4ms);
    const auto next = send(*c, {"ECHO", "next" + std::to_string(i)});
    REQUIRE(until([&] { return late->times != 0 && next->times != 0; }));
    CHECK((late->has(errc::unconfirmed) || late->is("late") || late->has(errc::unreachable)));
    CHECK((next->has(errc::unconfirmed) || next->is("next" + std::to_string(i))));
  }
}

TEST_CASE_METHOD(server_rig, "a timeout of the client alone, its replies waiting to be read, is no silence") {
  const auto c = connect(direct());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  const auto a = send(*c, {"PING"}, 30ms);
  std::this_thread::sleep_for(80ms);  // the executor is busy elsewhere
  REQUIRE(until([&] { return a->times != 0; }));
  CHECK(a->is("PONG"));
  CHECK(links == "+");
}

TEST_CASE_METHOD(server_rig, "too many clients is an outage whose cause is told") {
  server();
  admin()("CONFIG", "SET", "maxclients", 1);
  const auto c = connect(direct());
  const auto a = call(*c, {"PING"}, 200ms);
  REQUIRE(a->has(errc::server_refused));
  CHECK(a->got.detail.find("max number of clients reached") != std::string::npos);
  CHECK(reasons.at(0) == errc::server_refused);
  admin()("CONFIG", "SET", "maxclients", 100);
  CHECK(call(*c, {"PING"})->is("PONG"));  // waits for the next attempt: what the last one heard may not hold any more
}

TEST_CASE_METHOD(server_rig,
                 "a reply for which there is no memory ends the connection, says why, and the next command is served") {
  if (address_sanitized || thread_sanitized) skip("the sanitizer needs address space of its own");
  const auto c = connect(direct());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  {
    const no_memory exhausted(64 * 1024);
    const auto a = call(*c, {"EVAL", "return string.rep('x', 1000000)", "0"}, 20s);
    CHECK(a->has(errc::unconfirmed));
  }
  CHECK(links == "+-");
  CHECK(reasons.at(1) == errc::unreachable);
  CHECK(details.at(1).find("no memory for a reply") != std::string::npos);
  CHECK(call(*c, {"PING"})->is("PONG"));
}

TEST_CASE_METHOD(server_rig, "a flapping link sees at most ten attempts in a second, and heals at once") {
  const auto c = connect(proxied());
  c->keep_watch(true);
  const auto start = lease_clock::now();
  while (lease_clock::now() - start < 2s) {
    between().cut();
    run_for(20ms);
  }
  const auto seconds = static_cast<std::size_t>((lease_clock::now() - start) / 1s) + 1;
  CHECK(between().count().connections <= 10 * seconds);
  CHECK(between().count().connections >= 5);
  CHECK(call(*c, {"PING"}, 2s)->is("PONG"));
}

TEST_CASE_METHOD(server_rig, "handlers of a lost connection may close it") {
  const auto c = connect(direct());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  server().stop();
  int answers = 0;
  for (int i = 0; i < 10; ++i)
    c->execute(plain_command(redis::make_command({"PING"}), {.timeout = 20s}, [&](const redis::outcome& o) {
      CHECK(o.error == errc::unconfirmed);
      if (++answers == 5) c->close();
    }));
  run_for(10ms);
  server().kill();
  must_become_idle();
  CHECK(answers == 5);
}

TEST_CASE("a server that never answers the handshake costs the connect timeout") {
  redis_rig rig;
  scripted_server server(rig.io, [](auto, auto) { return std::string{}; });
  auto node = unix_endpoint(server.path());
  node.connect_timeout = 50ms;
  const auto c = rig.connect(node);
  const auto a = rig.send(*c, {"PING"}, 1s);
  CHECK(rig.until([&] { return server.connections() >= 2; }));
  REQUIRE(rig.until([&] { return a->times > 0; }));
  REQUIRE(a->has(errc::unreachable));
  CHECK(a->got.detail.find("no connection within 50 ms (connected, no answer to the handshake)") != std::string::npos);
}

TEST_CASE("replies that nobody asked for, pushes and garbage end the connection") {
  redis_rig rig;
  std::string extra =
      GENERATE(as<std::string>{}, "+PONG\r\n+PONG\r\n", ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n", "hello\r\n",
               "*5000\r\n", "$2147483648\r\n" + std::string(1'200'000, 'x'), "%1\r\n+a\r\n+b\r\n");
  CAPTURE(extra.substr(0, 20));
  scripted_server server(rig.io, [&](std::string_view bytes, std::size_t n) {
    if (bytes.find("ROLE") != std::string_view::npos) return scripted_server::greeting(static_cast<int>(n) + 1);
    if (bytes.find("KILL") != std::string_view::npos) return std::string(":1\r\n");
    return n == 0 ? extra : std::string("+PONG\r\n");
  });
  const auto c = rig.connect(unix_endpoint(server.path()));
  c->keep_watch(true);
  const auto a = rig.call(*c, {"PING"});
  CHECK((a->has(errc::unconfirmed) || a->is("PONG")));
  REQUIRE(rig.until([&] { return rig.links == "+-+"; }));
  CHECK(rig.reasons.at(1) == errc::protocol_error);
  CHECK(rig.details.at(1).size() < 300);
  CHECK(rig.call(*c, {"PING"})->is("PONG"));
}

TEST_CASE("a server that refuses to write as a replica loses its connection, in the words of every Redis") {
  redis_rig rig;
  const std::string refusal =
      GENERATE("-READONLY You can't write against a read only replica. script: f_1, on @user_script:1.\r\n",
               "-ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write "
               "against a read only replica.\r\n");
  scripted_server server(rig.io, [&](std::string_view bytes, std::size_t n) {
    if (bytes.find("ROLE") != std::string_view::npos) return scripted_server::greeting(static_cast<int>(n) + 1);
    return n == 0 ? refusal : std::string("+PONG\r\n");
  });
  const auto c = rig.connect(unix_endpoint(server.path()));
  c->keep_watch(true);
  const auto a = rig.call(*c, {"EVALSHA"});
  CHECK((a->times == 1 && a->got.reply.is_error()));
  REQUIRE(rig.until([&] { return rig.links == "+-+"; }));
  CHECK(rig.reasons.at(1) == errc::not_primary);
}

namespace {

/// Greets as a primary or a replica, and answers PING with its name where it does not keep silent.
struct named_server {
  named_server(redis_rig& rig, std::string its_name, std::string role = "master", bool silent = false)
      : name(std::move(its_name)), on(rig.io, [this, role, silent](std::string_view bytes, std::size_t) {
          const auto info = "\r\nrun_id:" + name + "\r\n";
          if (bytes.find("ROLE") != std::string_view::npos)
            return ":1\r\n$" + std::to_string(info.size()) + "\r\n" + info + "\r\n*2\r\n$" +
                   std::to_string(role.size()) + "\r\n" + role + "\r\n:0\r\n";
          std::string answers;
          for (auto at = bytes.find("PING"); !silent && at != bytes.npos; at = bytes.find("PING", at + 1))
            answers += "+" + name + "\r\n";
          return answers;
        }) {}

  redis::address at() const { return unix_endpoint(on.path()).at; }

  std::string name;
  scripted_server on;
};

}  // namespace

TEST_CASE("a connection that is sent elsewhere leaves its server at once, also where that answers") {
  redis_rig rig;
  named_server a(rig, "aa", "master", true), b(rig, "bb");
  const auto c = rig.connect(unix_endpoint(a.on.path()));
  const auto written = rig.send(*c, {"PING"});
  REQUIRE(rig.until([&] { return rig.links == "+"; }));
  rig.run_for(1ms);
  c->retarget(b.at(), {errc::unreachable, "the primary is b now"});
  CHECK(rig.links == "+-");
  const auto waiting = rig.send(*c, {"PING"});
  REQUIRE(rig.until([&] { return waiting->times != 0; }));
  CHECK(written->has(errc::unconfirmed));
  CHECK(written->got.detail == "the primary is b now");
  CHECK(waiting->is("bb"));
  CHECK(rig.links == "+-+");
  CHECK(c->run() == "bb");
}

TEST_CASE("a command that was not written goes to the server that its connection is sent to") {
  redis_rig rig;
  named_server b(rig, "bb");
  const auto c = rig.connect(unix_endpoint(b.on.path() + ".nobody"));
  const auto waiting = rig.send(*c, {"PING"});
  REQUIRE(rig.until([&] { return !rig.events.empty(); }));
  c->retarget(b.at(), {errc::unreachable, "the primary is b"});
  REQUIRE(rig.until([&] { return waiting->times != 0; }));
  CHECK(waiting->is("bb"));
}

TEST_CASE("a server that is no primary is an outage where another may be found, and commands wait for that") {
  redis_rig rig;
  named_server replica(rig, "aa", "slave"), primary(rig, "bb");
  const auto c = rig.connect(unix_endpoint(replica.on.path()));
  c->tolerate([](const redis::failure& why) { return why.code == errc::not_primary; });
  const auto waiting = rig.send(*c, {"PING"});
  REQUIRE(rig.until([&] { return !rig.reasons.empty(); }));
  CHECK(rig.reasons.front() == errc::not_primary);
  const auto later = rig.send(*c, {"PING"});
  c->retarget(primary.at(), {errc::unreachable, "elsewhere"});
  REQUIRE(rig.until([&] { return waiting->times != 0 && later->times != 0; }));
  CHECK(waiting->is("bb"));
  CHECK(later->is("bb"));
}

TEST_CASE("who is refused by a replica where a failover is expected hears that it has not run") {
  redis_rig rig;
  scripted_server server(rig.io, [&](std::string_view bytes, std::size_t n) {
    if (bytes.find("ROLE") != std::string_view::npos) return scripted_server::greeting(static_cast<int>(n) + 1);
    return std::string("-READONLY You can't write against a read only replica.\r\n");
  });
  const auto c = rig.connect(unix_endpoint(server.path()));
  c->expect_failover(redis::failover::expected);
  const auto a = rig.call(*c, {"EVALSHA"});
  CHECK(a->has(errc::unreachable));
  CHECK(a->got.detail.find("has become a replica") != std::string::npos);
}

TEST_CASE("two connections tell by one number that they lead to the same run of a server") {
  redis_rig rig;
  named_server a(rig, "aa"), also_a(rig, "aa"), b(rig, "bb");
  const auto number = [&](const named_server& at) {
    return rig.call(*rig.connect(unix_endpoint(at.on.path())), {"PING"})->got.server;
  };
  CHECK(number(a) != 0);
  CHECK(number(a) == number(also_a));
  CHECK(number(a) != number(b));
}

TEST_CASE("a message is not taken for the answer to a command") {
  redis_rig rig;
  scripted_server server(rig.io, [&](std::string_view bytes, std::size_t n) {
    if (bytes.find("ROLE") != std::string_view::npos) return scripted_server::greeting(static_cast<int>(n) + 1);
    if (bytes.find("KILL") != std::string_view::npos) return std::string(":1\r\n");
    return std::string(n == 0 ? "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n" : "") + "+first\r\n+second\r\n";
  });
  const auto c = rig.connect(unix_endpoint(server.path()));
  c->keep_watch(true);
  REQUIRE(rig.until([&] { return rig.links == "+"; }));
  const auto first = rig.send(*c, {"ECHO", "first"}), second = rig.send(*c, {"ECHO", "second"});
  REQUIRE(rig.until([&] { return first->times != 0 && second->times != 0; }));
  CHECK(first->has(errc::unconfirmed));
  CHECK(second->has(errc::unconfirmed));
  CHECK(rig.reasons.at(1) == errc::protocol_error);
}

TEST_CASE("bytes that came while the connection was idle are not taken for an answer") {
  redis_rig rig;
  scripted_server server(rig.io, [&](std::string_view bytes, std::size_t n) {
    if (bytes.find("ROLE") != std::string_view::npos) return scripted_server::greeting(static_cast<int>(n) + 1);
    return std::string("+PONG\r\n");
  });
  const auto c = rig.connect(unix_endpoint(server.path()));
  REQUIRE(rig.call(*c, {"PING"})->is("PONG"));
  server.send("+WRONG\r\n");
  std::this_thread::sleep_for(20ms);
  CHECK(rig.call(*c, {"PING"})->is("PONG"));
  CHECK(rig.links == "+-+");
}

TEST_CASE("a server that closes every connection after the handshake is not hammered") {
  redis_rig rig;
  scripted_server server(rig.io, [&](std::string_view bytes, std::size_t n) {
    if (bytes.find("ROLE") != std::string_view::npos) return scripted_server::greeting(static_cast<int>(n) + 1);
    return std::string(bytes.find("KILL") != std::string_view::npos ? ":1\r\n" : "close");
  });
  const auto c = rig.connect(unix_endpoint(server.path()));
  const auto start = lease_clock::now();
  std::size_t unconfirmed = 0;
  while (lease_clock::now() - start < 1500ms) unconfirmed += rig.call(*c, {"PING"}, 500ms)->has(errc::unconfirmed);
  CHECK(unconfirmed >= 3);
  CHECK(server.connections() <= 21);
}
