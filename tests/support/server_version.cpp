// SPDX-License-Identifier: BSL-1.0
#include "support/server_version.hpp"

#include <string_view>

#include "support/raw_client.hpp"
#include "support/real_redis.hpp"
#include "support/skip.hpp"

namespace holdfast::test {
namespace {

int major_version_of_server() {
  const real_redis server;
  const std::string info = raw_client(server)("INFO", "server").to_string();
  constexpr std::string_view field = "redis_version:";
  return std::stoi(info.substr(info.find(field) + field.size()));
}

}  // namespace

void need_redis(int least_major, const std::string& feature) {
  static const int major = major_version_of_server();
  if (major < least_major) skip("a server before Redis " + std::to_string(least_major) + ": " + feature);
}

void need_redis_7(const std::string& feature) { need_redis(7, feature); }

}  // namespace holdfast::test
