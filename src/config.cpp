// SPDX-License-Identifier: BSL-1.0
#include <holdfast/config.hpp>

#include <algorithm>
#include <limits>
#include <ostream>
#include <utility>

#include <holdfast/error.hpp>

#include "base/escape.hpp"
#include "settings.hpp"
#include "url.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using detail::url_parts;

constexpr std::size_t longest_prefix = 65'535;  // a name has at least one byte more, and at most 64 KiB

[[noreturn]] void refuse(const std::string& why) { throw error(errc::invalid_config, why); }

// The URL's values, each unless the field of the same meaning was set.

void merge(std::string& field, const std::string& untouched, const url_parts& url, std::string_view key) {
  if (const auto* text = url.find(key); text != nullptr && field == untouched) field = *text;
}

void merge(milliseconds& field, milliseconds untouched, const url_parts& url, std::string_view key) {
  const auto* text = url.find(key);
  if (text == nullptr) return;
  const auto number = detail::parse_number(*text);
  if (!number) refuse("url: " + std::string(key) + " is not a number of milliseconds");
  if (field == untouched) field = milliseconds(*number);
}

int db_of(const url_parts& url) {
  const auto* text = url.find("db");
  if (text == nullptr) return 0;
  const auto number = detail::parse_number(*text);
  if (!number || *number > std::numeric_limits<int>::max()) refuse("url: db is not a number from 0 to 2147483647");
  return static_cast<int>(*number);
}

void merge_all(config& c, const url_parts& url) {
  const config untouched;
  merge(c.user, untouched.user, url, "user");
  merge(c.password, untouched.password, url, "password");
  merge(c.client_name, untouched.client_name, url, "client_name");
  merge(c.key_prefix, untouched.key_prefix, url, "key_prefix");
  merge(c.ttl, untouched.ttl, url, "ttl");
  merge(c.command_timeout, untouched.command_timeout, url, "command_timeout");
  merge(c.connect_timeout, untouched.connect_timeout, url, "connect_timeout");
  merge(c.tls.ca_file, untouched.tls.ca_file, url, "ca_file");
  merge(c.tls.ca_dir, untouched.tls.ca_dir, url, "ca_dir");
  merge(c.tls.certificate_file, untouched.tls.certificate_file, url, "certificate_file");
  merge(c.tls.key_file, untouched.tls.key_file, url, "key_file");
  merge(c.tls.server_name, untouched.tls.server_name, url, "server_name");
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
  if (!(c.drift >= 0 && c.drift <= 0.2))
    refuse("drift is " + std::to_string(c.drift) + "; allowed: 0 to 0.2");  // NaN too
  if (c.pending_commands < 1 || c.pending_commands > (std::size_t{1} << 24))
    refuse("pending_commands is " + std::to_string(c.pending_commands) + "; allowed: 1 to 16777216");
}

void check_names(const config& c) {
  constexpr std::string_view line_breaks("\r\n\0", 3);
  if (c.user.find_first_of(line_breaks) != std::string::npos) refuse("user contains a line break or a NUL");
  if (c.password.find_first_of(line_breaks) != std::string::npos) refuse("password contains a line break or a NUL");
  if (!c.user.empty() && c.password.empty()) refuse("a user without password");
  if (!std::all_of(c.client_name.begin(), c.client_name.end(), [](char byte) { return byte > 0x20 && byte < 0x7f; }))
    refuse("client_name has other bytes than printable ASCII without space");
  if (c.key_prefix.size() > longest_prefix) refuse("key_prefix is longer than 65535 bytes");
}

void check_tls(const tls_config& tls, bool used) {
  const std::pair<const char*, const std::string&> fields[] = {{"ca_file", tls.ca_file},
                                                               {"ca_dir", tls.ca_dir},
                                                               {"certificate_file", tls.certificate_file},
                                                               {"key_file", tls.key_file},
                                                               {"server_name", tls.server_name}};
  for (const auto& [name, value] : fields) {
    if (!used && !value.empty()) refuse(std::string(name) + " is set, and the url is not rediss://");
    if (value.find('\0') != std::string::npos) refuse(std::string(name) + " contains a NUL");
  }
  if (!used && tls.insecure_skip_verification)
    refuse("insecure_skip_verification is set, and the url is not rediss://");
  if (tls.certificate_file.empty() != tls.key_file.empty())
    refuse(tls.key_file.empty() ? "certificate_file without key_file" : "key_file without certificate_file");
}

// For operator<<.

const char* text_of(bool value) { return value ? "true" : "false"; }
std::string quoted(const std::string& value) { return '"' + detail::escaped(value) + '"'; }

std::ostream& operator<<(std::ostream& out, const tls_config& tls) {
  return out << "{ca_file=" << quoted(tls.ca_file) << " ca_dir=" << quoted(tls.ca_dir)
             << " certificate_file=" << quoted(tls.certificate_file) << " key_file=" << quoted(tls.key_file)
             << " server_name=" << quoted(tls.server_name)
             << " insecure_skip_verification=" << text_of(tls.insecure_skip_verification) << '}';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const config& c) {
  return out << "url=\"" << redacted(c.url) << "\" user=" << quoted(c.user)
             << " password=" << (c.password.empty() ? "\"\"" : "***") << " client_name=" << quoted(c.client_name)
             << " tls=" << c.tls << " key_prefix=" << quoted(c.key_prefix) << " ttl=" << c.ttl.count()
             << "ms command_timeout=" << c.command_timeout.count() << "ms connect_timeout=" << c.connect_timeout.count()
             << "ms drift=" << std::to_string(c.drift) << " poll_cap=" << c.poll_cap.count()
             << "ms reconnect_cap=" << c.reconnect_cap.count() << "ms pending_commands=" << c.pending_commands
             << " observer=" << (c.observer ? "set" : "none");
}

std::string redacted(std::string_view url) {
  std::string out;
  try {
    std::size_t done = 0;
    for (const auto& [begin, length] : detail::parse_url(url).secrets) {
      out.append(url, done, begin - done) += "***";
      done = begin + length;
    }
    return out.append(url, done);
  } catch (const error&) {
    // Who knows where the password stands in it: nothing but the scheme is shown.
    for (const std::string_view scheme : {"redis://", "rediss://", "redis+unix://"})
      if (url.starts_with(scheme)) return std::string(scheme) + "***";
    return "***";
  }
}

namespace detail {

settings resolve(config c) {
  const auto url = parse_url(c.url);
  const bool use_tls = url.kind == url_parts::scheme::tls;
  merge_all(c, url);
  check_ranges(c);
  check_names(c);
  check_tls(c.tls, use_tls);

  settings s;
  s.server.at = {url.host, url.port, url.unix_path};
  s.server.use_tls = use_tls;
  s.server.tls = c.tls;
  s.server.login = {std::exchange(c.user, {}), std::exchange(c.password, {})};
  s.server.db = db_of(url);
  s.server.client_name = c.client_name;
  s.server.connect_timeout = c.connect_timeout;
  s.server.reconnect_cap = c.reconnect_cap;
  // What a renewal of most leases waits for; a lease that is much shorter must not end the connection of all others.
  s.server.patience = std::max(s.server.patience, std::min(c.command_timeout, c.ttl / 5));
  s.server.pending_commands = c.pending_commands;
  c.url.clear();
  s.values = std::move(c);
  return s;
}

}  // namespace detail
}  // namespace holdfast
