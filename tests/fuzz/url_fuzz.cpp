// SPDX-License-Identifier: BSL-1.0
// Any text as a URL: refused with a cause, or read, printed and read again the same; and no text depends on the
// password.
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <holdfast/error.hpp>

#include "config/settings.hpp"
#include "config/url.hpp"
#include "fuzz/input.hpp"
#include "redis/failure.hpp"

using namespace holdfast;
using fuzz::require;

namespace {

/// Letters of which the first is no hexadecimal digit: both are read alike after whatever stands before them.
constexpr std::string_view password = "Zanzibar", another = "Kalimera";

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return std::move(out).str();
}

void reads_its_own_print(const redis::endpoint& node) {
  const auto again = detail::parse_url(node.to_string());
  const auto& at = node.at;
  require(again.unix_path == at.unix_path, "a path is read as it was printed");
  if (at.unix_path.empty())
    require(again.hosts == std::vector<detail::host_port>{{at.host, at.port}}, "a server is read as it was printed");
  require(again.use_tls == node.use_tls, "a scheme is read as it was printed");
}

/// A sentinel's password is its own; whoever gives none gives it no other.
void keeps_from_sentinels(const config& c, const detail::settings& s) {
  if (s.kind != detail::deployment::sentinel || !c.sentinel.password.empty()) return;
  if (c.url.find("sentinel_password=") != std::string::npos) return;
  for (const auto& sentinel : s.servers)
    require(sentinel.login.user.empty() && sentinel.login.password.empty(), "a sentinel is told no server's password");
}

/// Everything that a person may see of such a config.
std::string seen(const config& c) {
  auto all = redacted(c.url) + '\n' + printed(c) + '\n';
  try {
    const auto s = detail::resolve(c);
    keeps_from_sentinels(c, s);
    require(!s.servers.empty() && s.servers.size() <= 32, "a client has 1 to 32 servers to begin with");
    all += printed(s.values) + s.primary_name;
    for (const auto& node : s.servers) {
      reads_its_own_print(node);
      all += node.to_string() + redis::quoted(node, "ERR you sent " + node.login.password + ", did you not?");
    }
    all += redis::quoted(s.discovered, "ERR you sent " + s.discovered.login.password + ", did you not?");
  } catch (const error& refused) {
    require(refused.code() == errc::invalid_config || refused.code() == errc::invalid_ttl, "bad input has its codes");
    require(std::string_view(refused.what()).size() < 300, "a refusal is short");
    all += refused.what();
  }
  return all;
}

template <class Make>
void hides_the_password(Make make) {
  require(seen(make(password)) == seen(make(another)), "no text depends on the password");
}

config with_url(std::string url) {
  config c;
  c.url = std::move(url);
  return c;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input bytes(data, size);
  const std::string url(bytes.line()), before(bytes.line()), after(bytes.line());
  const auto secret = [&](std::string_view word) { return before + std::string(word) + after; };

  hides_the_password([&](std::string_view word) {
    auto c = with_url(url);
    c.password = word;
    return c;
  });
  hides_the_password([&](std::string_view word) {
    auto c = with_url(url);
    c.sentinel.password = word;
    return c;
  });
  const auto scheme = url.substr(0, url.find("://"));
  const auto server = url.substr(std::min(scheme.size() + 3, url.size()));
  hides_the_password([&](std::string_view word) { return with_url(scheme + "://u:" + secret(word) + '@' + server); });
  // An '&' before it would end the password: nobody could tell.
  if (before.find('&') == std::string::npos)
    for (const std::string key : {"?password=", "?sentinel_password="})
      hides_the_password(
          [&](std::string_view word) { return with_url(url.substr(0, url.find('?')) + key + secret(word)); });
  return 0;
}
