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

/// The state of a client that any thread may read. It lives as long as the client has leases.
struct client_state final : boost::intrusive_ref_counter<client_state> {
  client_state(const clock& clock, block_pool_ptr memory, std::shared_ptr<const uuid> client = nullptr)
      : time(clock), blocks(std::move(memory)), id(std::move(client)) {}

  const clock& time;
  const block_pool_ptr blocks;
  const std::shared_ptr<const uuid> id;  // its owner fields refer to it
  std::atomic<bool> closed{false};       // any thread may set it, and that ends all holds of the client
  const fork_guard here{};

  /// The client is closed, or this is a child process: the locks of a client belong to the parent after fork().
  bool over() const noexcept { return closed.load(std::memory_order_acquire) || here.elsewhere(); }
};

using client_state_ptr = boost::intrusive_ptr<client_state>;

/// The instant until which a claim is exclusive. The client's strand moves it, and any thread may read it. Loss is
/// sticky: once a thread has seen it over, nothing extends it.
class validity {
 public:
  explicit validity(boost::intrusive_ptr<const client_state> of) noexcept;

  // Any thread.
  /// 0 if the validity is over, or the client is closed.
  lease_clock::duration left() const noexcept;
  time_point until() const noexcept;
  const clock& time() const noexcept { return client_->time; }
  const client_state& client() const noexcept { return *client_; }

  // The client's strand.
  /// Never shortens. False: a thread has seen the validity over, and it stays over.
  bool extend(time_point until) noexcept;
  /// Never extends. The validity ends no later than `until`.
  void limit(time_point until) noexcept;

 private:
  const boost::intrusive_ptr<const client_state> client_;
  mutable std::atomic<time_point::rep> until_{0};  // negative once a thread has seen it over
};

}  // namespace holdfast::detail
