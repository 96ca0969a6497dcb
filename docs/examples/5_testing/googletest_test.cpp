// SPDX-License-Identifier: BSL-1.0
// A function that takes a lease, and a job that waits for its turn, tested with GoogleTest and without Redis.
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing/server.hpp>
namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Writes row by row, and stops when the lock is not held any more.
int write_rows(holdfast::lease& lease, int rows) {
  int written = 0;
  while (written < rows && lease.held()) ++written;
  return written;
}

asio::awaitable<void> report(holdfast::client& redis, int& reports) {
  auto mutex = redis.mutex("report");
  auto body = [&](holdfast::lease&) -> asio::awaitable<void> { co_return void(++reports); };
  co_await holdfast::with_lock(mutex, body);
}

struct a_job : testing::Test {
  void TearDown() override { server.check(); }  // no lease is forgotten

  asio::io_context io;
  holdfast::testing::server server{io};
  holdfast::client redis = server.make_client();
};

TEST_F(a_job, writes_nothing_under_a_lost_lease) {
  auto held = server.held_lease("rows");
  EXPECT_EQ(write_rows(held, 3), 3);
  server.run(held.unlock());
  auto lost = server.lost_lease("rows");
  EXPECT_EQ(write_rows(lost, 3), 0);
}

TEST_F(a_job, takes_the_lock_of_a_process_that_died) {
  server.take_over("report", 30s);  // and never gives it back
  int reports = 0;
  asio::co_spawn(io, report(redis, reports), [](std::exception_ptr failed) { ASSERT_FALSE(failed); });
  server.advance(29s);
  EXPECT_EQ(reports, 0);
  server.advance(2s);
  EXPECT_EQ(reports, 1);
}

TEST_F(a_job, is_done_though_the_reply_to_its_lock_is_lost) {
  server.link_of(redis).drop_next_reply();
  int reports = 0;
  server.run(report(redis, reports));
  EXPECT_EQ(reports, 1);
}
