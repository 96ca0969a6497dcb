// SPDX-License-Identifier: BSL-1.0
#include "config/url.hpp"

#include <string>
#include <vector>

#include <holdfast/error.hpp>

#include "support/catch.hpp"

using holdfast::detail::host_port;
using holdfast::detail::parse_host;
using holdfast::detail::parse_url;
using holdfast::detail::scheme_of;
using scheme = holdfast::detail::url_parts::scheme;

namespace {

// The text of the refusal; "accepted" when there is none.
std::string refusal(const std::string& url) {
  try {
    parse_url(url);
  } catch (const holdfast::error& e) {
    CHECK(e.code() == holdfast::errc::invalid_config);
    return e.what();
  }
  return "accepted";
}

bool refused_for(const std::string& url, const std::string& why) {
  INFO(url << " -> " << refusal(url));
  return refusal(url).find(why) != std::string::npos;
}

std::string value(const std::string& url, const char* key) {
  const auto parts = parse_url(url);
  const auto* found = parts.find(key);
  return found == nullptr ? "(none)" : *found;
}

host_port only_host(const std::string& url) {
  const auto parts = parse_url(url);
  REQUIRE(parts.hosts.size() == 1);
  return parts.hosts.front();
}

using hosts = std::vector<host_port>;

std::string list_of(int n) {
  std::string list = "h0";
  for (int i = 1; i < n; ++i) list += ",h" + std::to_string(i);
  return list;
}

}  // namespace

TEST_CASE("a URL names scheme host and port") {
  CHECK(parse_url("redis://localhost").kind == scheme::server);
  CHECK_FALSE(parse_url("redis://localhost").use_tls);
  CHECK(parse_url("rediss://localhost").kind == scheme::server);
  CHECK(parse_url("rediss://localhost").use_tls);
  CHECK(only_host("redis://db-1.example_net").host == "db-1.example_net");
  CHECK(only_host("redis://localhost").port == 6379);
  CHECK(only_host("redis://localhost:1").port == 1);
  CHECK(only_host("redis://localhost:65535/").port == 65535);
}

TEST_CASE("an IPv6 address is written in brackets and may have a zone") {
  CHECK(only_host("redis://[::1]").host == "::1");
  CHECK(only_host("redis://[::1]:6380").port == 6380);
  CHECK(only_host("redis://[fe80::1%25eth0]:6380").host == "fe80::1%eth0");
  CHECK(refused_for("redis://::1:6380", "brackets"));
  CHECK(refused_for("redis://[::1", "without ']'"));
  CHECK(refused_for("redis://[::1]6380", "may follow"));
  CHECK(refused_for("redis://[]:6380", "no IPv6 address"));
  CHECK(refused_for("redis://[127.0.0.1]", "no IPv6 address"));
  CHECK(refused_for("redis://[fe80::1%eth0]", "%25"));
  CHECK(refused_for("redis://[fe80::1%25]", "zone"));
}

TEST_CASE("user information and database are percent-decoded values") {
  CHECK(value("redis://alice:s%3acret@host", "user") == "alice");
  CHECK(value("redis://alice:s%3acret@host", "password") == "s:cret");
  CHECK(value("redis://:pass:word@host", "password") == "pass:word");
  CHECK(value("redis://:p@ss@host", "password") == "p@ss");
  CHECK(only_host("redis://:p@ss@host").host == "host");
  CHECK(value("redis://:p@host", "user") == "(none)");
  CHECK(value("redis://host/3", "db") == "3");
  CHECK(value("redis://host/", "db") == "(none)");
  CHECK(value("redis://host?client_name=a%20b&key_prefix=%00%ff", "client_name") == "a b");
  CHECK(value("redis://host?client_name=a%20b&key_prefix=%00%ff", "key_prefix") == std::string("\0\xff", 2));
}

TEST_CASE("a unix URL names an absolute path") {
  CHECK(parse_url("redis+unix:///run/redis.sock").kind == scheme::unix_socket);
  CHECK(parse_url("redis+unix:///run/redis.sock?db=2").unix_path == "/run/redis.sock");
  CHECK(parse_url("redis+unix:///a%20b%40").unix_path == "/a b@");
  CHECK(value("redis+unix://u:p@/run/redis.sock?db=2", "password") == "p");
  CHECK(value("redis+unix:///run/redis.sock?db=2", "db") == "2");
  CHECK(refused_for("redis+unix://run/redis.sock", "no absolute path"));
  CHECK(refused_for("redis+unix://", "no path"));
  CHECK(refused_for("redis+unix:///", "no path"));
  CHECK(refused_for("redis+unix:///a%00b", "NUL"));
  CHECK(parse_url("redis+unix:///" + std::string(106, 'a')).unix_path.size() == 107);
  CHECK(refused_for("redis+unix:///" + std::string(107, 'a'), "107 bytes"));
}

TEST_CASE("a URL of sentinels names them and the primary") {
  const auto parts = parse_url("redis+sentinel://s1,s2:26380,[::1],[fe80::1%25eth0]:1/mymaster/3");
  CHECK(parts.kind == scheme::sentinel);
  CHECK_FALSE(parts.use_tls);
  CHECK(parts.hosts == hosts{{"s1", 26379}, {"s2", 26380}, {"::1", 26379}, {"fe80::1%eth0", 1}});
  CHECK(parts.primary_name == "mymaster");
  CHECK(*parts.find("db") == "3");

  CHECK(parse_url("rediss+sentinel://s1/m").kind == scheme::sentinel);
  CHECK(parse_url("rediss+sentinel://s1/m").use_tls);
  CHECK(only_host("rediss+sentinel://s1/m").port == 26379);
  CHECK(value("redis+sentinel://s1/m", "db") == "(none)");
  CHECK(value("redis+sentinel://s1/m/", "db") == "(none)");
  CHECK(value("redis+sentinel://s1/m?db=2", "db") == "2");
  CHECK(parse_url("redis+sentinel://s1/a%2Fb%ff:%25").primary_name == "a/b\xff:%");
  CHECK(value("redis+sentinel://app:p%2Cw@s1,s2/m", "password") == "p,w");
  CHECK(value("redis+sentinel://app:p@ss@s1,s2/m", "password") == "p@ss");
  CHECK(value("redis+sentinel://s1/m?sentinel_password=a%26b", "sentinel_password") == "a&b");
}

TEST_CASE("a URL of sentinels without a usable name of the primary is refused") {
  for (const char* path : {"", "/", "//3", "?db=1", "/?db=1"}) {
    INFO(path);
    CHECK(refused_for("redis+sentinel://s1" + std::string(path), "no name of the primary"));
  }
  for (const char* name : {"a%20b", "%00", "a%0d%0a", "%7f"}) {
    INFO(name);
    CHECK(refused_for("redis+sentinel://s1/" + std::string(name), "a blank or control byte"));
  }
  CHECK(refused_for("redis+sentinel://s1/m%", "two hexadecimal digits"));
  CHECK(refused_for("redis+sentinel://s1/m/1?db=1", "db is given twice"));
}

TEST_CASE("a URL of a cluster names some of its nodes") {
  const auto parts = parse_url("redis+cluster://n1,n2:7001,[::1]:7002");
  CHECK(parts.kind == scheme::cluster);
  CHECK_FALSE(parts.use_tls);
  CHECK(parts.hosts == hosts{{"n1", 6379}, {"n2", 7001}, {"::1", 7002}});
  CHECK(parts.primary_name.empty());
  CHECK(parse_url("rediss+cluster://n1").use_tls);
  CHECK(parse_url("rediss+cluster://n1/").find("db") == nullptr);
  CHECK(value("redis+cluster://n1/0", "db") == "0");
}

TEST_CASE("a list of hosts has 1 to 32 of them and each once") {
  for (const char* name : {"redis+sentinel://", "redis+cluster://"}) {
    const std::string scheme(name), path("/m");
    INFO(scheme);
    CHECK(refused_for(scheme, "no host"));
    CHECK(refused_for(scheme + ",n1/m", "no host"));
    CHECK(refused_for(scheme + "n1,/m", "no host"));
    CHECK(refused_for(scheme + "n1,,n2/m", "no host"));
    CHECK(refused_for(scheme + "n1,:7000/m", "no host"));
    CHECK(refused_for(scheme + "n1,n2:0/m", "the port is not"));
    CHECK(refused_for(scheme + "n1,n2:65536/m", "the port is not"));
    CHECK(refused_for(scheme + "n1,::1/m", "brackets"));
    CHECK(refused_for(scheme + "n1,[::1/m", "without ']'"));
    CHECK(refused_for(scheme + "n1%2Cn2/m", "a host of other bytes"));
    CHECK(refused_for(scheme + "n1;n2/m", "a host of other bytes"));
    CHECK(refused_for(scheme + "n1,n2,n1/m", "a host is given twice"));
    CHECK(parse_url(scheme + "n1,n1:1/m").hosts.size() == 2);
    CHECK(parse_url(scheme + list_of(32) + path).hosts.size() == 32);
    CHECK(refused_for(scheme + list_of(33) + path, "more than 32 hosts"));
    CHECK(refused_for(scheme + list_of(4000), "longer than 4096"));
  }
  CHECK(refused_for("redis+sentinel://n1,n1:26379/m", "a host is given twice"));
  CHECK(refused_for("redis+cluster://n1,n1:6379", "a host is given twice"));
}

TEST_CASE("several hosts of a plain URL are refused with the schemes that have them") {
  for (const char* url : {"redis://h1,h2", "rediss://h1:1,h2:2/3", "redis://u:p@h1,h2", "redis://[::1],[::2]"}) {
    INFO(url);
    CHECK(refused_for(url, "redis+sentinel://host,host/name"));
    CHECK(refused_for(url, "redis+cluster://host,host"));
    CHECK(refused_for(url, "config::red_lock.primaries"));
  }
}

TEST_CASE("user information stands once before all hosts") {
  for (const char* scheme : {"redis+sentinel://", "rediss+cluster://"})
    for (const char* rest : {"u:p@h1,u:p@h2/m", "h1,u:p@h2/m", "u:a,b@h1/m", "u,v:p@h1/m"}) {
      INFO(scheme << rest);
      CHECK(refused_for(scheme + std::string(rest), "%2C"));
    }
  CHECK(value("redis://u:a,b@h1", "password") == "a,b");
}

TEST_CASE("a URL of the wrong form is refused with its cause") {
  CHECK(refused_for("", "empty"));
  CHECK(refused_for("redis://" + std::string(4096, 'a'), "longer than 4096"));
  CHECK(refused_for("localhost:6379", "begins with none"));
  CHECK(refused_for("http://localhost", "begins with none"));
  CHECK(refused_for("REDIS://localhost", "begins with none"));
  CHECK(refused_for("unix:///run/redis.sock", "begins with none"));
  CHECK(refused_for("sentinel://localhost/m", "begins with none"));
  CHECK(refused_for("redis+tls://localhost", "begins with none"));
  CHECK(refused_for("redis+sentinel:/localhost/m", "begins with none"));
  CHECK(refused_for("redis://", "no host"));
  CHECK(refused_for("redis://:6379", "no host"));
  CHECK(refused_for("redis://@host", "'@' without"));
  CHECK(refused_for("redis://:@host", "'@' without"));
  CHECK(refused_for("redis://user:pass@", "no host"));
  CHECK(refused_for("redis://ho%73t", "a host of other bytes"));
  CHECK(refused_for("redis://" + std::string(254, 'a'), "253"));
  CHECK(refused_for("redis://host name", "blank"));
  CHECK(refused_for("redis://host\r\nFLUSHALL", "blank"));
  CHECK(refused_for("redis://h\xc3\xb6st", "non-ASCII"));
  CHECK(refused_for(std::string("redis://host\0", 13), "control"));
  CHECK(refused_for("redis://:pa#ss@host", "%23"));
  CHECK(refused_for("redis://:pa/ss@host", "%2F"));
  CHECK(refused_for("redis://:pa?ss@host", "%3F"));
}

TEST_CASE("a port is a number from 1 to 65535") {
  for (const char* port : {"", "0", "65536", "99999999999999999999", "http", "-1", "+1", "63 79", "6379x", "0x10"}) {
    INFO(port);
    CHECK(refusal("redis://host:" + std::string(port)) != "accepted");
    CHECK(refusal("redis://[::1]:" + std::string(port)) != "accepted");
  }
}

TEST_CASE("percent-encoding is two hexadecimal digits") {
  for (const char* bad : {"%", "%4", "%4g", "%g4", "%%41", "% 41", "%-1"}) {
    INFO(bad);
    CHECK(refusal("redis://:" + std::string(bad) + "@host") != "accepted");
    CHECK(refusal("redis://host?client_name=" + std::string(bad)) != "accepted");
    CHECK(refusal("redis+unix:///" + std::string(bad)) != "accepted");
  }
}

TEST_CASE("a query is known keys with values and each once") {
  CHECK(refused_for("redis://host?", "key without value"));
  CHECK(refused_for("redis://host?db", "key without value"));
  CHECK(refused_for("redis://host?db=", "key without value"));
  CHECK(refused_for("redis://host?=1", "key without value"));
  CHECK(refused_for("redis://host?db=1&", "key without value"));
  CHECK(refused_for("redis://host?db=1&&ttl=1", "key without value"));
  CHECK(refused_for("redis://host?timeout=1", "unknown query key 'timeout'"));
  CHECK(refused_for("redis://host?DB=1", "unknown query key"));
  CHECK(refused_for("rediss://host?insecure_skip_verification=true", "unknown query key"));
  CHECK(refused_for("rediss://host?tls=false", "unknown query key 'tls'"));
  CHECK(refused_for("redis://host?db=1&db=1", "db is given twice"));
  CHECK(refused_for("redis://host/1?db=1", "db is given twice"));
  CHECK(refused_for("redis://u:p@host?user=u", "user is given twice"));
  CHECK(refused_for("redis://u:p@host?password=p", "password is given twice"));
}

TEST_CASE("the scheme of a text is told where it is one of ours") {
  for (const char* scheme : {"redis://", "rediss://", "redis+unix://", "redis+sentinel://", "rediss+sentinel://",
                             "redis+cluster://", "rediss+cluster://"})
    CHECK(scheme_of(scheme + std::string("whatever")) == scheme);
  CHECK(scheme_of("redis+other://whatever").empty());
  CHECK(scheme_of("").empty());
}

TEST_CASE("a host is read with its port or the usual one") {
  CHECK(parse_host("db", 7, "field") == host_port{"db", 7});
  CHECK(parse_host("[::1]:8", 7, "field") == host_port{"::1", 8});
  try {
    parse_host("a b", 7, "field");
    FAIL("read");
  } catch (const holdfast::error& e) {
    CHECK(std::string(e.what()) ==
          "invalid configuration: field: a host of other bytes than letters, digits, '.', '-' and '_'");
  }
}
