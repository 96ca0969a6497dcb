// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <memory>

#include <holdfast/client.hpp>
#include <holdfast/export.hpp>

#include "api/core.hpp"
#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "base/timers.hpp"
#include "config/settings.hpp"
#include "redis/transport.hpp"

namespace holdfast::detail {

/// The dependencies of one client. They belong to the client's context and are used on the client's strand.
class client_environment {
 public:
  virtual ~client_environment() = default;
  virtual timers& alarms() noexcept = 0;
  virtual redis::transport& network() noexcept = 0;
  virtual random_source& random() noexcept = 0;
  /// The connections are closed before. Nothing of it runs any more, and nothing of its context is touched. Idempotent.
  virtual void close() = 0;
};

/// Makes the dependencies of clients: the real ones, or those of a test.
struct environment_factory {
  std::shared_ptr<const clock> time;  // outlives every lease
  /// `on_wake`: called on the strand each time that a timer is due, before its action.
  std::function<std::unique_ptr<client_environment>(const direct_strand& strand, timer_queue::action on_wake)> make;
};

HOLDFAST_EXPORT client make_client(const asio::any_io_executor& executor, settings settings,
                                   const environment_factory& world);

}  // namespace holdfast::detail
