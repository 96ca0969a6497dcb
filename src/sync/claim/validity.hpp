// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <memory>
#include <utility>

#include "base/block_pool.hpp"
#include "base/fork_guard.hpp"
#include "base/lease_clock.hpp"
#include "protocol/owner_field.hpp"

namespace holdfast::detail {

/// What any thread has to know of a client, as long as there are leases of it.
struct client_state final : boost::intrusive_ref_counter<client_state> {
  client_state(const clock& clock, block_pool_ptr memory, std::shared_ptr<const uuid> client = nullptr)
      : time(clock), blocks(std::move(memory)), id(std::move(client)) {}

  const clock& time;
  const block_pool_ptr blocks;
  const std::shared_ptr<const uuid> id;  // which its owner fields refer to
  std::atomic<bool> closed{false};       // setting it ends all that the client holds, from any thread
  const fork_guard here{};

  /// Also in a child process: what was copied by fork() is the parent's.
  bool over() const noexcept { return closed.load(std::memory_order_acquire) || here.elsewhere(); }
};

using client_state_ptr = boost::intrusive_ptr<client_state>;

/// Until when something in Redis is ours alone: one instant, which the client's strand moves and any thread may read.
/// Loss is sticky: once anybody has seen it over, nothing extends it.
class validity {
 public:
  explicit validity(boost::intrusive_ptr<const client_state> of) noexcept;

  // Any thread.
  /// 0 once it is over, or its client is.
  lease_clock::duration left() const noexcept;
  time_point until() const noexcept;
  const clock& time() const noexcept { return client_->time; }
  const client_state& client() const noexcept { return *client_; }

  // The client's strand.
  /// Never shortens. False: somebody has seen it over, and over it is.
  bool extend(time_point until) noexcept;
  /// Never extends: it is known to end then at the latest.
  void limit(time_point until) noexcept;

 private:
  const boost::intrusive_ptr<const client_state> client_;
  mutable std::atomic<time_point::rep> until_{0};  // negative once somebody has seen it over
};

}  // namespace holdfast::detail
