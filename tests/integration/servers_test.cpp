// SPDX-License-Identifier: BSL-1.0
// The servers and processes that other tests rely on.
#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "support/catch.hpp"
#include "support/child_process.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"
#include "support/skip.hpp"
#include "support/tls_files.hpp"

using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

const std::string binary("a\0b\r\n\xff", 6);

void need_redis() {
  if (!real_redis::available()) skip("no redis-server found");
}

}  // namespace

TEST_CASE("a private server answers and survives what tests do to it") {
  need_redis();
  real_redis server;
  raw_client client(server);
  CHECK(client("SET", binary, binary) == "OK");
  CHECK(client("GET", binary) == binary);
  CHECK(client("HSET", "hash", "field", 12) == 1);
  CHECK(client("HGETALL", "hash").field("field") == "12");
  CHECK_THROWS_AS(client("GET", "hash"), server_error);
  CHECK(client.call({"GET", "hash"}).is_error());

  server.stop();
  client.patience = 20ms;
  CHECK_THROWS(client("PING"));
  server.cont();
  CHECK(client.receive(10s));

  server.kill();
  CHECK_FALSE(server.running());
  CHECK(client.closed_within(10s));
  server.restart();
  CHECK(raw_client(server)("DBSIZE") == 0);
}

TEST_CASE("a server with a log of its writes keeps them over a kill") {
  need_redis();
  real_redis server({.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
  raw_client{server}("SET", "a", 1);
  server.kill();
  server.restart();
  CHECK(raw_client(server)("GET", "a") == "1");
  server.shutdown();
  server.restart();
  CHECK(raw_client(server)("GET", "a") == "1");
  server.restart_empty();
  CHECK(raw_client(server)("DBSIZE") == 0);
}

TEST_CASE("a server listens on TCP with a password and says why it does not start") {
  need_redis();
  const real_redis server({.tcp = true, .password = "p w/:%"});
  CHECK(server.url() == "redis://:p%20w%2F%3A%25@127.0.0.1:" + std::to_string(server.port()));
  CHECK(raw_client(server)("PING") == "PONG");
  CHECK(raw_client("127.0.0.1", server.port()).call({"PING"}).text.starts_with("NOAUTH"));
  CHECK_THROWS(real_redis({.arguments = {"--nonsense", "1"}}));
}

TEST_CASE("a server outlives the thread that started it") {
  need_redis();
  std::optional<real_redis> server;
  std::thread([&] { server.emplace(); }).join();
  CHECK(raw_client(*server)("PING") == "PONG");
}

TEST_CASE("a server speaks TLS with the certificates made here") {
  need_redis();
  if (find_executable("openssl").empty()) skip("no openssl found");
  const tls_files files;
  const real_redis server(
      {.tls = redis_options::tls_files{files.server.certificate, files.server.key, files.ca, true}});
  const auto connect = [&](const std::string& more) {
    child_process openssl(
        {.executable = "sh",
         .argv = {"sh", "-c",
                  "printf 'PING\\r\\nQUIT\\r\\n' | openssl s_client -quiet -verify_return_error -connect 127.0.0.1:" +
                      std::to_string(server.tls_port()) + more + " 2>&1"}});
    return openssl.read_all(20s);
  };
  const auto client = " -cert " + files.client.certificate + " -key " + files.client.key;
  CHECK(connect(" -CAfile " + files.ca + client).find("+PONG") != std::string::npos);
  CHECK(connect(" -CAfile " + files.ca).find("+PONG") == std::string::npos);
  CHECK(connect(" -CAfile " + files.other_ca + client).find("verify error") != std::string::npos);
}

TEST_CASE("subscribers and monitors see what others do") {
  need_redis();
  const real_redis server;
  raw_client subscriber(server), monitor(server), publisher(server);
  subscriber.subscribe("channel");
  monitor.monitor();
  CHECK(publisher("PUBLISH", "channel", binary) == 1);
  const auto message = subscriber.next_message(10s);
  REQUIRE(message);
  CHECK(message->channel == "channel");
  CHECK(message->payload == binary);
  CHECK_FALSE(subscriber.next_message(1ms));
  const auto line = monitor.next_monitor_line(10s);
  REQUIRE(line);
  CHECK(line->argv == std::vector<std::string>{"PUBLISH", "channel", binary});
  CHECK(line->at > 0us);
}

TEST_CASE("another program is fed and read and stopped and waited for") {
  child_process cat({.executable = "cat"});
  cat.write("one\ntwo\n");
  CHECK(cat.read_line(10s) == "one");
  CHECK(cat.read_line(10s) == "two");
  CHECK_FALSE(cat.read_line(1ms));
  cat.close_input();
  CHECK(cat.wait(10s) == 0);
  CHECK_FALSE(cat.running());

  child_process shell(
      {.executable = "sh", .argv = {"sh", "-c", "echo \"$GIVEN\"; exit 3"}, .environment = {"GIVEN=a b"}});
  CHECK(shell.read_all(10s) == "a b\n");
  CHECK(shell.wait(10s) == 3);

  child_process sleeper({.executable = "sleep", .argv = {"sleep", "1000"}});
  sleeper.stop();
  CHECK_FALSE(sleeper.wait(1ms));
  sleeper.cont();
  sleeper.kill();
  CHECK(sleeper.wait(0ms) == 128 + SIGKILL);
  CHECK_THROWS(child_process({.executable = "/nonexistent/program"}));
}
