// SPDX-License-Identifier: BSL-1.0
#include "redis/endpoint.hpp"

#include <utility>

namespace holdfast::redis {
namespace {

std::string percent_encoded(const std::string& path) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char byte : path) {
    if (byte > 0x20 && byte < 0x7f && byte != '%' && byte != '?' && byte != '#' && byte != '@')
      out += static_cast<char>(byte);
    else
      (out += '%').append({digits[byte >> 4], digits[byte & 0xf]});
  }
  return out;
}

// IPv6 with its zone as a URL has it.
std::string bracketed(const std::string& host) {
  if (host.find(':') == std::string::npos) return host;
  const auto zone = host.find('%');
  if (zone == std::string::npos) return "[" + host + "]";
  return "[" + host.substr(0, zone) + "%25" + host.substr(zone + 1) + "]";
}

}  // namespace

endpoint endpoint::with(address elsewhere) const {
  auto other = *this;
  other.at = std::move(elsewhere);
  return other;
}

std::string endpoint::to_string() const {
  if (!at.unix_path.empty()) return "redis+unix://" + percent_encoded(at.unix_path);
  const auto host = (use_tls ? "rediss://" : "redis://") + bracketed(at.host);
  return at.port == 0 ? host : host + ':' + std::to_string(at.port);
}

}  // namespace holdfast::redis
