// SPDX-License-Identifier: BSL-1.0
#include "support/server_version.hpp"

#include <limits>
#include <string_view>

#include "support/raw_client.hpp"
#include "support/real_redis.hpp"
#include "support/skip.hpp"

namespace holdfast::test {
namespace {

const std::string& redis_version() {
  static const std::string version = [] {
    const real_redis server;
    const std::string info = raw_client(server)("INFO", "server").to_string();
    constexpr std::string_view field = "redis_version:";
    const auto begin = info.find(field) + field.size();
    return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
  }();
  return version;
}

}  // namespace

void need_redis(int least_major, const std::string& feature) {
  if (std::stoi(redis_version()) < least_major)
    skip("a server before Redis " + std::to_string(least_major) + ": " + feature);
}

void need_redis_7(const std::string& feature) { need_redis(7, feature); }

bool server_pushes_own_writes() {
  const auto& version = redis_version();
  const auto patch = [&](std::string_view of) {
    return version.starts_with(of) ? std::stoi(version.substr(of.size())) : std::numeric_limits<int>::max();
  };
  return version.starts_with("6.0.") || patch("6.2.") < 8 || patch("7.0.") < 5;
}

void need_pushes() {
  need_redis(6, "CLIENT TRACKING");
  if (server_pushes_own_writes()) skip("a server that pushes a client's own writes");
}

}  // namespace holdfast::test
