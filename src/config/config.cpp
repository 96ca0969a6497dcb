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

push_mode read_push(std::string_view, const std::string& text) {
  if (text != "auto" && text != "off") refuse("url: push is neither auto nor off");
  return text == "auto" ? push_mode::automatic : push_mode::off;
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

void merge_server(config& settings, const url_parts& url) {
  const config untouched;
  merge(settings.user, untouched.user, url, "user", read_text);
  merge(settings.password, untouched.password, url, "password", read_text);
  merge(settings.tls.ca_file, untouched.tls.ca_file, url, "ca_file", read_text);
  merge(settings.tls.ca_dir, untouched.tls.ca_dir, url, "ca_dir", read_text);
  merge(settings.tls.certificate_file, untouched.tls.certificate_file, url, "certificate_file", read_text);
  merge(settings.tls.key_file, untouched.tls.key_file, url, "key_file", read_text);
  merge(settings.tls.server_name, untouched.tls.server_name, url, "server_name", read_text);
}

void merge_behaviour(config& settings, const url_parts& url) {
  const config untouched;
  merge(settings.client_name, untouched.client_name, url, "client_name", read_text);
  merge(settings.key_prefix, untouched.key_prefix, url, "key_prefix", read_text);
  merge(settings.ttl, untouched.ttl, url, "ttl", read_duration);
  merge(settings.command_timeout, untouched.command_timeout, url, "command_timeout", read_duration);
  merge(settings.connect_timeout, untouched.connect_timeout, url, "connect_timeout", read_duration);
  merge(settings.push, untouched.push, url, "push", read_push);
  merge(settings.turns, untouched.turns, url, "turns", read_switch);
  merge(settings.notes, untouched.notes, url, "notes", read_switch);
  merge(settings.min_replicas, untouched.min_replicas, url, "min_replicas", read_count);
  merge(settings.sentinel.user, untouched.sentinel.user, url, "sentinel_user", read_text);
  merge(settings.sentinel.password, untouched.sentinel.password, url, "sentinel_password", read_text);
  merge(settings.sentinel.tls, untouched.sentinel.tls, url, "sentinel_tls", read_switch);
  merge(settings.sentinel.strict, untouched.sentinel.strict, url, "strict_sentinel", read_switch);
  merge(settings.cluster.pubsub, untouched.cluster.pubsub, url, "pubsub", read_pubsub);
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

void check_ranges(const config& config) {
  check_range("ttl", config.ttl, 100ms, 24h, errc::invalid_ttl);
  check_range("command_timeout", config.command_timeout, 5ms, 60s);
  check_range("connect_timeout", config.connect_timeout, 10ms, 60s);
  check_range("poll_cap", config.poll_cap, 50ms, 60s);
  check_range("reconnect_cap", config.reconnect_cap, 50ms, 60s);
  if (config.health_check_interval != 0ms)
    check_range("health_check_interval", config.health_check_interval, 100ms, 1h);
  if (config.token_ttl != 0ms) check_range("token_ttl", config.token_ttl, 2 * config.ttl, 87'600h);
  if (!(config.drift >= 0 && config.drift <= 0.2))
    refuse("drift is " + std::to_string(config.drift) + "; allowed: 0 to 0.2");  // NaN too
  if (config.pending_commands < 1 || config.pending_commands > (std::size_t{1} << 24))
    refuse("pending_commands is " + std::to_string(config.pending_commands) + "; allowed: 1 to 16777216");
  if (config.min_replicas > detail::most_replicas)
    refuse("min_replicas is " + std::to_string(config.min_replicas) + "; allowed: 0 to 15");
}

void check_login(const std::string& prefix, const redis::credentials& login) {
  if (const auto misconfiguration = redis::misconfiguration_of(login); !misconfiguration.empty())
    refuse(prefix + std::string(misconfiguration));
}

// One of two sources would be ignored silently.
void check_one_source(const config& config) {
  if (!config.credentials) return;
  const std::pair<const char*, const std::string&> fields[] = {{"user", config.user},
                                                               {"password", config.password},
                                                               {"sentinel.user", config.sentinel.user},
                                                               {"sentinel.password", config.sentinel.password}};
  for (const auto& [name, value] : fields)
    if (!value.empty()) refuse("both credentials and " + std::string(name) + " are set");
}

void check_names(const config& config) {
  check_login("", {config.user, config.password});
  check_login("sentinel.", {config.sentinel.user, config.sentinel.password});
  check_one_source(config);
  if (!config.user.empty() && config.password.empty()) refuse("a user without password");
  if (!config.sentinel.user.empty() && config.sentinel.password.empty())
    refuse("a sentinel.user without sentinel.password");
  if (!std::all_of(config.client_name.begin(), config.client_name.end(),
                   [](char byte) { return byte > 0x20 && byte < 0x7f; }))
    refuse("client_name has other bytes than printable ASCII without space");
  if (config.key_prefix.size() > longest_prefix) refuse("key_prefix is longer than 65535 bytes");
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
redis::endpoint endpoint_of(const config& config, const url_parts& url) {
  check_names(config);
  check_tls(config.tls, url.use_tls || config.sentinel.tls.value_or(false), tls_scheme(url));
  redis::endpoint server;
  if (url.hosts.empty())
    server.at = {"", server.at.port, url.unix_path};
  else
    server.at = {url.hosts.front().host, url.hosts.front().port, ""};
  server.use_tls = url.use_tls;
  server.tls = config.tls;
  server.login = {config.user, config.password};
  if (config.credentials) server.logins = std::make_shared<const redis::login_source>(config.credentials);
  server.db = db_of(url);
  server.client_name = config.client_name;
  server.connect_timeout = config.connect_timeout;
  server.reconnect_cap = config.reconnect_cap;
  server.health_check_interval = config.health_check_interval;
  // The timeout of most leases' renewals. A much shorter lease must not end the connection of all others.
  server.silence_limit = std::max(server.silence_limit, std::min(config.command_timeout, config.ttl / 5));
  server.pending_commands = config.pending_commands;
  return server;
}

// The primaries of a red_lock.

void check_primaries(const config& settings) {
  constexpr std::size_t fewest = 3, most = 9;
  const auto n = settings.red_lock.primaries.size();
  const auto are = "red_lock.primaries are " + std::to_string(n) + ": ";
  if (n == 1) refuse(are + "the lock of one server is a mutex, and its address belongs into url");
  if (n % 2 == 0) refuse(are + "an even number bears no more failures than one less; allowed: 3, 5, 7 or 9");
  if (n < fewest || n > most) refuse(are + "each lock would wait for more of them; allowed: 3, 5, 7 or 9");
  if (settings.url != config().url) refuse("both url and red_lock.primaries are set");
}

redis::endpoint primary_of(config config, std::size_t index) {
  const auto name = "red_lock.primaries[" + std::to_string(index) + "]: ";
  try {
    const auto url = detail::parse_url(config.red_lock.primaries[index]);
    detail::check_is_one_server(url);
    detail::check_meaning(config, detail::deployment::primaries, url);
    for (const auto* key : {"client_name", "key_prefix", "ttl", "command_timeout", "connect_timeout", "notes"})
      if (url.find(key)) refuse(std::string(key) + " is not one server's: it belongs into the config");
    merge_server(config, url);
    return endpoint_of(config, url);
  } catch (const error& failure) {
    const std::string text = failure.what();
    const auto cause = text.find(": ");
    refuse(name + (cause == text.npos ? text : text.substr(cause + 2)));
  }
}

void check_longest_ttl(const config& config) {
  if (config.red_lock.longest_ttl < config.ttl || config.red_lock.longest_ttl > 24h)
    refuse("red_lock.longest_ttl is " + text_of(config.red_lock.longest_ttl) + "; allowed: ttl to 24 h");
}

void check_differ(const std::vector<redis::endpoint>& servers) {
  for (std::size_t first = 0; first < servers.size(); ++first)
    for (std::size_t second = first + 1; second < servers.size(); ++second)
      if (servers[first].to_string() == servers[second].to_string())
        refuse("red_lock.primaries[" + std::to_string(first) + "] and red_lock.primaries[" + std::to_string(second) +
               "] are one server, " + servers[first].to_string());
}

}  // namespace

namespace detail {
namespace {

// Sentinels get none of the servers' secrets, and have one database.
redis::endpoint sentinel_of(const config& config, redis::endpoint server) {
  server.login = {config.sentinel.user, config.sentinel.password};
  server.use_tls = config.sentinel.tls.value_or(server.use_tls);
  server.db = 0;
  server.expected = redis::server_mode::sentinel;
  return server;
}

settings of_url(config& config) {
  const auto url = parse_url(config.url);
  merge_server(config, url);
  merge_behaviour(config, url);
  check_ranges(config);
  settings settings;
  settings.kind = deployment_of(url);
  check_meaning(config, settings.kind, url);
  auto server = endpoint_of(config, url);
  if (settings.kind == deployment::cluster) server.expected = redis::server_mode::cluster;
  config.red_lock.longest_ttl = 0ms;  // of several primaries
  if (settings.kind == deployment::one_server) {
    settings.servers.push_back(server);
    return settings;
  }
  settings.discovered = server.with({});
  settings.primary_name = url.primary_name;
  settings.node_map = read_node_map(config.node_map);
  if (settings.kind == deployment::sentinel) server = sentinel_of(config, server);
  for (const auto& [host, port] : url.hosts) settings.servers.push_back(server.with({host, port, ""}));
  return settings;
}

settings of_primaries(config& config) {
  check_primaries(config);
  check_ranges(config);
  settings settings;
  settings.kind = deployment::primaries;
  check_meaning(config, settings.kind, {});
  for (std::size_t n = 0; n < config.red_lock.primaries.size(); ++n) settings.servers.push_back(primary_of(config, n));
  check_differ(settings.servers);
  if (config.red_lock.longest_ttl == 0ms)
    config.red_lock.longest_ttl = std::clamp<milliseconds>(2 * config.ttl, 60s, 24h);
  check_longest_ttl(config);
  return settings;
}

}  // namespace

settings resolve(config config) {
  auto settings = config.red_lock.primaries.empty() ? of_url(config) : of_primaries(config);
  config.user.clear();
  config.password.clear();
  config.sentinel.user.clear();
  config.sentinel.password.clear();
  config.credentials = nullptr;
  config.url.clear();
  config.red_lock.primaries.clear();
  config.node_map.clear();
  settings.values = std::move(config);
  return settings;
}

}  // namespace detail
}  // namespace holdfast
