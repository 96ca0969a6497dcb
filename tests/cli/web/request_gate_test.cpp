// SPDX-License-Identifier: BSL-1.0
#include "cli/web/request_gate.hpp"

#include <string>

#include "support/catch.hpp"

using namespace holdfast::cli;

namespace {

const gate_settings on_loopback{.address = "127.0.0.1", .port = 8787, .token = "secret"};

request_head request(std::string_view method, std::string_view target) {
  return {.method = method, .target = target, .hosts = {"127.0.0.1:8787"}};
}

unsigned status_for_host(const gate_settings& settings, const std::string& host, std::string_view origin = {}) {
  auto head = request("GET", "/api/locks");
  head.hosts = {host};
  head.origin = origin;
  return request_gate(settings).judge(head).status;
}

unsigned status_of_free(std::string_view token, std::string_view type, const gate_settings& settings = on_loopback) {
  auto head = request("POST", "/api/free");
  head.token = token;
  head.content_type = type;
  return request_gate(settings).judge(head).status;
}

}  // namespace

TEST_CASE("a request is answered if its Host is a loopback name with the port") {
  for (const char* host : {"127.0.0.1:8787", "localhost:8787", "LocalHost:8787", "[::1]:8787"}) {
    INFO(host);
    CHECK(status_for_host(on_loopback, host) == 200);
  }
  for (const char* host : {"", "localhost", "localhost:80", "evil.example:8787", "127.0.0.1:8787.evil.example",
                           "127.0.0.1:8787,localhost:8787", "127.0.0.2:8787", " localhost:8787"}) {
    INFO(host);
    CHECK(status_for_host(on_loopback, host) == 403);
  }
}

TEST_CASE("the address that is listened at is a Host as well") {
  const gate_settings other{.address = "127.0.0.2", .port = 80, .token = {}};
  CHECK(status_for_host(other, "127.0.0.2:80") == 200);
  CHECK(status_for_host(other, "127.0.0.3:80") == 403);
}

TEST_CASE("a request has exactly one Host") {
  auto head = request("GET", "/");
  head.hosts = {};
  CHECK(request_gate(on_loopback).judge(head).status == 400);
  head.hosts = {"localhost:8787", "evil.example"};
  CHECK(request_gate(on_loopback).judge(head).status == 400);
}

TEST_CASE("an Origin is the Host, or the request is refused") {
  CHECK(status_for_host(on_loopback, "localhost:8787", "http://localhost:8787") == 200);
  for (const char* origin : {"http://127.0.0.1:8787", "https://localhost:8787", "http://localhost:8788",
                             "http://evil.example", "null", "localhost:8787", "http://localhost:8787/"}) {
    INFO(origin);
    CHECK(status_for_host(on_loopback, "localhost:8787", origin) == 403);
  }
}

TEST_CASE("at port 80 a Host needs no port") {
  const gate_settings at_80{.address = "127.0.0.1", .port = 80, .token = {}};
  CHECK(status_for_host(at_80, "localhost", "http://localhost") == 200);
  CHECK(status_for_host(at_80, "127.0.0.1:80") == 200);
  CHECK(status_for_host(at_80, "evil.example") == 403);
}

TEST_CASE("a proxy has its own name as Host, and Origin agrees with it") {
  const gate_settings behind{.address = "0.0.0.0", .port = 8787, .proxied_host = "Locks.example", .token = {}};
  CHECK(status_for_host(behind, "locks.example") == 200);
  CHECK(status_for_host(behind, "localhost:8787") == 200);
  CHECK(status_for_host(behind, "evil.example", "https://evil.example") == 403);
  CHECK(status_for_host(behind, "locks.example", "https://locks.example") == 200);
  CHECK(status_for_host(behind, "locks.example", "https://evil.example") == 403);
}

TEST_CASE("a path has one method, and a query does not change it") {
  const request_gate gate(on_loopback);
  CHECK(gate.judge(request("GET", "/")).to == route::page);
  CHECK(gate.judge(request("GET", "/api/events?x=/")).to == route::events);
  CHECK(gate.judge(request("GET", "/index.html")).status == 404);
  CHECK(gate.judge(request("GET", "//")).status == 404);
  CHECK(gate.judge(request("GET", "")).status == 404);
  const auto refused = gate.judge(request("DELETE", "/api/locks"));
  CHECK(refused.status == 405);
  CHECK(refused.allowed == "GET");
  CHECK(gate.judge(request("GET", "/api/free")).allowed == "POST");
}

TEST_CASE("a lock is freed with the token of this start alone") {
  CHECK(status_of_free("secret", "application/json") == 200);
  for (const char* token : {"", "secre", "secret ", "Secret", "secretsecret"}) {
    INFO(token);
    CHECK(status_of_free(token, "application/json") == 403);
  }
  CHECK(status_of_free("secret", "text/plain") == 415);
  CHECK(status_of_free("", "application/json", {.address = "127.0.0.1", .port = 8787, .token = ""}) == 403);
}

TEST_CASE("a page may run its own script and nothing else") {
  const auto policy = security_policy("abc");
  CHECK(policy.find("script-src 'nonce-abc'") != policy.npos);
  CHECK(policy.find("unsafe") == policy.npos);
  CHECK(security_policy("").find("script-src") == std::string::npos);
  CHECK(security_policy("").starts_with("default-src 'none'"));
}
