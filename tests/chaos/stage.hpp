// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chaos/history.hpp"
#include "support/child_process.hpp"
#include "support/proxy.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"

namespace holdfast::chaos {

/// The server with the locks, the server with what they guard, and the workers, each behind a proxy of its own. One
/// thread.
class stage {
 public:
  /// Starts everything. Histories go to `folder`.
  stage(std::string worker_program, std::string folder, std::size_t workers, std::uint64_t seed, history& log);

  std::size_t workers() const noexcept { return crew_.size(); }
  test::real_redis& server() noexcept { return server_; }
  const test::real_redis& resource() const noexcept { return resource_; }
  /// A new connection to the server, past all proxies.
  test::raw_client ask_server() const { return test::raw_client(server_); }
  test::proxy& link(std::size_t worker) { return crew_.at(worker)->link; }
  test::child_process& process(std::size_t worker) { return *crew_.at(worker)->process; }

  /// SIGKILL.
  void kill(std::size_t worker);
  /// A killed worker's successor.
  void start(std::size_t worker);

  /// Has the workers finish what they do. Those that do not end in time are killed, and that is written down.
  void finish();
  /// Writes down what is left on the server: at once, and when the locks had time to end by themselves.
  void look_for_residue();

 private:
  struct member {
    explicit member(const test::real_redis& server) : link(server) {}
    test::proxy link;
    std::optional<test::child_process> process;
    int life = 0;
  };

  void note_end(std::size_t worker, int status);

  const std::string worker_program_, folder_;
  const std::uint64_t seed_;
  history& log_;
  test::real_redis server_, resource_;
  std::vector<std::unique_ptr<member>> crew_;
};

}  // namespace holdfast::chaos
