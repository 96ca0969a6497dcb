// SPDX-License-Identifier: BSL-1.0
#include "cli/web/request_gate.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr struct {
  std::string_view path;
  route to;
  std::string_view method;
} routes[] = {{"/", route::page, "GET"},
              {"/api/locks", route::locks, "GET"},
              {"/api/events", route::events, "GET"},
              {"/api/servers", route::servers, "GET"},
              {"/metrics", route::metrics, "GET"},
              {"/healthz", route::health, "GET"},
              {"/readyz", route::readiness, "GET"},
              {"/api/free", route::free, "POST"}};

constexpr std::uint16_t http_port = 80;

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& byte : out)
    if (byte >= 'A' && byte <= 'Z') byte += 'a' - 'A';
  return out;
}

}  // namespace

request_gate::request_gate(gate_settings settings) : settings_(std::move(settings)) {
  const auto suffix = ':' + std::to_string(settings_.port);
  for (const auto& name : {std::string("127.0.0.1"), std::string("localhost"), std::string("[::1]"), settings_.address})
    hosts_.push_back(name + suffix);
  const std::size_t with_port = hosts_.size();
  for (std::size_t i = 0; settings_.port == http_port && i < with_port; ++i)  // browsers leave it out
    hosts_.push_back(hosts_[i].substr(0, hosts_[i].size() - suffix.size()));
  if (!settings_.proxied_host.empty()) hosts_.push_back(lower_case(settings_.proxied_host));
}

gate_verdict request_gate::judge(const request_head& request) const {
  if (request.hosts.size() != 1) return {.status = 400, .reason = "a request has one Host"};
  const auto& host = request.hosts.front();
  if (!accepts_host(host)) return {.status = 403, .reason = "this Host is not the address of the page"};
  if (!request.origin.empty() && !accepts_origin(request.origin, host))
    return {.status = 403, .reason = "pages of other sites are refused"};
  const auto path = request.target.substr(0, request.target.find('?'));
  const auto found = std::ranges::find(routes, path, [](const auto& known) { return known.path; });
  if (found == std::end(routes)) return {.status = 404, .reason = "there is no such page"};
  if (request.method != found->method)
    return {.status = 405, .reason = "this method is not allowed here", .allowed = found->method};
  if (found->to == route::free) return judge_free(request);
  return {.to = found->to};
}

gate_verdict request_gate::judge_free(const request_head& request) const {
  if (settings_.token.empty()) return {.status = 403, .reason = "read only: it was started without --allow-free"};
  if (!is_same_secret(request.token, settings_.token))
    return {.status = 403, .reason = "the token is not that of this start: open the address that serve printed"};
  if (request.content_type != "application/json") return {.status = 415, .reason = "the body is application/json"};
  return {.to = route::free};
}

bool request_gate::accepts_host(std::string_view host) const {
  return std::ranges::find(hosts_, lower_case(host)) != hosts_.end();
}

bool request_gate::accepts_origin(std::string_view origin, std::string_view host) const {
  const auto of = [&](std::string_view scheme) {
    return origin.starts_with(scheme) && lower_case(origin.substr(scheme.size())) == lower_case(host);
  };
  return of("http://") || (!settings_.proxied_host.empty() && of("https://"));
}

std::string security_policy(std::string_view nonce) {
  std::string policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  if (nonce.empty()) return policy;
  policy += "; connect-src 'self'; img-src data:; require-trusted-types-for 'script'";
  for (const auto* kind : {"script-src", "style-src"})
    policy.append("; ").append(kind).append(" 'nonce-").append(nonce) += '\'';
  return policy;
}

bool is_same_secret(std::string_view left, std::string_view right) noexcept {
  if (left.size() != right.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < left.size(); ++i) difference |= static_cast<unsigned char>(left[i] ^ right[i]);
  return difference == 0;
}

}  // namespace holdfast::cli
