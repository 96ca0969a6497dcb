// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing/server.hpp>
#include <iostream>

// 0: a lock was taken and lost in a server of the test kit.
int main() {
  boost::asio::io_context io;
  holdfast::testing::server server(io);
  auto redis = server.make_client();
  auto lease = server.run(redis.mutex("orders:42").lock());
  const bool held = lease.held();
  server.take_over("orders:42");
  server.advance(std::chrono::seconds(10));
  const bool lost = lease.state() == holdfast::lease_state::lost;
  std::cout << "held: " << held << ", then lost: " << lost << '\n';
  return held && lost ? 0 : 1;
}
