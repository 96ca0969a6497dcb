// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// The first lines of a request, as far as they decide about it.
struct request_head {
  std::string_view method;
  std::string_view target;           // path and query
  std::vector<std::string> hosts{};  // each Host of the request
  std::string_view origin{};         // empty: there is none
  std::string_view content_type{};
  std::string_view token{};  // of X-Holdfast-Token
};

enum class route { page, locks, events, servers, metrics, health, readiness, free };

struct gate_settings {
  std::string address;  // of the listener, as a Host has it: "127.0.0.1", "[::1]"
  std::uint16_t port = 0;
  std::string proxied_host{};  // the Host of requests through a proxy; empty: there is none
  std::string token;           // empty: nothing may be freed
};

struct gate_verdict {
  unsigned status = 200;       // of HTTP; 200: the route answers
  route to = route::page;      // if the status is 200
  std::string_view reason{};   // of a refusal, for the reader of the answer
  std::string_view allowed{};  // the method, if the status is 405
};

/// Pure: the verdict on a request: its route, or a refusal.
///
/// Decision: a page of another site may send requests here, and by DNS rebinding even read the answers. Then Host has
/// that site's name. So Host must be a name of the loopback interface or the address listened at. Origin must be
/// the same, if there is one. A proxy passes its own name on as Host.
class request_gate {
 public:
  explicit request_gate(gate_settings settings);

  gate_verdict judge(const request_head& request) const;

 private:
  bool accepts_host(std::string_view host) const;
  bool accepts_origin(std::string_view origin, std::string_view host) const;
  gate_verdict judge_free(const request_head& request) const;

  const gate_settings settings_;
  std::vector<std::string> hosts_;
};

/// The value of Content-Security-Policy: of the page with this nonce, or of an answer that is no page.
std::string security_policy(std::string_view nonce);

/// Equal texts, compared in a time that tells nothing about the place where they differ.
bool is_same_secret(std::string_view left, std::string_view right) noexcept;

}  // namespace holdfast::cli
