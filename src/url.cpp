// SPDX-License-Identifier: BSL-1.0
#include "url.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <holdfast/error.hpp>

namespace holdfast::detail {
namespace {

constexpr std::size_t longest_url = 4096;
constexpr std::size_t longest_host = 253;
constexpr std::size_t longest_unix_path = 107;  // sun_path, with its final NUL

constexpr std::array<std::string_view, 13> known_keys{
    "db",      "user",   "password",         "client_name", "key_prefix", "ttl", "command_timeout", "connect_timeout",
    "ca_file", "ca_dir", "certificate_file", "key_file",    "server_name"};

[[noreturn]] void refuse(const std::string& why) { throw error(errc::invalid_config, "url: " + why); }

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_name_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
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
      parse_server(server);
      parse_db(path);
    }
    if (!rest_.empty()) parse_query(rest_.substr(1));
    return std::move(parts_);
  }

 private:
  void check_bytes() const {
    if (url_.empty()) refuse("empty");
    if (url_.size() > longest_url) refuse("longer than 4096 bytes");
    for (const char c : url_) {
      if (c <= 0x20 || c > 0x7e)
        refuse("a blank, control or non-ASCII byte; it is written as % and two hexadecimal digits");
      if (c == '#') refuse("'#' has no meaning here; inside a password it is written %23");
    }
  }

  void parse_scheme() {
    static constexpr std::pair<std::string_view, url_parts::scheme> schemes[] = {
        {"redis://", url_parts::scheme::tcp},
        {"rediss://", url_parts::scheme::tls},
        {"redis+unix://", url_parts::scheme::unix_socket}};
    for (const auto& [text, kind] : schemes) {
      if (!rest_.starts_with(text)) continue;
      parts_.kind = kind;
      rest_.remove_prefix(text.size());
      return;
    }
    refuse("begins with none of redis://, rediss:// and redis+unix://");
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
    const auto colon = std::min(info.find(':'), info.size());
    const auto user = info.substr(0, colon), password = info.substr(std::min(colon + 1, info.size()));
    if (user.empty() && password.empty()) refuse("'@' without user and password");
    if (!user.empty()) set("user", decoded(user));
    if (!password.empty()) set("password", decoded(password));
    hide(info);
    return authority.substr(at + 1);
  }

  void parse_server(std::string_view server) {
    std::string_view port;
    if (server.starts_with('[')) {
      const auto end = server.find(']');
      if (end == server.npos) refuse("'[' without ']'");
      parse_ipv6(server.substr(1, end - 1));
      port = server.substr(end + 1);
      if (!port.empty() && port[0] != ':') refuse("only a port may follow ']'");
    } else {
      const auto host = server.substr(0, server.find(':'));
      port = server.substr(host.size());
      if (port.find(':', 1) != port.npos)
        refuse("more than one ':' in the host; an IPv6 address is written in brackets");
      if (host.empty()) refuse("no host");
      if (host.size() > longest_host) refuse("a host of more than 253 bytes");
      if (!std::all_of(host.begin(), host.end(), is_name_byte))
        refuse("a host of other bytes than letters, digits, '.', '-' and '_'");
      parts_.host = host;
    }
    if (!port.empty()) parse_port(port.substr(1));
  }

  void parse_port(std::string_view digits) {
    const auto number = parse_number(digits);
    if (!number || *number < 1 || *number > 65535) refuse("the port is not a number from 1 to 65535");
    parts_.port = static_cast<std::uint16_t>(*number);
  }

  // A zone is written as RFC 6874 has it: [fe80::1%25eth0].
  void parse_ipv6(std::string_view literal) {
    const auto percent = std::min(literal.find('%'), literal.size());
    const std::string address(literal.substr(0, percent));
    auto zone = literal.substr(percent);
    in6_addr ignored;
    if (::inet_pton(AF_INET6, address.c_str(), &ignored) != 1) refuse("no IPv6 address in the brackets");
    parts_.host = address;
    if (zone.empty()) return;
    if (!zone.starts_with("%25")) refuse("the zone of an IPv6 address is written after %25");
    zone.remove_prefix(3);
    if (zone.empty() || !std::all_of(zone.begin(), zone.end(), is_name_byte)) refuse("no usable zone after %25");
    (parts_.host += '%') += zone;
  }

  void parse_db(std::string_view path) {
    if (path.size() > 1) set("db", std::string(path.substr(1)));
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
      if (std::find(known_keys.begin(), known_keys.end(), key) == known_keys.end()) refuse_key(key);
      const auto text = pair.substr(equals + 1);
      set(key, decoded(text));
      if (key == "user" || key == "password") hide(text);
      if (pair.size() == query.size()) return;
      query.remove_prefix(pair.size() + 1);
    }
  }

  // After a user or password it may be a piece of it, cut off by an '&' that was not encoded: not quoted then.
  [[noreturn]] void refuse_key(std::string_view key) const {
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
    if (parts_.find("password") != nullptr || parts_.find("user") != nullptr || key.size() > 32 ||
        !std::all_of(key.begin(), key.end(), plain))
      refuse("unknown query key");
    refuse("unknown query key '" + std::string(key) + "'");
  }

  std::string_view url_, rest_;
  url_parts parts_;
};

}  // namespace

const std::string* url_parts::find(std::string_view key) const noexcept {
  const auto found = std::find_if(values.begin(), values.end(), [&](const value& v) { return v.key == key; });
  return found == values.end() ? nullptr : &found->text;
}

url_parts parse_url(std::string_view url) { return parser(url).run(); }

std::optional<long long> parse_number(std::string_view digits) noexcept {
  long long number = 0;
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc{}) return std::nullopt;
  return number;
}

}  // namespace holdfast::detail
