// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/error.hpp>

#include "base/function.hpp"
#include "base/lease_clock.hpp"
#include "redis/failure.hpp"
#include "redis/resp.hpp"

namespace holdfast::redis {

struct votes;

/// What became of a command.
struct outcome {
  /// none: `reply` is the server's answer (an error reply included); unreachable, auth_failed, tls_failed, not_primary,
  /// no_permission, overloaded, closed: it was never written; unconfirmed: it was written, and the answer did not come
  /// in time or the connection ended: it may have run, or may still run.
  error_code error;
  redis::reply reply;
  std::string detail{};  // node and cause, safe to print; only with an error
  /// When the first byte of this very copy was handed to the socket, read before; only if it was written.
  detail::time_point sent{};
  /// Which run of which server it was written to: two of the same number are the same; 0: unknown.
  std::uint64_t server = 0;
  /// Of one that was sent to several independent primaries: what each has said; there is no reply then.
  const votes* of_each = nullptr;
  /// Of the primaries, by their numbers: those that have said yes; and those where it may have run or may still run.
  /// One server is number 0.
  std::uint32_t yes = 1, may_have_run = 1;
};

/// What became of the copies of one command, one for each primary.
struct votes {
  std::vector<std::optional<outcome>> outcomes;  // empty: not known yet
  std::vector<std::string> where;                // the addresses, for texts
  detail::lease_clock::duration slowest{};       // until the last of the answers that have come
};
using handler = detail::function<void(const outcome&)>;

/// Of one with an error. Whether the command never went out or its answer never came: to who asked, the server was
/// unreachable.
inline failure failure_of(const outcome& outcome) {
  const bool unconfirmed = outcome.error == errc::unconfirmed;
  const bool may_have_run = unconfirmed || (outcome.of_each && outcome.may_have_run != 0);
  return {unconfirmed ? errc::unreachable : static_cast<errc>(outcome.error.value()), outcome.detail, may_have_run};
}

/// Hears of one channel. Called on the client's strand, never inside subscribe().
class subscriber {
 public:
  /// The server acknowledged: from now on messages arrive. Called again after each re-subscription: what was published
  /// in between is missed.
  virtual void on_subscribed() = 0;
  virtual void on_message(std::string_view payload) = 0;
  /// Fewer than a majority of several primaries have said so.
  virtual void on_rumour(std::string_view payload) { on_message(payload); }
  /// The server refused (ACL), or no connection can be had for a reason that will not mend itself. Not called for an
  /// outage.
  virtual void on_subscribe_failed(error_code error, const std::string& detail) = 0;
  /// The server has no SUBSCRIBE, or ends the connection after it: no message comes. It is asked again, less and less
  /// often, and on_subscribed() is called if it acknowledges. Until then the subscriber must poll.
  virtual void on_no_messages(error_code, const std::string& /*detail*/) {}
  /// Of several primaries, by their numbers: those at which what it waits for is free already.
  virtual std::uint32_t free_at() const { return 0; }

 protected:
  ~subscriber() = default;
};

/// Keeps a subscription while it lives; the last one of a channel unsubscribes.
using subscription = std::shared_ptr<void>;

}  // namespace holdfast::redis
