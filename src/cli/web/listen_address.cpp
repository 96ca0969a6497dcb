// SPDX-License-Identifier: BSL-1.0
#include "cli/web/listen_address.hpp"

#include <limits>

#include "cli/access.hpp"
#include "cli/output.hpp"
#include "config/numbers.hpp"

namespace holdfast::cli {
namespace {

namespace ip = boost::asio::ip;

constexpr const char* form_text = "--listen is an address and a port, as 127.0.0.1:8787 or [::1]:8787";

}  // namespace

listen_address read_listen_address(const std::string& text, bool is_behind_proxy) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) throw usage_error(form_text);
  auto host = text.substr(0, colon);
  const auto port = detail::parse_number(text.substr(colon + 1));
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  boost::system::error_code failed;
  const auto address = ip::make_address(host, failed);
  if (failed || address.is_v6() != has_brackets || !port || *port > std::numeric_limits<std::uint16_t>::max())
    throw usage_error(form_text);
  if (!address.is_loopback() && !is_behind_proxy)
    throw usage_error("--listen " + shown(text) +
                      ": the page has no users and no TLS, and other machines would reach it. Listen at 127.0.0.1, or "
                      "put a proxy with both in front of it and give its name with --behind-proxy");
  return {address, static_cast<std::uint16_t>(*port)};
}

std::string host_text(const ip::address& address) {
  return address.is_v6() ? '[' + address.to_string() + ']' : address.to_string();
}

void open(ip::tcp::acceptor& acceptor, const listen_address& at) {
  const ip::tcp::endpoint endpoint(at.address, at.port);
  acceptor.open(endpoint.protocol());
  acceptor.set_option(boost::asio::socket_base::reuse_address(true));
  acceptor.bind(endpoint);
  acceptor.listen();
}

}  // namespace holdfast::cli
