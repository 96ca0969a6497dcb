// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>

namespace holdfast {

/// A mutex that serves its callers in the order of their arrival, over all processes: Redisson's RFairLock. For a fair
/// share between processes take mutex: its turns give that, and cost no command.
///
/// Waiting: each of the first 16 waiters of a client has a place in one queue in Redis. A waiter behind them gets its
/// place when one of theirs is free, and arrives then. The order is that of the arrivals in Redis. try_lock() stands
/// nowhere, and gets the lock if nobody waits. A wait that is cancelled, or ends by its deadline, gives its place up.
///
/// A waiter of a process that has died is skipped at once. A process that is paused when its turn has come costs the
/// others 300 to 400 ms, once, and no more than config::poll_cap. It costs up to 0.9 s if the client that released the
/// lock does not wait for it. The paused waiters then stand at the end. So does a client whose round trip takes longer.
///
/// Order is lost, and exclusion is not, if the server loses the queue, or a failover has not copied it. A waiter whose
/// connection has ended may lose its place as well: each, if the server was restarted.
///
/// Beside Redisson's RFairLock there is one queue for both. A waiter of Redisson that has died costs the others 5 s
/// from its turn, or until its deadline. A mutex and a fair_mutex of one name exclude each other, but a mutex stands in
/// no queue. Do not mix them.
///
/// An acquisition costs up to three commands, and less where waiters of one client follow each other. The hold passes
/// from waiter to waiter by the release alone. A client that waits sends one command more every 500 ms, for all of its
/// places at a lock. config::turns has no effect.
///
/// Part of a multi_lock it is a group of its own, and is taken as by its lock(). any_of() throws invalid_config.
/// The ACL user also needs what `holdfast acl --fair` prints; connect() does not check it. Everything else is as for
/// mutex. Source: Redisson's RFairLock.
class HOLDFAST_EXPORT fair_mutex : public mutex {
 public:
  /// How many waiters stand in the queue, those of all processes; a snapshot. Waiters of a client behind its first 16
  /// are not counted. Throws as mutex::is_locked(), and corrupt_lock if the queue is no list.
  asio::awaitable<unsigned> waiters() const;

 private:
  friend detail::access;
  fair_mutex(std::weak_ptr<detail::core>, std::shared_ptr<const detail::lock_keys>, std::optional<holdfast::owner>);
};

}  // namespace holdfast
