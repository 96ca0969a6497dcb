// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/strand.hpp>

#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "base/timers.hpp"

namespace holdfast::redis {

namespace asio = boost::asio;
using strand = asio::strand<asio::any_io_executor>;

/// What this layer is given and never fetches. All of it is used on the strand only, and not any more after close().
struct services {
  redis::strand strand;
  const detail::clock& time;
  detail::timers& alarms;
  detail::random_source& random;

  detail::time_point now() const noexcept { return time.now(); }
};

}  // namespace holdfast::redis
