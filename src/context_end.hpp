// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/execution_context.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "sync/core.hpp"

namespace holdfast::detail {

/// Ends the clients of an execution_context with it. A coroutine that waits for a lock may own the client that keeps it waiting: only
/// who stands outside of both can take them apart. Ends their copies in a child process, too: the parent's connections and timers are
/// open there as well, and what the child read from them the parent would miss.
class context_end final : public asio::execution_context::service {
 public:
  using key_type = context_end;
  static asio::execution_context::id id;

  explicit context_end(asio::execution_context& context) : service(context) {}
  /// Any thread. When the context ends, `client` is told by abandon() if it still lives.
  void add(std::weak_ptr<core> client);

 private:
  void shutdown() override;
  void notify_fork(asio::execution_context::fork_event event) override;
  void abandon_all();

  std::mutex guard_;
  std::vector<std::weak_ptr<core>> clients_;
};

}  // namespace holdfast::detail
