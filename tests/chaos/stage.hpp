// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chaos/campaign.hpp"
#include "chaos/history.hpp"
#include "chaos/rig.hpp"
#include "support/child_process.hpp"
#include "support/proxy.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"

namespace holdfast::chaos {

/// Which clients of a process take turns: "all", or "one" of them.
std::string_view who_takes_turns(std::uint64_t seed) noexcept;

/// The executables of the processes that share the locks.
struct programs {
  std::string worker, peer;
};

/// The servers with the locks, the server with what they guard, and the workers, each behind a proxy of its own to each
/// server; where servers replace each other there are no proxies. Peers ask the server itself. One thread.
class stage {
 public:
  /// Starts everything. Histories go to `folder`.
  stage(campaign c, programs with, std::string folder, std::size_t workers, std::uint64_t seed, history& log);

  std::size_t workers() const noexcept { return crew_.size(); }
  std::size_t servers() const noexcept { return lock_servers(campaign_); }
  /// The servers with the locks, and where they replace each other, the sentinels.
  std::vector<test::real_redis*> everybody();
  /// Where servers replace each other.
  rig& shards() { return *rig_; }
  /// Returns at that instant, unless what takes place meanwhile takes longer.
  void watch_until(std::chrono::steady_clock::time_point);
  test::real_redis& server(std::size_t which) { return *servers_.at(which); }
  const test::real_redis& resource() const noexcept { return resource_; }
  /// A new connection to a server, past all proxies.
  test::raw_client ask(std::size_t server) const { return test::raw_client(*servers_.at(server)); }
  test::proxy& link(std::size_t worker, std::size_t server) { return *crew_.at(worker)->links.at(server); }
  test::child_process& process(std::size_t worker) { return *crew_.at(worker)->process; }

  /// Keeps a copy of what a server has.
  void keep_data(std::size_t server);
  /// Kills the server; what it comes back with is that copy.
  void restart_with_kept_data(std::size_t server);

  /// SIGKILL.
  void kill(std::size_t worker);
  /// A killed worker's successor.
  void start(std::size_t worker);

  /// Has workers and peers finish what they do. Those that do not end in time are killed, and that is written down.
  void finish();
  /// What the servers have logged, to files of their own.
  void keep_logs();
  /// Writes down what is left on the servers: at once, and when the locks had time to end by themselves.
  void look_for_residue();

 private:
  struct member {
    std::vector<std::unique_ptr<test::proxy>> links;  // one to each server
    std::optional<test::child_process> process;
    int life = 0;
  };

  void found_red_lock();
  std::vector<test::real_redis*> primaries();
  void look_for_keys();
  void start_peer(std::size_t number);
  void note_end(std::size_t worker, int status);

  const campaign campaign_;
  const programs programs_;
  const std::string folder_;
  const std::uint64_t seed_;
  history& log_;
  std::vector<std::unique_ptr<test::real_redis>> servers_;
  std::unique_ptr<rig> rig_;
  test::real_redis resource_;
  std::vector<std::unique_ptr<member>> crew_;
  std::vector<test::child_process> peers_;
};

}  // namespace holdfast::chaos
