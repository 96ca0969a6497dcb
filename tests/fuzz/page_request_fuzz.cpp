// SPDX-License-Identifier: BSL-1.0
// Any request to the page: it is answered only for a Host and an Origin of this machine, and a lock is freed with the
// token alone.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "cli/web/request_gate.hpp"
#include "fuzz/input.hpp"

using namespace holdfast::cli;
using holdfast::fuzz::require;

namespace {

constexpr std::string_view hosts[] = {"127.0.0.1:8787", "localhost:8787", "[::1]:8787"}, proxied = "locks.example";

bool is_same_but_for_case(std::string_view left, std::string_view right) {
  const auto lower = [](char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte; };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](char one, char other) { return lower(one) == lower(other); });
}

void judge(const gate_settings& settings, const request_head& request) {
  const auto verdict = request_gate(settings).judge(request);
  require(verdict.status >= 200 && verdict.status < 500, "a status is one of HTTP");
  require((verdict.status == 200) == verdict.reason.empty(), "a refusal has its reason");
  if (verdict.status != 200) return;
  require(request.hosts.size() == 1, "a request has one Host");
  const auto& host = request.hosts.front();
  const bool is_proxied = !settings.proxied_host.empty() && is_same_but_for_case(proxied, host);
  require(is_proxied || std::any_of(std::begin(hosts), std::end(hosts),
                                    [&](std::string_view known) { return is_same_but_for_case(known, host); }),
          "the Host is this machine, or the proxy");
  const auto scheme = std::string_view(request.origin).find("://");
  require(request.origin.empty() ||
              (scheme != request.origin.npos && is_same_but_for_case(request.origin.substr(scheme + 3), host)),
          "the Origin is the Host");
  if (verdict.to == route::free)
    require(request.method == "POST" && !settings.token.empty() && request.token == settings.token,
            "a lock is freed with the token");
  else
    require(request.method == "GET", "everything else is read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  holdfast::fuzz::input bytes(data, size);
  request_head request{.method = bytes.line(), .target = bytes.line()};
  request.origin = bytes.line();
  request.token = bytes.line();
  const std::string token(bytes.line());
  request.content_type = "application/json";
  for (auto host = bytes.line(); !host.empty(); host = bytes.line()) request.hosts.emplace_back(host);
  for (const auto proxy : {std::string_view(), proxied})
    judge({.address = "127.0.0.1", .port = 8787, .proxied_host = std::string(proxy), .token = token}, request);
  return 0;
}
