// SPDX-License-Identifier: BSL-1.0
// The kernel keeps an idle TCP connection from being forgotten, and ends one that is dead: keepalive, TCP_USER_TIMEOUT.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "integration/world.hpp"
#include "support/proxy.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// Sockets of this process that are connected to this loopback port.
std::vector<int> connected_to(std::uint16_t port) {
  rlimit most{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &most) == 0);
  std::vector<int> found;
  for (int fd = 0; fd < static_cast<int>(std::min<rlim_t>(most.rlim_cur, 4096)); ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || peer.sin_family != AF_INET) continue;
    if (ntohs(peer.sin_port) == port) found.push_back(fd);
  }
  return found;
}

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  REQUIRE(::getsockopt(fd, level, name, &value, &size) == 0);
  return value;
}

}  // namespace

TEST_CASE("a TCP connection is kept alive by the kernel after each health check interval, and ended when it is dead") {
  struct row {
    std::chrono::milliseconds interval;
    int idle, between, user_timeout;
  };
  const auto r = GENERATE(row{10s, 10, 3, 19'000}, row{1min, 60, 20, 120'000}, row{1500ms, 2, 1, 5'000},
                          row{100ms, 1, 1, 4'000}, row{0ms, 0, 0, 0});
  CAPTURE(r.interval.count());
  world w;
  proxy server(w.server, {.tcp = true});
  auto redis = w.make([&](config& c) { c.url = server.url(), c.health_check_interval = r.interval; });
  w.run(redis.connect());
  const auto sockets = connected_to(server.port());
  CHECK(sockets.size() == 2);  // for commands, for messages
  for (const int fd : sockets) {
    CHECK(option(fd, IPPROTO_TCP, TCP_NODELAY) == 1);
    CHECK(option(fd, SOL_SOCKET, SO_KEEPALIVE) == 1);
    CHECK(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == r.user_timeout);
    if (r.interval == 0ms) continue;  // the system's times
    CHECK(option(fd, IPPROTO_TCP, TCP_KEEPIDLE) == r.idle);
    CHECK(option(fd, IPPROTO_TCP, TCP_KEEPINTVL) == r.between);
    CHECK(option(fd, IPPROTO_TCP, TCP_KEEPCNT) == 3);
  }
}
