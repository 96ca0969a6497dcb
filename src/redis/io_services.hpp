// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <memory>
#include <utility>

#include <holdfast/observer.hpp>

#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "base/timers.hpp"

namespace holdfast::redis {

namespace asio = boost::asio;
class transport;
using strand = asio::strand<asio::any_io_executor>;

/// What this layer is given and never fetches. All of it is used on the strand only, and not any more after close().
struct io_services {
  redis::strand strand;
  const detail::clock& time;
  detail::timers& alarms;
  detail::random_source& random;
  transport& network;
  std::shared_ptr<observer> counts{};  // is told of connections and of commands; null: nobody is

  detail::time_point now() const noexcept { return time.now(); }

  /// Runs it on the strand, later, and in a handler of its own. By way of the executor below: a strand runs all that
  /// waits for it in one go, and what is posted to it makes a hundred thousand callers wait for it who could have
  /// entered one by one.
  template <class Run>
  void post(Run run) const {
    asio::post(strand.get_inner_executor(),
               [on = strand, run = std::move(run)]() mutable { asio::dispatch(on, std::move(run)); });
  }
};

}  // namespace holdfast::redis
