// SPDX-License-Identifier: BSL-1.0
#include "config/url.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <holdfast/error.hpp>

#include "config/numbers.hpp"

namespace holdfast::detail {
namespace {

constexpr std::size_t longest_url = 4096;
constexpr std::size_t most_hosts = 32;
constexpr std::size_t longest_unix_path = 107;  // sun_path, with its final NUL

constexpr std::array<std::string_view, 22> known_keys{"db",
                                                      "user",
                                                      "password",
                                                      "client_name",
                                                      "key_prefix",
                                                      "ttl",
                                                      "command_timeout",
                                                      "connect_timeout",
                                                      "ca_file",
                                                      "ca_dir",
                                                      "certificate_file",
                                                      "key_file",
                                                      "server_name",
                                                      "sentinel_user",
                                                      "sentinel_password",
                                                      "sentinel_tls",
                                                      "strict_sentinel",
                                                      "pubsub",
                                                      "min_replicas",
                                                      "push",
                                                      "turns",
                                                      "notes"};
constexpr std::array<std::string_view, 4> secret_keys{"user", "password", "sentinel_user", "sentinel_password"};

struct scheme_row {
  std::string_view text;
  url_parts::scheme kind;
  bool use_tls;
  std::uint16_t usual_port;
};
constexpr scheme_row schemes[] = {{"redis://", url_parts::scheme::server, false, 6379},
                                  {"rediss://", url_parts::scheme::server, true, 6379},
                                  {"redis+unix://", url_parts::scheme::unix_socket, false, 0},
                                  {"redis+sentinel://", url_parts::scheme::sentinel, false, 26379},
                                  {"rediss+sentinel://", url_parts::scheme::sentinel, true, 26379},
                                  {"redis+cluster://", url_parts::scheme::cluster, false, 6379},
                                  {"rediss+cluster://", url_parts::scheme::cluster, true, 6379}};

const scheme_row* row_of(std::string_view url) noexcept {
  const auto found = std::find_if(std::begin(schemes), std::end(schemes),
                                  [&](const scheme_row& row) { return url.starts_with(row.text); });
  return found == std::end(schemes) ? nullptr : found;
}

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

[[noreturn]] void refuse(const std::string& why) { throw error(errc::invalid_config, "url: " + why); }

int hex_digit(char byte) {
  if (is_digit(byte)) return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) refuse("'%' is not followed by two hexadecimal digits; a literal '%' is written %25");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

class parser {
 public:
  explicit parser(std::string_view url) : url_(url), rest_(url) {}

  url_parts run() {
    check_bytes();
    parse_scheme();
    const auto authority = take_until("/?");
    const auto path = take_until("?");
    if (rest_.find('@') != rest_.npos || path.find('@') != path.npos)
      refuse(
          "'@' after the host; '/', '?' and '@' inside a user, password, path or value are written %2F, %3F and %40");
    const auto server = parse_user_info(authority);
    if (parts_.kind == url_parts::scheme::unix_socket) {
      parse_unix_path(server, path);
    } else {
      parse_hosts(server);
      parse_path(path);
    }
    if (!rest_.empty()) parse_query(rest_.substr(1));
    return std::move(parts_);
  }

 private:
  void check_bytes() const {
    if (url_.empty()) refuse("empty");
    if (url_.size() > longest_url) refuse("longer than 4096 bytes");
    for (const char byte : url_) {
      if (byte <= 0x20 || byte > 0x7e)
        refuse("a blank, control or non-ASCII byte; it is written as % and two hexadecimal digits");
      if (byte == '#') refuse("'#' has no meaning here; inside a password it is written %23");
    }
  }

  void parse_scheme() {
    const auto* row = row_of(url_);
    if (row == nullptr)
      refuse(
          "begins with none of redis://, rediss://, redis+unix://, redis+sentinel://, rediss+sentinel://, "
          "redis+cluster:// and rediss+cluster://");
    parts_.kind = row->kind;
    parts_.use_tls = row->use_tls;
    usual_port_ = row->usual_port;
    rest_.remove_prefix(row->text.size());
  }

  bool has_several_hosts() const {
    return parts_.kind == url_parts::scheme::sentinel || parts_.kind == url_parts::scheme::cluster;
  }

  std::string_view take_until(std::string_view stops) {
    const auto taken = rest_.substr(0, rest_.find_first_of(stops));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  void hide(std::string_view part) {
    parts_.secrets.push_back({static_cast<std::size_t>(part.data() - url_.data()), part.size()});
  }

  void set(std::string_view key, std::string text) {
    if (parts_.find(key) != nullptr) refuse(std::string(key) + " is given twice");
    parts_.values.push_back({std::string(key), std::move(text)});
  }

  // Returns what follows the user information. The last '@' ends it: hosts have none, passwords may.
  std::string_view parse_user_info(std::string_view authority) {
    const auto at = authority.rfind('@');
    if (at == authority.npos) return authority;
    const auto info = authority.substr(0, at);
    // It may be h1,user@h2 or user@h1,user@h2, and would be misread.
    if (has_several_hosts() && info.find(',') != info.npos)
      refuse("',' before '@'; user and password stand once, before all hosts, and ',' in them is written %2C");
    const auto colon = std::min(info.find(':'), info.size());
    const auto user = info.substr(0, colon), password = info.substr(std::min(colon + 1, info.size()));
    if (user.empty() && password.empty()) refuse("'@' without user and password");
    if (!user.empty()) set("user", decoded(user));
    if (!password.empty()) set("password", decoded(password));
    hide(info);
    return authority.substr(at + 1);
  }

  void parse_hosts(std::string_view list) {
    if (!has_several_hosts() && list.find(',') != list.npos)
      refuse(
          "several hosts; those of sentinels are written redis+sentinel://host,host/name, those of a cluster "
          "redis+cluster://host,host, and the primaries of a red_lock stand in config::red_lock.primaries");
    for (;;) {
      const auto text = list.substr(0, list.find(','));
      if (parts_.hosts.size() == most_hosts) refuse("more than 32 hosts");
      auto host = parse_host(text, usual_port_, "url");
      if (std::find(parts_.hosts.begin(), parts_.hosts.end(), host) != parts_.hosts.end())
        refuse("a host is given twice");
      parts_.hosts.push_back(std::move(host));
      if (text.size() == list.size()) return;
      list.remove_prefix(text.size() + 1);
    }
  }

  void parse_path(std::string_view path) {
    if (!path.empty()) path.remove_prefix(1);
    if (parts_.kind == url_parts::scheme::sentinel) {
      const auto name = path.substr(0, path.find('/'));
      parse_primary_name(name);
      path.remove_prefix(std::min(name.size() + 1, path.size()));
    }
    if (!path.empty()) set("db", std::string(path));
  }

  void parse_primary_name(std::string_view text) {
    if (text.empty())
      refuse("no name of the primary; sentinels are written redis+sentinel://host,host/name, with the name they use");
    parts_.primary_name = decoded(text);
    // Sentinels put it between blanks in their messages.
    for (const unsigned char byte : parts_.primary_name)
      if (byte <= 0x20 || byte == 0x7f) refuse("a blank or control byte in the name of the primary");
  }

  void parse_unix_path(std::string_view server, std::string_view path) {
    if (!server.empty()) refuse("no absolute path; a unix socket is written redis+unix:///path/to/socket");
    parts_.unix_path = decoded(path);
    if (parts_.unix_path.size() < 2) refuse("no path of a unix socket");
    if (parts_.unix_path.size() > longest_unix_path) refuse("a unix socket's path of more than 107 bytes");
    if (parts_.unix_path.find('\0') != std::string::npos) refuse("a NUL in the path");
  }

  void parse_query(std::string_view query) {
    for (;;) {
      const auto pair = query.substr(0, query.find('&'));
      const auto equals = pair.find('=');
      const auto key = pair.substr(0, equals);
      if (equals == pair.npos || key.empty() || equals + 1 == pair.size())
        refuse("the query has a key without value, or the other way round");
      if (!contains(known_keys, key)) refuse_key(key);
      const auto text = pair.substr(equals + 1);
      set(key, decoded(text));
      if (contains(secret_keys, key)) hide(text);
      if (pair.size() == query.size()) return;
      query.remove_prefix(pair.size() + 1);
    }
  }

  // After a user or password it may be a piece of it, cut off by an '&' that was not encoded: not quoted then.
  [[noreturn]] void refuse_key(std::string_view key) const {
    const auto plain = [](char byte) { return (byte >= 'a' && byte <= 'z') || byte == '_'; };
    const auto given = [this](std::string_view secret) { return parts_.find(secret) != nullptr; };
    if (std::any_of(secret_keys.begin(), secret_keys.end(), given) || key.size() > 32 ||
        !std::all_of(key.begin(), key.end(), plain))
      refuse("unknown query key");
    refuse("unknown query key '" + std::string(key) + "'");
  }

  std::string_view url_, rest_;
  std::uint16_t usual_port_ = 0;
  url_parts parts_;
};

}  // namespace

const std::string* url_parts::find(std::string_view key) const noexcept {
  const auto found = std::find_if(values.begin(), values.end(), [&](const value& value) { return value.key == key; });
  return found == values.end() ? nullptr : &found->text;
}

std::string_view scheme_of(std::string_view url) noexcept {
  const auto* row = row_of(url);
  return row == nullptr ? std::string_view() : row->text;
}

url_parts parse_url(std::string_view url) { return parser(url).run(); }

}  // namespace holdfast::detail
