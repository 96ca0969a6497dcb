// SPDX-License-Identifier: BSL-1.0
// A server that the test plays: which mark is set before WAIT, and which of its answers count.
#include "topology/replicas/acknowledger.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/plain_command.hpp"
#include "unit/redis/scripted_network.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;
using answer = std::pair<error_code, unsigned>;

struct fake_primary final : scripted_host {
  redis::reply answer(connection& from, const std::vector<std::string>& argv) override {
    if (argv[0] == "CLIENT") return replies::integer(7);
    if (argv[0] == "ROLE") return strings({"master"});
    if (argv[0] == "INFO") {
      ++introductions;
      return replies::string("# Server\r\nredis_version:7.4.1\r\nredis_mode:" + mode + "\r\nrun_id:1\r\n");
    }
    if (argv[0] == "SET") return replies::status("OK");
    if (argv[0] == "EVAL") {
      said.push_back("mark " + argv.at(3));
      if (std::exchange(ends_after_mark, false)) {
        from.send(marked);
        from.end();
      }
      return argv[3] == refused_key ? refusal : marked;
    }
    std::string all;
    for (const auto& word : argv) all += (all.empty() ? "" : " ") + word;
    said.push_back(all);
    return argv[0] == "WAIT" ? replies::integer(had) : replies::status("OK");
  }

  std::string mode = "standalone", refused_key;
  redis::reply marked = replies::integer(1);
  redis::reply refusal = replies::error("NOPERM No permissions to access a key");
  int had = 1, introductions = 0;
  bool ends_after_mark = false;
  words said;  // after the grant
};

struct acknowledger_fixture : scripted_environment {
  acknowledger_fixture() { network.hosts = {{node.at, &server}}; }
  ~acknowledger_fixture() {
    if (grants) grants->close();
    if (asks) asks->close();
    poll();
  }

  /// What a replica should have; the number of the server that has done it.
  std::uint64_t grant() {
    std::uint64_t by = 0;
    grants = std::make_shared<redis::connection>(services(), node, [](const event&) {});
    grants->execute(plain_command(redis::make_command({"SET", "m", "1"}), {.timeout = 500ms},
                                  [&by](const redis::outcome& o) { by = o.server; }));
    alarms.advance(1ms);
    return by;
  }
  void ask(const std::vector<std::string>& keys) {
    const auto by = grant();
    if (!asks) asks.emplace(services(), node);
    for (const auto& key : keys)
      asks->ask(key, {1, by, clock.now() + 500ms},
                [this, key](const std::optional<redis::failure>& failed, unsigned had) {
                  heard[key] = {failed ? failed->code : error_code(), had};
                  words_of[key] = failed ? failed->detail : "";
                });
    alarms.advance(1ms);
  }

  fake_primary server;
  redis::endpoint node = [] {
    redis::endpoint n;
    n.at.host = "A";
    return n;
  }();
  std::shared_ptr<redis::connection> grants;
  std::optional<detail::acknowledger> asks;
  std::map<std::string, answer> heard;
  std::map<std::string, std::string> words_of;  // the cause
};

}  // namespace

TEST_CASE_METHOD(acknowledger_fixture, "what replicas must reach is a mark on the key that was granted") {
  ask({"a"});
  CHECK(server.said == words{"mark a", "WAIT 1 400"});
  CHECK(heard["a"] == answer({}, 1U));
}

TEST_CASE_METHOD(acknowledger_fixture, "in a cluster the mark may be set where the key is moving to") {
  node.expected = redis::server_mode::cluster;
  server.mode = "cluster";
  ask({"a"});
  CHECK(server.said == words{"ASKING", "mark a", "WAIT 1 400"});
  CHECK(heard["a"] == answer({}, 1U));
}

TEST_CASE_METHOD(acknowledger_fixture, "a WAIT after a mark that was refused counts nothing") {
  errc why{};
  server.refused_key = "a";
  std::string words_of_server;
  SECTION("for want of a permission") {
    why = errc::no_permission;
    words_of_server = "NOPERM";
  }
  SECTION("of a key without a TTL") {
    server.refusal = replies::integer(0);
    why = errc::corrupt_lock;
  }
  SECTION("in words that are not Redis's") {
    server.refusal = replies::status("OK");
    why = errc::protocol_error;
  }
  ask({"a"});
  CHECK(server.said == words{"mark a", "WAIT 1 400"});
  CHECK(heard["a"] == answer(why, 0U));
  CHECK(words_of["a"].find(words_of_server) != std::string::npos);
}

TEST_CASE_METHOD(acknowledger_fixture, "the refusal of a key is no affair of those who wait for another") {
  server.refused_key = "b";
  SECTION("for want of a permission") {}
  SECTION("of a key without a TTL") { server.refusal = replies::integer(0); }
  SECTION("of a key that is at another node") { server.refusal = replies::error("MOVED 3300 B:6379"); }
  ask({"a", "b", "c", "b"});
  CHECK(server.said == words{"mark a", "WAIT 1 400", "mark b", "WAIT 1 400", "mark c", "WAIT 1 400"});
  CHECK(heard["a"] == answer({}, 1U));
  CHECK((heard["b"].first && heard["b"].second == 0));
  CHECK(heard["c"] == answer({}, 1U));
}

TEST_CASE_METHOD(acknowledger_fixture, "a server that takes no mark on any key is asked once for all who wait") {
  server.refused_key = "b";
  server.refusal = replies::error("NOREPLICAS Not enough good replicas to write.");
  ask({"a", "b", "c"});
  CHECK(server.said == words{"mark a", "WAIT 1 400", "mark b", "WAIT 1 400"});
  CHECK(heard["b"] == answer(errc::server_refused, 0U));
  CHECK(heard["c"] == answer(errc::server_refused, 0U));
}

TEST_CASE_METHOD(acknowledger_fixture, "a WAIT on another connection than its mark counts nothing") {
  server.takes_at_once = 1'000;
  server.ends_after_mark = true;
  const std::string fills_one_write(256 * 1024, 'k');
  ask({fills_one_write});
  REQUIRE(server.said.size() == 1);
  alarms.advance(100ms);
  REQUIRE(server.said.size() == 2);
  CHECK(server.said[1].starts_with("WAIT"));
  CHECK(server.introductions == 3);  // of the grant, of the mark, and of WAIT
  CHECK(heard[fills_one_write] == answer(errc::unreachable, 0U));
}
