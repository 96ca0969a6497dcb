// SPDX-License-Identifier: BSL-1.0
#include <holdfast/config.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <holdfast/error.hpp>

#include "config/deployment.hpp"
#include "config/numbers.hpp"
#include "config/settings.hpp"
#include "config/url.hpp"
#include "redis/login.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using detail::url_parts;

constexpr std::size_t longest_prefix = 65'535;  // a name has at least one byte more, and at most 64 KiB

[[noreturn]] void refuse(const std::string& why) { throw error(errc::invalid_config, why); }

// The URL's values, each unless the field of the same meaning was set.

const std::string& read_text(std::string_view, const std::string& text) { return text; }

milliseconds read_duration(std::string_view key, const std::string& text) {
  const auto number = detail::parse_number(text);
  if (!number) refuse("url: " + std::string(key) + " is not a number of milliseconds");
  return milliseconds(*number);
}

bool read_switch(std::string_view key, const std::string& text) {
  if (text != "on" && text != "off") refuse("url: " + std::string(key) + " is neither on nor off");
  return text == "on";
}

pubsub_mode read_pubsub(std::string_view, const std::string& text) {
  static constexpr std::pair<std::string_view, pubsub_mode> modes[] = {{"auto", pubsub_mode::automatic},
                                                                       {"classic", pubsub_mode::classic},
                                                                       {"sharded", pubsub_mode::sharded},
                                                                       {"both", pubsub_mode::both}};
  for (const auto& [name, mode] : modes)
    if (text == name) return mode;
  refuse("url: pubsub is none of auto, classic, sharded and both");
}

unsigned read_count(std::string_view key, const std::string& text) {
  const auto number = detail::parse_number(text);
  if (!number || *number > std::numeric_limits<int>::max())
    refuse("url: " + std::string(key) + " is not a number from 0 to 2147483647");
  return static_cast<unsigned>(*number);
}

template <class Field, class Read>
void merge(Field& field, const Field& untouched, const url_parts& url, std::string_view key, Read read) {
  const auto* text = url.find(key);
  if (text == nullptr) return;
  Field value = read(key, *text);  // a bad one is refused also where it does not count
  if (field == untouched) field = std::move(value);
}

int db_of(const url_parts& url) {
  const auto* text = url.find("db");
  if (text == nullptr) return 0;
  const auto db = read_count("db", *text);
  if (db != 0 && url.kind == url_parts::scheme::cluster) refuse("url: db is not 0, and a cluster has no other");
  return static_cast<int>(db);
}

void merge_server(config& c, const url_parts& url) {
  const config untouched;
  merge(c.user, untouched.user, url, "user", read_text);
  merge(c.password, untouched.password, url, "password", read_text);
  merge(c.tls.ca_file, untouched.tls.ca_file, url, "ca_file", read_text);
  merge(c.tls.ca_dir, untouched.tls.ca_dir, url, "ca_dir", read_text);
  merge(c.tls.certificate_file, untouched.tls.certificate_file, url, "certificate_file", read_text);
  merge(c.tls.key_file, untouched.tls.key_file, url, "key_file", read_text);
  merge(c.tls.server_name, untouched.tls.server_name, url, "server_name", read_text);
}

void merge_behaviour(config& c, const url_parts& url) {
  const config untouched;
  merge(c.client_name, untouched.client_name, url, "client_name", read_text);
  merge(c.key_prefix, untouched.key_prefix, url, "key_prefix", read_text);
  merge(c.ttl, untouched.ttl, url, "ttl", read_duration);
  merge(c.command_timeout, untouched.command_timeout, url, "command_timeout", read_duration);
  merge(c.connect_timeout, untouched.connect_timeout, url, "connect_timeout", read_duration);
  merge(c.turns, untouched.turns, url, "turns", read_switch);
  merge(c.min_replicas, untouched.min_replicas, url, "min_replicas", read_count);
  merge(c.sentinel_user, untouched.sentinel_user, url, "sentinel_user", read_text);
  merge(c.sentinel_password, untouched.sentinel_password, url, "sentinel_password", read_text);
  merge(c.sentinel_tls, untouched.sentinel_tls, url, "sentinel_tls", read_switch);
  merge(c.strict_sentinel, untouched.strict_sentinel, url, "strict_sentinel", read_switch);
  merge(c.pubsub, untouched.pubsub, url, "pubsub", read_pubsub);
}

// The checks.

std::string text_of(milliseconds duration) {
  if (duration >= 1h && duration % 1h == 0ms) return std::to_string(duration / 1h) + " h";
  if (duration >= 1s && duration % 1s == 0ms) return std::to_string(duration / 1s) + " s";
  return std::to_string(duration.count()) + " ms";
}

void check_range(const char* field, milliseconds value, milliseconds least, milliseconds most,
                 errc code = errc::invalid_config) {
  if (value >= least && value <= most) return;
  throw error(code,
              std::string(field) + " is " + text_of(value) + "; allowed: " + text_of(least) + " to " + text_of(most));
}

void check_ranges(const config& c) {
  check_range("ttl", c.ttl, 100ms, 24h, errc::invalid_ttl);
  check_range("command_timeout", c.command_timeout, 5ms, 60s);
  check_range("connect_timeout", c.connect_timeout, 10ms, 60s);
  check_range("poll_cap", c.poll_cap, 50ms, 60s);
  check_range("reconnect_cap", c.reconnect_cap, 50ms, 60s);
  if (c.health_check_interval != 0ms) check_range("health_check_interval", c.health_check_interval, 100ms, 1h);
  if (c.token_ttl != 0ms) check_range("token_ttl", c.token_ttl, 2 * c.ttl, 87'600h);
  if (!(c.drift >= 0 && c.drift <= 0.2))
    refuse("drift is " + std::to_string(c.drift) + "; allowed: 0 to 0.2");  // NaN too
  if (c.pending_commands < 1 || c.pending_commands > (std::size_t{1} << 24))
    refuse("pending_commands is " + std::to_string(c.pending_commands) + "; allowed: 1 to 16777216");
  if (c.min_replicas > detail::most_replicas)
    refuse("min_replicas is " + std::to_string(c.min_replicas) + "; allowed: 0 to 15");
}

void check_login(const std::string& prefix, const redis::credentials& login) {
  if (const auto misconfiguration = redis::misconfiguration_of(login); !misconfiguration.empty())
    refuse(prefix + std::string(misconfiguration));
}

// One of two sources would be ignored silently.
void check_one_source(const config& c) {
  if (!c.credentials) return;
  const std::pair<const char*, const std::string&> fields[] = {{"user", c.user},
                                                               {"password", c.password},
                                                               {"sentinel_user", c.sentinel_user},
                                                               {"sentinel_password", c.sentinel_password}};
  for (const auto& [name, value] : fields)
    if (!value.empty()) refuse("both credentials and " + std::string(name) + " are set");
}

void check_names(const config& c) {
  check_login("", {c.user, c.password});
  check_login("sentinel_", {c.sentinel_user, c.sentinel_password});
  check_one_source(c);
  if (!c.user.empty() && c.password.empty()) refuse("a user without password");
  if (!c.sentinel_user.empty() && c.sentinel_password.empty()) refuse("a sentinel_user without sentinel_password");
  if (!std::all_of(c.client_name.begin(), c.client_name.end(), [](char byte) { return byte > 0x20 && byte < 0x7f; }))
    refuse("client_name has other bytes than printable ASCII without space");
  if (c.key_prefix.size() > longest_prefix) refuse("key_prefix is longer than 65535 bytes");
}

std::string tls_scheme(const url_parts& url) {
  if (url.kind == url_parts::scheme::sentinel) return "rediss+sentinel://";
  return url.kind == url_parts::scheme::cluster ? "rediss+cluster://" : "rediss://";
}

void check_tls(const tls_config& tls, bool used, const std::string& scheme) {
  const std::pair<const char*, const std::string&> fields[] = {{"ca_file", tls.ca_file},
                                                               {"ca_dir", tls.ca_dir},
                                                               {"certificate_file", tls.certificate_file},
                                                               {"key_file", tls.key_file},
                                                               {"server_name", tls.server_name}};
  for (const auto& [name, value] : fields) {
    if (!used && !value.empty()) refuse(std::string(name) + " is set, and the url is not " + scheme);
    if (value.find('\0') != std::string::npos) refuse(std::string(name) + " contains a NUL");
  }
  if (!used && tls.insecure_skip_verification)
    refuse("insecure_skip_verification is set, and the url is not " + scheme);
  if (tls.certificate_file.empty() != tls.key_file.empty())
    refuse(tls.key_file.empty() ? "certificate_file without key_file" : "key_file without certificate_file");
}

/// One of the servers, the first of the URL.
redis::endpoint endpoint_of(const config& c, const url_parts& url) {
  check_names(c);
  check_tls(c.tls, url.use_tls || c.sentinel_tls.value_or(false), tls_scheme(url));
  redis::endpoint server;
  if (url.hosts.empty())
    server.at = {"", server.at.port, url.unix_path};
  else
    server.at = {url.hosts.front().host, url.hosts.front().port, ""};
  server.use_tls = url.use_tls;
  server.tls = c.tls;
  server.login = {c.user, c.password};
  if (c.credentials) server.logins = std::make_shared<const redis::login_source>(c.credentials);
  server.db = db_of(url);
  server.client_name = c.client_name;
  server.connect_timeout = c.connect_timeout;
  server.reconnect_cap = c.reconnect_cap;
  server.health_check_interval = c.health_check_interval;
  // What a renewal of most leases waits for; a lease that is much shorter must not end the connection of all others.
  server.silence_limit = std::max(server.silence_limit, std::min(c.command_timeout, c.ttl / 5));
  server.pending_commands = c.pending_commands;
  return server;
}

// The primaries of a red_lock.

void check_primaries(const config& c) {
  constexpr std::size_t fewest = 3, most = 9;
  const auto n = c.primaries.size();
  const auto are = "primaries are " + std::to_string(n) + ": ";
  if (n == 1) refuse(are + "the lock of one server is a mutex, and its address belongs into url");
  if (n % 2 == 0) refuse(are + "an even number bears no more failures than one less; allowed: 3, 5, 7 or 9");
  if (n < fewest || n > most) refuse(are + "each lock would wait for more of them; allowed: 3, 5, 7 or 9");
  if (c.url != config().url) refuse("both url and primaries are set");
}

redis::endpoint primary_of(config c, std::size_t n) {
  const auto which = "primaries[" + std::to_string(n) + "]: ";
  try {
    const auto url = detail::parse_url(c.primaries[n]);
    detail::check_is_one_server(url);
    detail::check_meaning(c, detail::deployment::primaries, url);
    for (const auto* key : {"client_name", "key_prefix", "ttl", "command_timeout", "connect_timeout"})
      if (url.find(key)) refuse(std::string(key) + " is not one server's: it belongs into the config");
    merge_server(c, url);
    return endpoint_of(c, url);
  } catch (const error& e) {
    const std::string text = e.what();
    const auto cause = text.find(": ");
    refuse(which + (cause == text.npos ? text : text.substr(cause + 2)));
  }
}

void check_longest_ttl(const config& c) {
  if (c.longest_ttl < c.ttl || c.longest_ttl > 24h)
    refuse("longest_ttl is " + text_of(c.longest_ttl) + "; allowed: ttl to 24 h");
}

void check_differ(const std::vector<redis::endpoint>& servers) {
  for (std::size_t a = 0; a < servers.size(); ++a)
    for (std::size_t b = a + 1; b < servers.size(); ++b)
      if (servers[a].to_string() == servers[b].to_string())
        refuse("primaries[" + std::to_string(a) + "] and primaries[" + std::to_string(b) + "] are one server, " +
               servers[a].to_string());
}

}  // namespace

namespace detail {
namespace {

// Sentinels are told none of the servers' secrets, and have one database.
redis::endpoint sentinel_of(const config& c, redis::endpoint server) {
  server.login = {c.sentinel_user, c.sentinel_password};
  server.use_tls = c.sentinel_tls.value_or(server.use_tls);
  server.db = 0;
  server.expected = redis::server_mode::sentinel;
  return server;
}

settings of_url(config& c) {
  const auto url = parse_url(c.url);
  merge_server(c, url);
  merge_behaviour(c, url);
  check_ranges(c);
  settings s;
  s.kind = deployment_of(url);
  check_meaning(c, s.kind, url);
  auto server = endpoint_of(c, url);
  if (s.kind == deployment::cluster) server.expected = redis::server_mode::cluster;
  c.longest_ttl = 0ms;  // of several primaries
  if (s.kind == deployment::one_server) {
    s.servers.push_back(server);
    return s;
  }
  s.discovered = server.with({});
  s.primary_name = url.primary_name;
  s.node_map = read_node_map(c.node_map);
  if (s.kind == deployment::sentinel) server = sentinel_of(c, server);
  for (const auto& [host, port] : url.hosts) s.servers.push_back(server.with({host, port, ""}));
  return s;
}

settings of_primaries(config& c) {
  check_primaries(c);
  check_ranges(c);
  settings s;
  s.kind = deployment::primaries;
  check_meaning(c, s.kind, {});
  for (std::size_t n = 0; n < c.primaries.size(); ++n) s.servers.push_back(primary_of(c, n));
  check_differ(s.servers);
  if (c.longest_ttl == 0ms) c.longest_ttl = std::clamp<milliseconds>(2 * c.ttl, 60s, 24h);
  check_longest_ttl(c);
  return s;
}

}  // namespace

settings resolve(config c) {
  auto s = c.primaries.empty() ? of_url(c) : of_primaries(c);
  c.user.clear();
  c.password.clear();
  c.sentinel_user.clear();
  c.sentinel_password.clear();
  c.credentials = nullptr;
  c.url.clear();
  c.primaries.clear();
  c.node_map.clear();
  s.values = std::move(c);
  return s;
}

}  // namespace detail
}  // namespace holdfast
