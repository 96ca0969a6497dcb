// SPDX-License-Identifier: BSL-1.0
// Changes of keys that a real server pushes.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/make_topology.hpp"
#include "config/settings.hpp"
#include "integration/redis_rig.hpp"
#include "support/catch.hpp"
#include "support/real_cluster.hpp"
#include "support/server_version.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

/// A client of the servers at a URL, and the changes that it hears of.
struct pushed_client : redis_rig {
  pushed_client() {
    least_rights::skip_if_in_force("connections carry any command here");
    need_redis();
    need_pushes();
  }
  ~pushed_client() {
    if (servers) servers->close();
  }

  void connect_to(const std::string& url) {
    config c;
    c.url = url;
    const auto settings = detail::resolve(c);
    servers = detail::make_topology(services(), settings, settings.values, [this](const event& e) {
      if (e.kind == event_kind::push_degraded) degraded.emplace_back(e.detail);
    });
    servers->on_key_changed(
        [this](std::string_view key, detail::node_id) { changes.emplace_back(key.empty() ? "any" : key); });
  }
  void begin(const std::string& key) {
    servers->start_pushing(key);
    REQUIRE(until([&] { return servers->pushes(key); }));
    REQUIRE(until([&] { return heard("any"); }));
  }
  redis::outcome call(const std::string& key, const words& argv, bool track) {
    auto got = std::make_shared<redis::outcome>();
    auto done = std::make_shared<bool>();
    std::string text;
    std::vector<std::string_view> all(argv.begin(), argv.end());
    redis::append_command(text, all);
    servers->execute(key, plain_command(text, {.timeout = 20s, .track = track}, [got, done](redis::outcome o) {
                       *got = std::move(o);
                       *done = true;
                     }));
    REQUIRE(until([&] { return *done; }));
    return *got;
  }
  bool track(const std::string& key) {
    changes.clear();
    return call(key, {"EXISTS", key}, true).tracked;
  }
  bool heard(const std::string& what) const { return std::count(changes.begin(), changes.end(), what) != 0; }
  bool hears(const std::string& what) {
    return until([&] { return heard(what); });
  }

  words changes, degraded;
  std::unique_ptr<detail::topology> servers;
};

struct fixture : pushed_client {
  fixture() { connect_to(server.unix_url()); }

  real_redis server;
  raw_client other{server};
};

struct in_cluster : pushed_client {
  in_cluster() { connect_to(rig.url()); }

  real_cluster rig;
};

}  // namespace

TEST_CASE_METHOD(fixture, "a change of a tracked key by another client is pushed, and an expiry, and a flush") {
  begin("k");
  other("SET", "k", "v", "PX", 600'000);
  REQUIRE(track("k"));
  SECTION("a deletion") {
    other("DEL", "k");
    CHECK(hears("k"));
  }
  SECTION("a new TTL") {
    other("PEXPIRE", "k", 700'000);
    CHECK(hears("k"));
  }
  SECTION("an expiry that nobody looks for") {
    other("PEXPIRE", "k", 20);
    REQUIRE(hears("k"));
    REQUIRE(track("k"));
    CHECK(hears("k"));
  }
  SECTION("a grant after it was absent") {
    other("DEL", "k");
    REQUIRE(hears("k"));
    REQUIRE(track("k"));
    other("SET", "k", "w", "NX", "PX", 600'000);
    CHECK(hears("k"));
  }
  SECTION("all keys") {
    other(GENERATE(as<std::string>(), "FLUSHALL", "FLUSHDB"));
    CHECK(hears("any"));
  }
  SECTION("too many tracked keys in the server") {
    other("CONFIG", "SET", "tracking-table-max-keys", 1);
    raw_client third(server);
    const auto id = third("CLIENT", "ID").integer();
    third("CLIENT", "TRACKING", "ON", "REDIRECT", id);
    for (int n = 0; n < 100; ++n) third("GET", "other" + std::to_string(n));
    CHECK(hears("k"));
  }
}

TEST_CASE_METHOD(fixture, "a write of our own is not pushed, and ends the tracking until the key is read again") {
  begin("k");
  REQUIRE(track("k"));
  call("k", {"SET", "k", "ours"}, false);
  other("SET", "k", "theirs");
  other("SET", "end", "1");
  REQUIRE(track("end"));
  other("DEL", "end");
  REQUIRE(hears("end"));
  CHECK_FALSE(heard("k"));
  REQUIRE(track("k"));
  other("DEL", "k");
  CHECK(hears("k"));
}

TEST_CASE_METHOD(fixture, "the end of either connection is reported, and keys are tracked on the next one") {
  begin("k");
  REQUIRE(track("k"));
  other("CLIENT", "KILL", "TYPE", GENERATE(as<std::string>(), "pubsub", "normal"), "SKIPME", "yes");
  CHECK(hears("any"));
  REQUIRE(until([&] { return servers->pushes("k") && track("k"); }));
  other("SET", "k", "v");
  CHECK(hears("k"));
}

TEST_CASE_METHOD(fixture, "a server that was started again pushes again") {
  begin("k");
  REQUIRE(track("k"));
  server.restart();
  CHECK(hears("any"));
  REQUIRE(until([&] { return servers->pushes("k") && track("k"); }));
  raw_client again(server);
  again("SET", "k", "v");
  CHECK(hears("k"));
}

TEST_CASE_METHOD(fixture,
                 "an ACL that withholds what pushes need is reported once, and commands are answered as before") {
  need_redis_7("an ACL can take a subcommand away");
  const auto taken = GENERATE(as<std::string>(), "-client|tracking", "-client|caching", "resetchannels");
  other("ACL", "SETUSER", "default", taken);
  servers->start_pushing("k");
  if (taken == "-client|caching") {
    REQUIRE(until([&] { return servers->pushes("k"); }));
    CHECK_FALSE(track("k"));
  }
  REQUIRE(until([&] { return !degraded.empty(); }));
  CHECK(degraded[0].find("NOPERM") != std::string::npos);
  CHECK_FALSE(servers->pushes("k"));
  CHECK_FALSE(call("k", {"EXISTS", "k"}, true).error);
  other("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  REQUIRE(until([&] { return call("k", {"EXISTS", "k"}, true).error == error_code(); }));
  servers->start_pushing("k");
  CHECK(until([&] { return !call("k", {"EXISTS", "k"}, true).tracked; }));
  CHECK(degraded.size() == 1);
}

TEST_CASE_METHOD(fixture, "a flood of changes is read with the messages of other channels") {
  begin("k");
  constexpr int keys = 5'000;
  for (int n = 0; n < keys; ++n)
    servers->execute("k", plain_command(redis::make_command({"GET", "f" + std::to_string(n)}),
                                        {.timeout = 20s, .track = true}, [](const auto&) {}));
  REQUIRE(track("k"));
  for (int n = 0; n < keys; ++n) other.send({"SET", "f" + std::to_string(n), "v"});
  other.send({"DEL", "k"});
  other.send({"SET", "k", "v"});
  CHECK(until([&] { return changes.size() == keys + 1; }));
  CHECK(changes.back() == "k");
}

TEST_CASE_METHOD(in_cluster, "each node of a cluster pushes what it owns, and the next owner what has moved to it") {
  const auto there = rig.primaries();
  const auto name = rig.name_on(there[0]), other_name = rig.name_on(there[1]);
  for (const auto& key : {name, other_name}) {
    call(key, {"EXISTS", key}, false);
    changes.clear();
    begin(key);
    REQUIRE(track(key));
  }
  raw_client(rig.node(there[1]))("SET", other_name, "v");
  CHECK(hears(other_name));
  rig.move(name, there[1]);
  REQUIRE(until([&] {
    call(name, {"EXISTS", name}, false);
    return servers->pushes(name) && servers->node_of(name) == servers->node_of(other_name);
  }));
  REQUIRE(track(name));
  raw_client(rig.node(there[1]))("SET", name, "v");
  CHECK(hears(name));
  rig.move(name, there[0]);
  CHECK(hears(name));  // MIGRATE deletes it
}
