// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include "support/real_redis.hpp"

namespace holdfast::test {

/// A primary with two replicas, and three sentinels that watch it, all on ports of 127.0.0.1. Two sentinels must agree.
/// Quick ones do after half a second of silence: a failover takes 2 s, a planned one 1 s. A busy machine may be as
/// silent. One thread at a time.
class real_sentinel {
 public:
  static constexpr auto name = "mymaster";  ///< what the sentinels call the primary
  static constexpr std::size_t servers = 3, sentinels = 3;
  /// The silence after which a sentinel takes a server for down. With `calm` a failover is planned, or follows
  /// be_quick().
  static constexpr std::chrono::milliseconds quick{500}, calm{600'000};

  /// Returns when the replicas have what the primary has, and each sentinel knows all servers and sentinels. Throws
  /// std::runtime_error with the logs when they do not.
  explicit real_sentinel(std::chrono::milliseconds down_after = quick);
  real_sentinel(const real_sentinel&) = delete;
  real_sentinel& operator=(const real_sentinel&) = delete;

  /// For holdfast::config::url, with all sentinels.
  std::string url() const;
  real_redis& server(std::size_t n) { return servers_.at(n); }
  real_redis& sentinel(std::size_t n) { return sentinels_.at(n); }
  /// The number of the server that was the primary when a call of this object returned last.
  std::size_t primary_number() const noexcept { return primary_; }
  real_redis& primary() { return servers_[primary_]; }
  /// The numbers of the others.
  std::size_t replica_number(std::size_t n) const noexcept { return (primary_ + 1 + n) % servers; }
  real_redis& replica(std::size_t n) { return servers_[replica_number(n)]; }

  /// Returns when so many replicas have all that the primary has executed.
  void replicate(unsigned replicas = servers - 1);
  /// The number of the server that this sentinel announces now.
  std::size_t announced_by(std::size_t sentinel);
  /// Whether all living sentinels announce one server, and another than that which was the primary.
  bool announced();
  /// Returns when they do.
  void wait_for_failover();
  /// The sentinels are quick from now on, until mend().
  void be_quick() { set_down_after(quick); }
  /// Kills the primary. Returns as wait_for_failover() does.
  void lose_primary();
  /// What an operator does: SENTINEL FAILOVER. Returns as wait_for_failover() does.
  void fail_over();
  /// Only asks for it: the old primary goes on, and so does the test.
  void begin_fail_over();

  /// As it was, except which server is the primary: all live, two are its replicas and have what it has, all sentinels
  /// agree. Calls `meanwhile` again and again.
  void mend(const std::function<void()>& meanwhile = {});
  /// The same, and without data.
  void reset();

 private:
  void introduce_sentinels();
  void set_down_after(std::chrono::milliseconds silence);
  bool agreed(std::size_t server);
  bool whole();
  void repair();

  const std::chrono::milliseconds down_after_;
  std::deque<real_redis> servers_, sentinels_;
  std::size_t primary_ = 0;
};

}  // namespace holdfast::test
