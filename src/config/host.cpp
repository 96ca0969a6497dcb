// SPDX-License-Identifier: BSL-1.0
#include "config/host.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include <holdfast/error.hpp>

#include "base/host_name.hpp"
#include "config/numbers.hpp"

namespace holdfast::detail {
namespace {

constexpr bool is_name_byte(char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '.' || byte == '-' ||
         byte == '_';
}

class host_parser {
 public:
  host_parser(std::uint16_t usual_port, const std::string& field) : field_(field) { parsed_.port = usual_port; }

  host_port run(std::string_view text) {
    std::string_view port;
    if (text.starts_with('[')) {
      const auto end = text.find(']');
      if (end == text.npos) refuse("'[' without ']'");
      parse_ipv6(text.substr(1, end - 1));
      port = text.substr(end + 1);
      if (!port.empty() && port[0] != ':') refuse("only a port may follow ']'");
    } else {
      const auto host = text.substr(0, text.find(':'));
      port = text.substr(host.size());
      if (port.find(':', 1) != port.npos)
        refuse("more than one ':' in the host; an IPv6 address is written in brackets");
      if (host.empty()) refuse("no host");
      if (host.size() > longest_host) refuse("a host of more than 253 bytes");
      if (!std::all_of(host.begin(), host.end(), is_name_byte))
        refuse("a host of other bytes than letters, digits, '.', '-' and '_'");
      parsed_.host = host;
    }
    if (!port.empty()) parse_port(port.substr(1));
    return std::move(parsed_);
  }

 private:
  [[noreturn]] void refuse(const char* why) const { throw error(errc::invalid_config, field_ + ": " + why); }

  void parse_port(std::string_view digits) {
    const auto number = parse_number(digits);
    if (!number || *number < 1 || *number > 65535) refuse("the port is not a number from 1 to 65535");
    parsed_.port = static_cast<std::uint16_t>(*number);
  }

  // A zone is written as RFC 6874 has it: [fe80::1%25eth0].
  void parse_ipv6(std::string_view literal) {
    const auto percent = std::min(literal.find('%'), literal.size());
    const std::string address(literal.substr(0, percent));
    auto zone = literal.substr(percent);
    in6_addr ignored;
    if (::inet_pton(AF_INET6, address.c_str(), &ignored) != 1) refuse("no IPv6 address in the brackets");
    parsed_.host = address;
    if (zone.empty()) return;
    if (!zone.starts_with("%25")) refuse("the zone of an IPv6 address is written after %25");
    zone.remove_prefix(3);
    if (zone.empty() || !std::all_of(zone.begin(), zone.end(), is_name_byte)) refuse("no usable zone after %25");
    (parsed_.host += '%') += zone;
  }

  const std::string& field_;
  host_port parsed_;
};

}  // namespace

host_port parse_host(std::string_view text, std::uint16_t usual_port, const std::string& field) {
  return host_parser(usual_port, field).run(text);
}

}  // namespace holdfast::detail
