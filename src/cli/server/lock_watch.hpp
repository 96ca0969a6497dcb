// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/server/lock_facts.hpp"
#include "cli/server/lock_reader.hpp"
#include "cli/server/session.hpp"
#include "config/settings.hpp"

namespace holdfast::cli {

/// A change of one lock, or of the connection to its server.
struct lock_event {
  /// "held", "acquired", "waiters", "proclaimed", "released", "ended", "unreachable" or "connected"
  std::string_view happened;
  std::string_view name{};
  const lock_facts* lock = nullptr;  // null: not known
  const hold_facts* hold = nullptr;  // null: the event is not about one hold
  std::string_view text{};           // the failure of the connection
};

using lock_map = std::map<std::string, lock_facts>;

/// A message: a hold has ended; something may have changed; or somebody leads a term, perhaps with a new value.
struct notice {
  enum class meaning { release, change, leader } means = meaning::release;
  std::uint64_t term = 0;  // of the leader
};
using notice_map = std::map<std::string, notice>;

/// The owner of a lock_watch: it gets changes, and says how often Redis may be read.
class lock_watcher {
 public:
  virtual void on_event(const lock_event& event) = 0;
  /// All locks, after each poll.
  virtual void on_poll(const lock_map&) {}
  /// One lock, after its message was read; null: it is free.
  virtual void on_lock(const std::string&, const lock_facts*) {}
  /// Time that servers needed to answer, beyond a round trip: at least the work of Redis.
  virtual void on_work(std::chrono::microseconds) {}
  /// Time until the next poll.
  virtual milliseconds pause() = 0;
  /// False: a message waits for the next poll.
  virtual bool may_read() { return true; }
  virtual bool is_over() { return false; }

 protected:
  ~lock_watcher() = default;
};

/// The changes of locks whose names match a pattern.
///
/// Decision: messages and polls, and nothing is written. A poll tells the holder; a message says that the holder
/// released the lock: it is time to look. A lock that ends without a message has expired or was deleted. A hold that
/// begins and ends between two polls is seen by its message alone. A permit's hold is not seen then, if other permits
/// are out.
///
/// Decision: a message about a shared mutex tells only that it is time to look. A writer that gives up its wait sends
/// one while another writes, and one release may send two. So a hold ends when it is missing, and a hold of a shared
/// mutex that begins and ends between two looks is not seen. The same holds for an election, whose terms tell one hold
/// from the next. A message of a new term shows that the lead before has ended without one.
///
/// Decision: patterns (PSUBSCRIBE), because a subscription to each channel would count as a waiter. Sharded channels
/// have no patterns, so a cluster is polled alone. Publishers count this program as a client that received a release.
/// An ACL allows a pattern only if it has the same text: where that of the watched names is refused, those of
/// `holdfast acl` follow.
class lock_watch {
 public:
  lock_watch(std::string pattern, const detail::settings& settings, network& over, lock_watcher& watcher);

  /// Until lock_watcher::is_over(). Outages after the first poll are waited for.
  /// Throws holdfast::error of the first poll.
  asio::awaitable<void> run();

 private:
  asio::awaitable<void> connect();
  asio::awaitable<bool> subscribe(std::string pattern);
  asio::awaitable<void> poll();
  asio::awaitable<notice_map> notices(const notice_map& unread);
  void keep(notice_map& in, const std::string& name, const notice& received) const;
  asio::awaitable<void> listen();
  asio::awaitable<void> on_message(std::string name, notice received);
  asio::awaitable<void> look_at(std::string name, notice received);
  std::optional<std::string> name_in(const redis::reply& message) const;
  bool is_watched(const std::string& name) const;
  void report_message(const std::string& name, notice received, const lock_facts* before, const lock_facts* now);
  void report_polled(const lock_map& now, const notice_map& received, const notice_map& unread);
  void compare(const lock_facts* before, const lock_facts* now);
  void report_ends(std::string_view happened, const lock_facts* before, const lock_facts* now);
  void report_begins(const lock_facts* before, const lock_facts* now);
  void report_work();

  const std::string pattern_;
  const detail::settings& settings_;
  network& over_;
  lock_watcher& watcher_;
  const bool one_name_;
  std::unique_ptr<lock_reader> reader_;
  std::unique_ptr<session> listener_;  // null: polls alone
  lock_map known_;
  notice_map unread_;                      // of known locks that may not be read yet; the first one of each
  std::set<std::string> ended_elections_;  // since the last poll: the end of a lead sends two messages
  bool first_ = true;
};

}  // namespace holdfast::cli
