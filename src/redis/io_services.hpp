// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <memory>
#include <utility>

#include <holdfast/observer.hpp>

#include "base/direct_executor.hpp"
#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "base/timers.hpp"

namespace holdfast::redis {

namespace asio = boost::asio;
class transport;
using strand = asio::strand<asio::any_io_executor>;

/// The dependencies of this room, passed in. All of them are used on the strand only, and no longer after close().
struct io_services {
  detail::direct_strand strand;
  const detail::clock& time;
  detail::timers& alarms;
  detail::random_source& random;
  transport& network;
  std::shared_ptr<observer> counts{};  // gets measurements of connections and commands; null: none

  detail::time_point now() const noexcept { return time.now(); }

  /// Runs it on the strand, later, and in a handler of its own.
  ///
  /// Decision: a post goes by the executor below the strand, and enters the strand when it runs. Asio's strand runs all
  /// waiting handlers in one handler of the executor, and each post to it keeps it closed until then. A hundred
  /// thousand callers that could have entered one by one became one handler of a second.
  template <class Run>
  void post(Run run) const {
    asio::post(strand.any().get_inner_executor(),
               [on = strand.any(), run = std::move(run)]() mutable { asio::dispatch(on, std::move(run)); });
  }
};

}  // namespace holdfast::redis
