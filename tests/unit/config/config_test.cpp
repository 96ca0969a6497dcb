// SPDX-License-Identifier: BSL-1.0
#include <holdfast/config.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/observer.hpp>

#include "config/settings.hpp"
#include "support/catch.hpp"

using holdfast::config;
using holdfast::errc;
using holdfast::milliseconds;
using holdfast::pubsub_mode;
using holdfast::redacted;
using holdfast::detail::deployment;
using holdfast::detail::resolve;
using namespace std::chrono_literals;

namespace {

config with_url(std::string url) {
  config c;
  c.url = std::move(url);
  return c;
}

std::string refusal(const config& c, errc code = errc::invalid_config) {
  try {
    resolve(c);
  } catch (const holdfast::error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "accepted";
}

bool refused_for(const config& c, const std::string& why, errc code = errc::invalid_config) {
  const auto text = refusal(c, code);
  INFO(text);
  CHECK(text.find(why) != std::string::npos);
  return text.find(why) != std::string::npos;
}

template <class T>
config with(T config::*field, T value) {
  config c;
  c.*field = value;
  return c;
}

std::string printed(const config& c) {
  std::ostringstream out;
  out << c;
  return out.str();
}

}  // namespace

TEST_CASE("the longest TTL of several primaries is no limit for a client with one server") {
  config c;
  c.red_lock.longest_ttl = 1s;
  CHECK(resolve(c).values.red_lock.longest_ttl == 0ms);
}

TEST_CASE("a default config is the local server") {
  const auto s = resolve({});
  CHECK(s.servers[0].to_string() == "redis://localhost:6379");
  CHECK(s.servers[0].with({"orders", 0, {}}).to_string() == "redis://orders");  // not known yet
  CHECK(s.servers[0].db == 0);
  CHECK(s.servers[0].client_name == "holdfast");
  CHECK(s.servers[0].connect_timeout == 2s);
  CHECK(s.values.ttl == 30s);
}

TEST_CASE("all parts of a URL reach the settings") {
  const auto s =
      resolve(with_url("rediss://alice:s%40cret@[::1]:7000/"
                       "5?client_name=billing&key_prefix=eu%3A&ttl=10000&command_timeout=200&connect_timeout=900"
                       "&ca_file=/ca.pem&ca_dir=/ca&certificate_file=/c.pem&key_file=/k.pem&server_name=db.example"));
  CHECK(s.servers[0].to_string() == "rediss://[::1]:7000");
  CHECK(s.servers[0].login.user == "alice");
  CHECK(s.servers[0].login.password == "s@cret");
  CHECK(s.servers[0].db == 5);
  CHECK(s.servers[0].client_name == "billing");
  CHECK(s.servers[0].connect_timeout == 900ms);
  CHECK(s.servers[0].tls.ca_file == "/ca.pem");
  CHECK(s.servers[0].tls.ca_dir == "/ca");
  CHECK(s.servers[0].tls.certificate_file == "/c.pem");
  CHECK(s.servers[0].tls.key_file == "/k.pem");
  CHECK(s.servers[0].tls.server_name == "db.example");
  CHECK(s.values.key_prefix == "eu:");
  CHECK(s.values.ttl == 10s);
  CHECK(s.values.command_timeout == 200ms);
}

TEST_CASE("a field that was set wins over the URL") {
  config c = with_url("redis://alice:one@host?client_name=a&ttl=10000");
  c.user = "bob";
  c.password = "two";
  c.ttl = 20s;
  c.client_name.clear();
  const auto s = resolve(c);
  CHECK(s.servers[0].login.user == "bob");
  CHECK(s.servers[0].login.password == "two");
  CHECK(s.servers[0].client_name.empty());
  CHECK(s.values.ttl == 20s);
}

TEST_CASE("settings keep secrets in the endpoint alone") {
  const auto s = resolve(with_url("redis://alice:canary@host"));
  CHECK(s.values.url.empty());
  CHECK(s.values.user.empty());
  CHECK(s.values.password.empty());
}

TEST_CASE("a unix URL reaches the settings") {
  const auto s = resolve(with_url("redis+unix://:pw@/run/a%20b?db=3"));
  CHECK(s.servers[0].at.unix_path == "/run/a b");
  CHECK(s.servers[0].at.host.empty());
  CHECK(s.servers[0].db == 3);
  CHECK(s.servers[0].login.password == "pw");
  CHECK(s.servers[0].to_string() == "redis+unix:///run/a%20b");
}

TEST_CASE("an IPv6 zone is printed as it is written") {
  CHECK(resolve(with_url("redis://[fe80::1%25eth0]")).servers[0].to_string() == "redis://[fe80::1%25eth0]:6379");
}

TEST_CASE("a database is a number from 0 on") {
  for (const char* db : {"-1", "a", "1/", "1.5", "2147483648", "99999999999999999999", "%31"}) {
    INFO(db);
    CHECK(refused_for(with_url("redis://host/" + std::string(db)), "db is not a number"));
  }
  CHECK(refused_for(with_url("redis+unix:///s?db=x"), "db is not a number"));
  CHECK(resolve(with_url("redis://host/2147483647")).servers[0].db == 2147483647);
}

TEST_CASE("durations in a URL are numbers of milliseconds") {
  for (const char* key : {"ttl", "command_timeout", "connect_timeout"})
    for (const char* bad : {"-1", "1s", "1.5", "99999999999999999999", "%20"}) {
      INFO(key << "=" << bad);
      CHECK(
          refused_for(with_url("redis://host?" + std::string(key) + "=" + bad), std::string(key) + " is not a number"));
    }
}

TEST_CASE("a TTL is between 100 ms and 24 h") {
  CHECK(refusal(with(&config::ttl, milliseconds(100))) == "accepted");
  CHECK(refusal(with(&config::ttl, milliseconds(24h))) == "accepted");
  for (const auto ttl : {99ms, milliseconds(24h) + 1ms, 0ms, -1ms, milliseconds::max(), milliseconds::min()})
    CHECK(refused_for(with(&config::ttl, ttl), "ttl is ", errc::invalid_ttl));
  CHECK(refused_for(with_url("redis://host?ttl=99"), "ttl is 99 ms; allowed: 100 ms to 24 h", errc::invalid_ttl));
  CHECK(refused_for(with_url("redis://host?ttl=9223372036854775807"), "ttl", errc::invalid_ttl));
}

TEST_CASE("every number of a config has a range") {
  const auto outside = [](milliseconds config::*field, milliseconds least, milliseconds most, const char* name) {
    CHECK(refusal(with(field, least)) == "accepted");
    CHECK(refusal(with(field, most)) == "accepted");
    CHECK(refused_for(with(field, least - 1ms), name));
    CHECK(refused_for(with(field, most + 1ms), name));
    CHECK(refused_for(with(field, -1ms), name));
  };
  outside(&config::command_timeout, 5ms, 60s, "command_timeout");
  outside(&config::connect_timeout, 10ms, 60s, "connect_timeout");
  outside(&config::poll_cap, 50ms, 60s, "poll_cap");
  outside(&config::reconnect_cap, 50ms, 60s, "reconnect_cap");
  outside(&config::health_check_interval, 100ms, 1h, "health_check_interval");
  outside(&config::token_ttl, 60s, 87'600h, "token_ttl");  // twice the TTL of 30 s
  CHECK(refusal(with(&config::health_check_interval, 0ms)) == "accepted");
  CHECK(refusal(with(&config::token_ttl, 0ms)) == "accepted");

  CHECK(refusal(with(&config::drift, 0.0)) == "accepted");
  CHECK(refusal(with(&config::drift, 0.2)) == "accepted");
  for (const double drift : {-0.001, 0.201, double(NAN), std::numeric_limits<double>::infinity()})
    CHECK(refused_for(with(&config::drift, drift), "drift"));

  CHECK(refusal(with(&config::pending_commands, std::size_t{1})) == "accepted");
  CHECK(refusal(with(&config::pending_commands, std::size_t{1} << 24)) == "accepted");
  CHECK(refused_for(with(&config::pending_commands, std::size_t{0}), "pending_commands"));
  CHECK(refused_for(with(&config::pending_commands, (std::size_t{1} << 24) + 1), "pending_commands"));
}

TEST_CASE("a line break or NUL in user and password is refused") {
  for (const std::string& bad : {std::string("a\r"), std::string("a\n"), std::string("a\0", 2)}) {
    config c;
    c.password = bad;
    CHECK(refused_for(c, "password contains"));
    c.user = bad;
    c.password = "x";
    CHECK(refused_for(c, "user contains"));
  }
  CHECK(refused_for(with_url("redis://:a%0d%0aFLUSHALL@host"), "password contains"));
  CHECK(refused_for(with_url("redis://a%00:b@host"), "user contains"));
}

TEST_CASE("a user needs a password from somewhere") {
  CHECK(refused_for(with_url("redis://alice@host"), "a user without password"));
  CHECK(refused_for(with_url("redis://alice:@host"), "a user without password"));
  CHECK(refused_for(with_url("redis://host?user=alice"), "a user without password"));
  CHECK(refused_for(with(&config::user, std::string("alice")), "a user without password"));
  config c = with_url("redis://alice@host");
  c.password = "x";
  CHECK(resolve(c).servers[0].login.user == "alice");
}

TEST_CASE("a client name is printable ASCII without space") {
  CHECK(refusal(with(&config::client_name, std::string())) == "accepted");
  for (const std::string& bad :
       {std::string("a b"), std::string("a\n"), std::string("a\0", 2), std::string("\xc3\xa9"), std::string("\x7f")})
    CHECK(refused_for(with(&config::client_name, bad), "client_name"));
  CHECK(refused_for(with_url("redis://host?client_name=a%0d%0a"), "client_name"));
}

TEST_CASE("TLS settings need rediss and whole pairs") {
  for (const char* key : {"ca_file", "ca_dir", "certificate_file", "key_file", "server_name"}) {
    CHECK(refused_for(with_url("redis://host?" + std::string(key) + "=x"), std::string(key) + " is set"));
    CHECK(refused_for(with_url("redis+unix:///s?" + std::string(key) + "=x"), std::string(key) + " is set"));
  }
  config c;
  c.tls.insecure_skip_verification = true;
  CHECK(refused_for(c, "insecure_skip_verification"));
  CHECK(refused_for(with_url("rediss://host?certificate_file=x"), "certificate_file without key_file"));
  CHECK(refused_for(with_url("rediss://host?key_file=x"), "key_file without certificate_file"));
  CHECK(refused_for(with_url("rediss://host?ca_file=a%00b"), "ca_file contains a NUL"));
}

TEST_CASE("a key prefix leaves room for a name") {
  CHECK(refusal(with(&config::key_prefix, std::string("a\0b{\n", 5))) == "accepted");
  CHECK(refused_for(with(&config::key_prefix, std::string(65'536, 'a')), "key_prefix"));
}

TEST_CASE("a printed config shows its fields and no secret") {
  config c = with_url("rediss://alice:hunter2@db:7000/1?key_prefix=eu&password=other");
  CHECK(redacted("rediss://alice:hunter2@db:7000/1?key_prefix=eu") == "rediss://***@db:7000/1?key_prefix=eu");
  CHECK(redacted("redis://db?user=alice&password=hunter2&db=1") == "redis://db?user=***&password=***&db=1");
  CHECK(redacted("redis://localhost") == "redis://localhost");
  CHECK(redacted("redis+unix:///run/redis.sock") == "redis+unix:///run/redis.sock");
  c = with_url("redis://db");
  c.user = "alice";
  c.password = "hunter2";
  c.key_prefix = std::string("a\0", 2);
  c.observer = std::make_shared<holdfast::observer>();
  CHECK(printed(c) ==
        "url=\"redis://db\" user=\"alice\" password=*** credentials=none client_name=\"holdfast\" "
        "tls={ca_file=\"\" ca_dir=\"\" certificate_file=\"\" "
        "key_file=\"\" server_name=\"\" insecure_skip_verification=false} key_prefix=\"a\\x00\" ttl=30000ms "
        "command_timeout=500ms "
        "connect_timeout=2000ms drift=0.010000 poll_cap=5000ms reconnect_cap=5000ms "
        "health_check_interval=10000ms token_ttl=0ms push=auto turns=true notes=false observer=set quiet=false "
        "pending_commands=65536 min_replicas=0 node_map=[] sentinel.user=\"\" sentinel.password=\"\" "
        "sentinel.tls=unset sentinel.strict=false "
        "cluster.pubsub=auto red_lock.primaries=[] red_lock.longest_ttl=0ms red_lock.delayed_restart=true");
}

TEST_CASE("a printed config shows the fields of sentinels and clusters and no secret") {
  CHECK(redacted("redis+sentinel://u:hunter2@s1,s2:1/m/2") == "redis+sentinel://***@s1,s2:1/m/2");
  CHECK(redacted("rediss+sentinel://s1/m?sentinel_user=u&sentinel_password=hunter2&sentinel_tls=off") ==
        "rediss+sentinel://s1/m?sentinel_user=***&sentinel_password=***&sentinel_tls=off");
  CHECK(redacted("rediss+cluster://u:hunter2@n1,[::1]") == "rediss+cluster://***@n1,[::1]");
  CHECK(redacted("redis+sentinel://u:hunter2@s1") == "redis+sentinel://***");
  CHECK(redacted("rediss+cluster://u:hunter2@n1:x") == "rediss+cluster://***");
  config c = with_url("redis+sentinel://s1/m");
  c.sentinel.user = "watcher";
  c.sentinel.password = "hunter2";
  c.sentinel.tls = true;
  c.sentinel.strict = true;
  c.min_replicas = 2;
  c.cluster.pubsub = pubsub_mode::both;
  c.node_map = {{"10.0.0.5:6379", "localhost:16379"}, {std::string("a\0", 2), "b:1"}};
  CHECK(printed(c).find("min_replicas=2 node_map=[\"10.0.0.5:6379\"->\"localhost:16379\" \"a\\x00\"->\"b:1\"] "
                        "sentinel.user=\"watcher\" sentinel.password=*** sentinel.tls=true sentinel.strict=true "
                        "cluster.pubsub=both red_lock.primaries=[]") != std::string::npos);
  CHECK(printed({.cluster = {pubsub_mode::classic}}).find("cluster.pubsub=classic") != std::string::npos);
  CHECK(printed({.cluster = {pubsub_mode::sharded}}).find("cluster.pubsub=sharded") != std::string::npos);
}

TEST_CASE("of a malformed URL no more than the scheme is printed") {
  CHECK(redacted("redis://:hunter2@host:port") == "redis://***");
  CHECK(redacted("redis+unix://:hun/ter2@/path") == "redis+unix://***");
  CHECK(redacted("hunter2") == "***");
  CHECK(redacted("") == "***");
}

TEST_CASE("no output shows the password wherever it stands in a malformed URL") {
  const std::vector<std::string> shapes{"redis://:$@host",
                                        "redis://u:$@host:0",
                                        "redis://u:$@host:port",
                                        "redis://u:$@",
                                        "redis://u:$@/1",
                                        "redis://u:$@ho%20st",
                                        "redis://u:$@[::1",
                                        "redis://u:$@[x]",
                                        "redis://u:$@a:b:c",
                                        "redis://$@host",
                                        "redis://$:@host",
                                        "redis://$:x@host/db",
                                        "redis://u:$@host/db",
                                        "redis://u:$@host/1?db=1",
                                        "redis://u:$@host?nonsense=1",
                                        "redis://u:$@host?x",
                                        "redis://u:$@host?db=",
                                        "redis://u:$@host?password=$",
                                        "redis://u:$@host?user=u",
                                        "redis://u:$@host?ttl=x",
                                        "redis://u:$@host?ttl=1",
                                        "redis://u:$@host?ca_file=x",
                                        "rediss://u:$@host?key_file=x",
                                        "redis://u:$%@host",
                                        "redis://u:$%zz@host",
                                        "redis://u:$%0a@host",
                                        "redis://u:$%00@host",
                                        "redis://u:$#@host",
                                        "redis://u:#$@host",
                                        "redis://u:$/@host",
                                        "redis://u:/$@host",
                                        "redis://u:x/$=1@host",
                                        "redis://u:$?@host",
                                        "redis://u:?$@host",
                                        "redis://u:?$=1@host",
                                        "redis://u:x?db=$@host",
                                        "redis://u:&$=1@host",
                                        "redis://u:@$@host",
                                        "redis://u: $@host",
                                        "redis://u:$\r\n@host",
                                        "redis://u:$\xff@host",
                                        "redis://host:$",
                                        "redis://host?password=$&x",
                                        "redis://host?password=x&$=1",
                                        "redis://host?user=x&$=1",
                                        "redis://host?password=$&password=$",
                                        "redis://host?user=$",
                                        "redis://host?password=$%",
                                        "redis://host?password=$%0a",
                                        "redis://host?password=x#$",
                                        "redis+unix://u:$@path",
                                        "redis+unix://u:$@/",
                                        "redis+unix://u:$@",
                                        "redis+unix://u:/$@/path",
                                        "redis+unix:///path?password=$&db=x",
                                        "redi://u:$@host",
                                        "u:$@host",
                                        "$",
                                        "://u:$@host",
                                        "REDIS://u:$@host",
                                        "redis:u:$@host",
                                        "redis:/u:$@host",
                                        "rediss://u:$@host:99999999999999999999",
                                        "redis://[$]",
                                        "redis://[::1]$",
                                        "redis://[::1%25$]x",
                                        "redis://u:$@h1,h2",
                                        "redis+sentinel://u:$@s1,s2/m",
                                        "redis+sentinel://u:$@s1,s2",
                                        "redis+sentinel://u:$@s1,s1/m",
                                        "redis+sentinel://u:$@s1,u:$@s2/m",
                                        "redis+sentinel://s1,u:$@s2/m",
                                        "redis+sentinel://u:a,$@s1/m",
                                        "redis+sentinel://u:a/$@s1/m",
                                        "redis+sentinel://u:$@s1/m%20",
                                        "redis+sentinel://u:$@s1/m/x",
                                        "redis+sentinel://u:$@s1/m?pubsub=auto",
                                        "redis+sentinel://s1/m?sentinel_password=$",
                                        "redis+sentinel://s1/m?sentinel_user=$",
                                        "redis+sentinel://s1/m?sentinel_user=$&sentinel_password=$",
                                        "redis+sentinel://s1/m?sentinel_password=$%0a",
                                        "redis+sentinel://s1/m?sentinel_password=$&sentinel_password=$",
                                        "redis+sentinel://s1/m?sentinel_password=a&$=1",
                                        "redis+sentinel://s1/m?sentinel_user=a&$=1",
                                        "redis+sentinel://s1/m?sentinel_password=$&sentinel_tls=x",
                                        "redis://host?sentinel_password=$",
                                        "redis+cluster://n1?sentinel_password=$",
                                        "redis+cluster://u:$@n1,n2",
                                        "redis+cluster://u:$@n1/1",
                                        "redis+sentinel:/u:$@s1/m"};
  for (const std::string& canary : {std::string("canary"), std::string("Can4ry_secret.word")})
    for (auto url : shapes) {
      for (auto at = url.find('$'); at != url.npos; at = url.find('$')) url.replace(at, 1, canary);
      INFO(url);
      const config c = with_url(url);
      CHECK(redacted(url).find(canary) == std::string::npos);
      CHECK(printed(c).find(canary) == std::string::npos);
      try {
        const auto s = resolve(c);
        for (const auto& server : s.servers) CHECK(server.to_string().find(canary) == std::string::npos);
        CHECK(s.discovered.to_string().find(canary) == std::string::npos);
        CHECK(printed(s.values).find(canary) == std::string::npos);
      } catch (const std::exception& e) {
        CHECK(std::string(e.what()).find(canary) == std::string::npos);
      }
    }
  CHECK(redacted("redis://u:canary@" + std::string(5000, 'a')).find("canary") == std::string::npos);
}

TEST_CASE("no output shows a password that was set beside the URL") {
  config good;
  good.password = good.sentinel.password = "canary";
  std::vector<std::function<void(config&)>> mistakes{
      [](config&) {},
      [](config& c) { c.url = "redis://host:0"; },
      [](config& c) { c.password += '\n'; },
      [](config& c) { c.user = "a\n"; },
      [](config& c) { c.ttl = 1ms; },
      [](config& c) { c.drift = 1; },
      [](config& c) { c.client_name = "a b"; },
      [](config& c) { c.tls.ca_file = "x"; },
      [](config& c) { c.url = "redis+sentinel://s1/m"; },
      [](config& c) {
        c.url = "redis+sentinel://s1/m";
        c.sentinel.password += '\n';
      },
  };
  for (const auto& mistake : mistakes) {
    auto c = good;
    mistake(c);
    CHECK(printed(c).find("canary") == std::string::npos);
    CHECK(refusal(c, c.ttl == 1ms ? errc::invalid_ttl : errc::invalid_config).find("canary") == std::string::npos);
  }
}

TEST_CASE("each endpoint asks config::credentials, and the settings keep none of it") {
  const auto with_callback = [](config c) {
    c.credentials = [](const holdfast::login_request&) { return holdfast::login{}; };
    return c;
  };
  for (const auto* url : {"redis://a", "redis+sentinel://a,b/orders", "redis+cluster://a,b"}) {
    CAPTURE(url);
    const auto s = resolve(with_callback(with_url(url)));
    for (const auto& server : s.servers) CHECK(server.logins);
    if (s.kind != deployment::one_server) CHECK(s.discovered.logins);
    CHECK_FALSE(s.values.credentials);
  }
  auto several = with_callback({});
  several.red_lock.primaries = {"redis://a", "redis://b", "redis://c"};
  for (const auto& server : resolve(several).servers) CHECK(server.logins);
  CHECK_FALSE(resolve({}).servers[0].logins);
  CHECK(printed(with_callback({})).find(" credentials=set ") != std::string::npos);
}

TEST_CASE("credentials and a password of the config are not set together") {
  const auto both = [](config c) {
    c.credentials = [](const holdfast::login_request&) { return holdfast::login{}; };
    return c;
  };
  CHECK(refused_for(both(with_url("redis://alice:canary@h")), "both credentials and user are set"));
  CHECK(refused_for(both(with_url("redis://:canary@h")), "both credentials and password are set"));
  CHECK(refused_for(both(with_url("redis+sentinel://h/orders?sentinel_password=canary")),
                    "both credentials and sentinel.password are set"));
  auto several = both({});
  several.red_lock.primaries = {"redis://a", "redis://:canary@b", "redis://c"};
  CHECK(refused_for(several, "red_lock.primaries[1]: both credentials and password are set"));
}
