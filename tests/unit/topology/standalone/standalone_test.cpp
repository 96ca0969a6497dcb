// SPDX-License-Identifier: BSL-1.0
// One address whose server a test plays: a primary, a replica after a failover, another server.
#include "topology/standalone/standalone.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/plain_command.hpp"
#include "unit/redis/scripted_network.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

const redis::address address{"redis", 6379, {}};

struct fake_server final : scripted_host {
  explicit fake_server(std::string r) : run(std::move(r)) {}
  redis::reply answer(connection& from, const std::vector<std::string>& argv) override {
    if (argv[0] == "CLIENT") return replies::integer(7);
    if (argv[0] == "PING") return replies::status("PONG");
    if (argv[0] == "ROLE") return role.empty() ? replies::error("NOPERM no ROLE") : strings({role});
    if (argv[0] == "INFO")
      return replies::string("# Server\r\nredis_version:7.0.15\r\nredis_mode:" + mode + "\r\nrun_id:" + run + "\r\n");
    if (argv[0] == "WAIT") return replies::integer(1);
    if (argv[0] == "SUBSCRIBE") {
      listening.insert(&from);
      return replies::array({replies::string("subscribe"), replies::string(argv.back()), replies::integer(1)});
    }
    if (!refusal.empty()) return replies::error(refusal);
    return argv[0] == "EVAL" ? replies::integer(1) : replies::string(run);
  }
  /// It is a replica of another server from now on.
  void demote(std::string words = "READONLY You can't write against a read only replica.") {
    if (!role.empty()) role = "slave";
    refusal = std::move(words);
  }
  void promote() {
    if (!role.empty()) role = "master";
    refusal.clear();
  }
  std::size_t listeners() const {
    return static_cast<std::size_t>(
        std::count_if(listening.begin(), listening.end(), [this](auto* c) { return connections.contains(c); }));
  }

  std::string run, role = "master", mode = "standalone", refusal;
  std::set<connection*> listening;
};

struct answer {
  int times = 0;
  redis::outcome got;

  bool is(std::string_view text) const { return times == 1 && !got.error && got.reply.text == text; }
  bool has(errc code) const { return times == 1 && got.error == code; }
};

struct listener final : redis::subscriber {
  void on_subscribed() override { ++subscribed; }
  void on_message(std::string_view) override {}
  void on_subscribe_failed(error_code, const std::string&) override { ++failed; }
  int subscribed = 0, failed = 0;
};

/// The address leads to A at first.
struct fixture : scripted_environment {
  fixture() { lead_to(a); }
  ~fixture() { server.close(); }

  void lead_to(fake_server& which) { network.hosts = {{address, &which}}; }
  std::shared_ptr<answer> send(redis::delivery how = {.timeout = 500ms}, bool writes = true) {
    const auto got = std::make_shared<answer>();
    server.execute("key", plain_command(
                              redis::make_command({"SET", "k", "v"}), how,
                              [got](redis::outcome o) {
                                ++got->times;
                                got->got = std::move(o);
                              },
                              {}, writes));
    poll();
    pass(0ms);  // the alarm that is due at once connects
    return got;
  }
  /// The client finds out when it sends something.
  void cut(fake_server& of) {
    for (auto* c : of.connections) c->end();
    pass(10ms);
  }
  void pass(std::chrono::milliseconds time) { alarms.advance(time); }

  static redis::endpoint node() {
    redis::endpoint e;
    e.at = address;
    return e;
  }

  fake_server a{"aa"}, b{"bb"};
  std::vector<std::string> events;
  detail::standalone server{services(), node(), 500ms, [this](const event& e) {
                              events.push_back(std::string(to_string(e.kind)) +
                                               (e.reason ? ' ' + e.reason.message() + ": " : ": ") +
                                               std::string(e.detail));
                            }};
};

constexpr redis::delivery patient{.timeout = 500ms, .rank = redis::urgency::obligation, .waits_for_reply = true};

}  // namespace

TEST_CASE_METHOD(fixture, "a primary that becomes a replica without a disconnect is an outage, and commands wait") {
  REQUIRE(send()->is("aa"));
  const auto* const words =
      GENERATE("READONLY You can't write against a read only replica.",
               "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write",
               "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
  a.demote(words);
  server.keep_watch(true);
  const auto refused = send();
  CHECK(refused->has(errc::unreachable));
  CHECK(refused->got.detail == "redis://redis:6379: the server has become a replica");
  const auto waits = send(patient), in_time = send();
  pass(10s);
  CHECK(in_time->has(errc::unreachable));
  CHECK(in_time->got.detail == "redis://redis:6379: the server is a replica");
  CHECK(waits->times == 0);
  CHECK(send()->times == 0);  // it waits for its own time: no failure stands
  REQUIRE(events.size() == 2);
  CHECK(events.back() == "outage the server is not a primary: redis://redis:6379: the server has become a replica");
  CHECK_FALSE(server.answered_since("key", clock.now() - 9s));
  a.promote();
  pass(10s);
  CHECK(waits->is("aa"));
  REQUIRE(events.size() == 3);
  CHECK(events.back().starts_with("connected"));
}

TEST_CASE_METHOD(fixture, "a primary that is a replica when the client connects again is an outage, too") {
  REQUIRE(send()->is("aa"));
  a.demote();
  cut(a);
  const auto waits = send(patient);
  pass(10s);
  CHECK(waits->times == 0);
  CHECK(std::count_if(events.begin(), events.end(), [](const auto& e) { return e.starts_with("outage"); }) == 2);
  CHECK(events.back() == "outage the server is not a primary: redis://redis:6379: the server is a replica");
  a.promote();
  pass(10s);
  CHECK(waits->is("aa"));
}

TEST_CASE_METHOD(fixture,
                 "the address of a primary that has become a replica is looked for again, and not in a storm") {
  random = fixed_random(4'000'000'000);  // most of each pause that it is to draw
  REQUIRE(send()->is("aa"));
  pass(2s);
  a.demote();
  REQUIRE(send()->has(errc::unreachable));
  const auto waits = send(patient);
  const auto before = a.made;
  pass(10s);
  CHECK(a.made - before >= 3);
  CHECK(a.made - before <= 12);
  lead_to(b);
  pass(10s);
  CHECK(waits->is("bb"));
}

TEST_CASE_METHOD(fixture, "a server that was never a primary for this client is refused at once") {
  a.demote();
  const auto early = send(patient);
  CHECK(early->has(errc::not_primary));
  CHECK(send()->has(errc::not_primary));
  a.promote();
  pass(10s);
  CHECK(send()->is("aa"));
}

TEST_CASE_METHOD(fixture,
                 "where ROLE is withheld an answer that a replica cannot give shows that the server was a primary") {
  a.role.clear();
  const bool writes = GENERATE(true, false);
  REQUIRE(send({.timeout = 500ms}, writes)->is("aa"));
  a.demote();
  const auto refused = send();
  if (writes) {
    CHECK(refused->has(errc::unreachable));
  } else {
    CHECK((refused->times == 1 && !refused->got.error && refused->got.reply.is_error()));
  }
}

TEST_CASE_METHOD(fixture, "a server of another kind is no failover") {
  REQUIRE(send()->is("aa"));
  b.mode = "cluster";
  lead_to(b);
  cut(a);
  const auto waits = send(patient);
  pass(1s);
  CHECK(waits->has(errc::not_primary));
}

TEST_CASE_METHOD(fixture,
                 "the connections that listen and that ask for replicas follow the commands to another server") {
  listener heard;
  const auto kept = server.subscribe("channel", heard);
  const auto granted = send();
  REQUIRE(granted->is("aa"));
  REQUIRE(heard.subscribed == 1);
  const auto replicas_of = [&](std::uint64_t number) {
    const auto told = std::make_shared<std::string>("nothing");
    server.replicated("key", {1, number, clock.now() + 100ms},
                      [told](const std::optional<redis::failure>& failed, unsigned had) {
                        *told = failed ? failed->detail : std::to_string(had);
                      });
    poll();
    pass(1s);
    return *told;
  };
  REQUIRE(replicas_of(granted->got.server) == "1");
  a.demote();
  lead_to(b);
  REQUIRE(send()->has(errc::unreachable));
  const auto there = send(patient);
  pass(1s);
  REQUIRE(there->is("bb"));
  CHECK(a.listeners() == 0);
  CHECK(b.listeners() == 1);
  CHECK(heard.subscribed == 2);
  CHECK(heard.failed == 0);
  CHECK(replicas_of(there->got.server) == "1");
}
