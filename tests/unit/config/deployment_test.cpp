// SPDX-License-Identifier: BSL-1.0
#include "config/deployment.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>

#include "support/catch.hpp"

using holdfast::config;
using holdfast::pubsub_mode;
using holdfast::push_mode;
using holdfast::detail::deployment;
using holdfast::detail::resolve;
using holdfast::redis::address;
using namespace std::chrono_literals;

namespace {

const std::vector<std::string> three{"redis://a", "redis://b", "redis://c"};

config with_url(std::string url) {
  config c;
  c.url = std::move(url);
  return c;
}

config with_primaries(std::vector<std::string> primaries = three) {
  config c;
  c.red_lock.primaries = std::move(primaries);
  return c;
}

std::string refusal(const config& c) {
  try {
    resolve(c);
  } catch (const holdfast::error& e) {
    CHECK(e.code() == holdfast::errc::invalid_config);
    return e.what();
  }
  return "accepted";
}

bool refused_for(const config& c, const std::string& why) {
  const auto text = refusal(c);
  INFO(text);
  CHECK(text.find(why) != std::string::npos);
  return text.find(why) != std::string::npos;
}

std::string refusal(const std::string& url) { return refusal(with_url(url)); }
bool refused_for(const std::string& url, const std::string& why) { return refused_for(with_url(url), why); }

// One of each deployment, in the order of the enumeration.
std::vector<config> one_of_each() {
  return {config(), with_primaries(), with_url("redis+sentinel://s1/m"), with_url("redis+cluster://n1")};
}

// Accepted where it has a meaning, refused with its name elsewhere.
void belongs_to(const std::vector<deployment>& kinds, const std::string& name,
                const std::function<void(config&)>& set) {
  auto all = one_of_each();
  for (std::size_t n = 0; n < all.size(); ++n) {
    const auto kind = static_cast<deployment>(n);
    set(all[n]);
    INFO(name << " of " << n);
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end())
      CHECK(refusal(all[n]) == "accepted");
    else
      CHECK(refused_for(all[n], ": " + name + " is set, and "));
  }
}

}  // namespace

TEST_CASE("the scheme decides which servers a client has") {
  const auto each = one_of_each();
  for (std::size_t n = 0; n < each.size(); ++n) CHECK(resolve(each[n]).kind == static_cast<deployment>(n));
  using redis_mode = holdfast::redis::server_mode;
  CHECK(resolve(each[0]).servers[0].expected == redis_mode::standalone);
  CHECK(resolve(each[1]).servers[2].expected == redis_mode::standalone);
  CHECK(resolve(each[2]).servers[0].expected == redis_mode::sentinel);
  CHECK(resolve(each[2]).discovered.expected == redis_mode::standalone);
  CHECK(resolve(each[3]).servers[0].expected == redis_mode::cluster);
  CHECK(resolve(each[3]).discovered.expected == redis_mode::cluster);
  CHECK(resolve(with_url("redis+unix:///s")).kind == deployment::one_server);
  CHECK(resolve(with_url("rediss+sentinel://s1/m")).kind == deployment::sentinel);
  CHECK(resolve(with_url("rediss+cluster://n1")).kind == deployment::cluster);
}

TEST_CASE("a sentinel is told its own user and password and the servers theirs") {
  const auto s = resolve(
      with_url("redis+sentinel://app:secret@s1,s2:5/m/3?sentinel_user=watcher&sentinel_password=other&client_name=x"));
  REQUIRE(s.servers.size() == 2);
  for (const auto& sentinel : s.servers) {
    CHECK(sentinel.login.user == "watcher");
    CHECK(sentinel.login.password == "other");
    CHECK(sentinel.db == 0);
    CHECK(sentinel.client_name == "x");
    CHECK_FALSE(sentinel.use_tls);
  }
  CHECK(s.servers[0].to_string() == "redis://s1:26379");
  CHECK(s.servers[1].to_string() == "redis://s2:5");
  CHECK(s.discovered.login.user == "app");
  CHECK(s.discovered.login.password == "secret");
  CHECK(s.discovered.db == 3);
  CHECK(s.discovered.client_name == "x");
  CHECK(s.discovered.at.host.empty());
  CHECK(s.primary_name == "m");
}

TEST_CASE("a sentinel gets no password where none of its own is given") {
  auto c = with_url("redis+sentinel://app:secret@s1/m");
  CHECK(resolve(c).servers[0].login.user.empty());
  CHECK(resolve(c).servers[0].login.password.empty());
  c.user = "bob";
  c.password = "two";
  CHECK(resolve(c).servers[0].login.user.empty());
  CHECK(resolve(c).servers[0].login.password.empty());
  CHECK(resolve(c).discovered.login.user == "bob");
}

TEST_CASE("sentinels speak TLS as the servers do unless it is said") {
  const auto tls_of = [](const std::string& url) {
    const auto s = resolve(with_url(url));
    return std::pair(s.servers[0].use_tls, s.discovered.use_tls);
  };
  CHECK(tls_of("redis+sentinel://s1/m") == std::pair(false, false));
  CHECK(tls_of("rediss+sentinel://s1/m") == std::pair(true, true));
  CHECK(tls_of("redis+sentinel://s1/m?sentinel_tls=on") == std::pair(true, false));
  CHECK(tls_of("rediss+sentinel://s1/m?sentinel_tls=off") == std::pair(false, true));
  CHECK(refused_for("redis+sentinel://s1/m?sentinel_tls=true", "url: sentinel_tls is neither on nor off"));

  const auto files = resolve(with_url("redis+sentinel://s1/m?sentinel_tls=on&ca_file=/ca.pem"));
  CHECK(files.servers[0].tls.ca_file == "/ca.pem");
  CHECK(refused_for("redis+sentinel://s1/m?ca_file=x", "ca_file is set, and the url is not rediss+sentinel://"));
  CHECK(refused_for("redis+cluster://n1?ca_file=x", "ca_file is set, and the url is not rediss+cluster://"));
}

TEST_CASE("the nodes of a cluster are introduced to as all others") {
  const auto s = resolve(with_url("rediss+cluster://app:secret@n1,[::1]:7000?server_name=db&connect_timeout=900"));
  REQUIRE(s.servers.size() == 2);
  CHECK(s.servers[0].to_string() == "rediss://n1:6379");
  CHECK(s.servers[1].to_string() == "rediss://[::1]:7000");
  for (const auto& node : {s.servers[0], s.servers[1], s.discovered}) {
    CHECK(node.login.password == "secret");
    CHECK(node.tls.server_name == "db");
    CHECK(node.use_tls);
    CHECK(node.connect_timeout == 900ms);
  }
  CHECK(s.primary_name.empty());
}

TEST_CASE("a cluster has database 0 alone") {
  CHECK(refusal("redis+cluster://n1/0") == "accepted");
  CHECK(refusal("redis+cluster://n1?db=0") == "accepted");
  CHECK(refused_for("redis+cluster://n1/1", "url: db is not 0, and a cluster has no other"));
  CHECK(refused_for("redis+cluster://n1?db=15", "url: db is not 0, and a cluster has no other"));
  CHECK(refused_for("redis+cluster://n1/m", "db is not a number"));
  CHECK(refused_for("redis+sentinel://s1/m/x", "db is not a number"));
}

TEST_CASE("settings keep the secrets of sentinels in their endpoints alone") {
  auto c = with_url("redis+sentinel://s1/m");
  c.sentinel.user = "watcher";
  c.sentinel.password = "canary";
  c.node_map = {{"a:1", "b:1"}};
  const auto s = resolve(c);
  CHECK(s.values.sentinel.user.empty());
  CHECK(s.values.sentinel.password.empty());
  CHECK(s.values.node_map.empty());
  CHECK(s.discovered.login.password.empty());
}

TEST_CASE("a field that was set wins over the URL of sentinels and clusters") {
  auto c = with_url(
      "redis+sentinel://s1/m?sentinel_user=a&sentinel_password=b&sentinel_tls=on&strict_sentinel=on&min_replicas=1");
  auto s = resolve(c);
  CHECK(s.values.sentinel.strict);
  CHECK(s.values.min_replicas == 1);
  c.sentinel.user = "watcher";
  c.sentinel.password = "other";
  c.sentinel.tls = false;
  c.min_replicas = 2;
  s = resolve(c);
  CHECK(s.servers[0].login.user == "watcher");
  CHECK(s.servers[0].login.password == "other");
  CHECK_FALSE(s.servers[0].use_tls);
  CHECK(s.values.min_replicas == 2);

  CHECK_FALSE(resolve(with_url("redis+sentinel://s1/m?strict_sentinel=off")).values.sentinel.strict);
  CHECK_FALSE(resolve(with_url("redis://s1?turns=off")).values.turns);
  CHECK(resolve(with_url("redis://s1")).values.turns);
  CHECK(resolve(with_url("redis://s1")).values.push == push_mode::automatic);
  CHECK(resolve(with_url("redis://s1?push=auto")).values.push == push_mode::automatic);
  CHECK(resolve(with_url("redis://s1?push=off")).values.push == push_mode::off);
  CHECK(resolve(with_url("redis://s1?notes=on")).values.notes);
  CHECK_FALSE(resolve(with_url("redis://s1")).values.notes);
  c = with_url("redis+cluster://n1?pubsub=classic");
  CHECK(resolve(c).values.cluster.pubsub == pubsub_mode::classic);
  c.cluster.pubsub = pubsub_mode::both;
  CHECK(resolve(c).values.cluster.pubsub == pubsub_mode::both);
}

TEST_CASE("switches and words of a URL are spelt out") {
  for (const char* bad : {"yes", "ON", "1", "%20on", "true"}) {
    INFO(bad);
    CHECK(refused_for("redis+sentinel://s1/m?strict_sentinel=" + std::string(bad), "neither on nor off"));
    CHECK(refused_for("redis+cluster://n1?pubsub=" + std::string(bad), "pubsub is none of auto, classic, sharded"));
  }
  CHECK(resolve(with_url("redis+cluster://n1?pubsub=auto")).values.cluster.pubsub == pubsub_mode::automatic);
  CHECK(resolve(with_url("redis+cluster://n1?pubsub=sharded")).values.cluster.pubsub == pubsub_mode::sharded);
  CHECK(resolve(with_url("redis+cluster://n1?pubsub=both")).values.cluster.pubsub == pubsub_mode::both);
}

TEST_CASE("a grant may be asked to be on 0 to 15 replicas") {
  CHECK(resolve(with_url("redis://host?min_replicas=15")).values.min_replicas == 15);
  CHECK(refused_for("redis://host?min_replicas=16", "min_replicas is 16; allowed: 0 to 15"));
  for (const char* bad : {"-1", "x", "1.5", "4294967296"}) {
    INFO(bad);
    CHECK(refused_for("redis://host?min_replicas=" + std::string(bad), "url: min_replicas is not a number"));
  }
  config c;
  c.min_replicas = static_cast<unsigned>(-1);
  CHECK(refused_for(c, "min_replicas is 4294967295; allowed: 0 to 15"));
}

TEST_CASE("a sentinel's user and password are checked as the servers'") {
  auto c = with_url("redis+sentinel://s1/m");
  c.sentinel.user = "watcher";
  CHECK(refused_for(c, "a sentinel.user without sentinel.password"));
  for (const std::string& bad : {std::string("a\r"), std::string("a\n"), std::string("a\0", 2)}) {
    c.sentinel.user = "watcher";
    c.sentinel.password = bad;
    CHECK(refused_for(c, "sentinel.password contains a line break or a NUL"));
    c.sentinel.user = bad;
    c.sentinel.password = "x";
    CHECK(refused_for(c, "sentinel.user contains a line break or a NUL"));
  }
}

TEST_CASE("a field is refused where it has no meaning") {
  using enum deployment;
  belongs_to({sentinel}, "sentinel.password", [](config& c) { c.sentinel.password = "x"; });
  belongs_to({sentinel}, "sentinel.user", [](config& c) { c.sentinel.user = c.sentinel.password = "x"; });
  belongs_to({sentinel}, "sentinel.tls", [](config& c) { c.sentinel.tls = false; });
  belongs_to({sentinel}, "sentinel.strict", [](config& c) { c.sentinel.strict = true; });
  belongs_to({cluster}, "cluster.pubsub", [](config& c) { c.cluster.pubsub = pubsub_mode::sharded; });
  belongs_to({sentinel, cluster}, "node_map", [](config& c) { c.node_map = {{"a:1", "b:1"}}; });
  belongs_to({one_server, sentinel, cluster}, "min_replicas", [](config& c) { c.min_replicas = 1; });
}

TEST_CASE("a key of the URL is refused where it has no meaning though it says the default") {
  for (const char* pair : {"sentinel_user=a", "sentinel_password=a", "sentinel_tls=off", "strict_sentinel=off"}) {
    const std::string key = std::string(pair).substr(0, std::string(pair).find('='));
    for (const char* url : {"redis://host?", "rediss://host?", "redis+unix:///s?", "redis+cluster://n1?"})
      CHECK(refused_for(url + std::string(pair), "url: " + key + " is set, and the url names no sentinels"));
  }
  for (const char* url : {"redis://host?", "redis+unix:///s?", "redis+sentinel://s1/m?"})
    CHECK(refused_for(url + std::string("pubsub=auto"), "url: pubsub is set, and the url names no cluster"));
  CHECK(refused_for("redis://host?node_map=a", "unknown query key 'node_map'"));
}

TEST_CASE("a primary of a red_lock is one server") {
  const auto last = [](const char* url) { return with_primaries({"redis://a", "redis://b", url}); };
  CHECK(refused_for(last("redis+sentinel://s1/m"), "red_lock.primaries[2]: url: sentinels or a cluster"));
  CHECK(refused_for(last("rediss+cluster://n1"), "red_lock.primaries[2]: url: sentinels or a cluster"));
  CHECK(refused_for(last("redis://h1,h2"), "red_lock.primaries[2]: url: several hosts"));
  CHECK(refused_for(last("redis://c?min_replicas=0"),
                    "red_lock.primaries[2]: url: min_replicas is set, and red_lock.primaries are"));
  CHECK(refused_for(last("redis://c?strict_sentinel=on"), "red_lock.primaries[2]: url: strict_sentinel is set"));
  auto both = with_primaries();
  both.url = "redis+sentinel://s1/m";
  CHECK(refused_for(both, "both url and red_lock.primaries are set"));
}

TEST_CASE("a node map says where each address that is told is reached") {
  auto c = with_url("redis+cluster://n1");
  c.node_map = {{"10.0.0.5:6379", "localhost:16379"}, {"[fd00::5]:1", "[fe80::1%25eth0]:2"}, {"10.0.0.5:1", "db:1"}};
  const auto map = resolve(c).node_map;
  REQUIRE(map.size() == 3);
  CHECK(map[0].announced == address{"10.0.0.5", 6379, ""});
  CHECK(map[0].reach == address{"localhost", 16379, ""});
  CHECK(map[1].announced == address{"fd00::5", 1, ""});
  CHECK(map[1].reach == address{"fe80::1%eth0", 2, ""});
}

TEST_CASE("a node map of the wrong form is refused with the pair") {
  const auto with_map = [](std::vector<std::pair<std::string, std::string>> pairs) {
    auto c = with_url("redis+sentinel://s1/m");
    c.node_map = std::move(pairs);
    return c;
  };
  CHECK(refused_for(with_map({{"a:1", "b:1"}, {"a", "b:1"}}), "node_map[1]: no port"));
  CHECK(refused_for(with_map({{"a:1", "b"}}), "node_map[0]: no port"));
  CHECK(refused_for(with_map({{"", "b:1"}}), "node_map[0]: no host"));
  CHECK(refused_for(with_map({{"a:0", "b:1"}}), "node_map[0]: the port is not"));
  CHECK(refused_for(with_map({{"::1:6379", "b:1"}}), "node_map[0]: more than one ':'"));
  CHECK(refused_for(with_map({{"redis://a:1", "b:1"}}), "node_map[0]: more than one ':'"));
  CHECK(refused_for(with_map({{"a,b:1", "c:1"}}), "node_map[0]: a host of other bytes"));
  CHECK(refused_for(with_map({{"a:1", "b:1"}, {"c:1", "b:1"}, {"a:1", "d:1"}}),
                    "node_map[0] and node_map[2] map the same address"));

  std::vector<std::pair<std::string, std::string>> many;
  for (int n = 1; n <= 1024; ++n) many.emplace_back("a:" + std::to_string(n), "b:1");
  CHECK(refusal(with_map(many)) == "accepted");
  many.emplace_back("a:1025", "b:1");
  CHECK(refused_for(with_map(many), "node_map has 1025 pairs; allowed: 0 to 1024"));
}
