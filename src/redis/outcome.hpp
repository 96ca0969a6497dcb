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

/// The outcome of a command.
struct outcome {
  /// none: `reply` is the server's answer (an error reply included); unreachable, auth_failed, tls_failed, not_primary,
  /// no_permission, overloaded, closed: it was never written; unconfirmed: it was written, and the answer did not come
  /// in time or the connection ended: it may have run, or may still run.
  error_code error;
  redis::reply reply;
  std::string detail{};  // node and cause, safe to print; only with an error
  /// The time just before the first byte of this copy was handed to the socket; only if it was written.
  detail::time_point sent{};
  /// The run of the server that it was written to: equal numbers are the same run of one server; 0: unknown.
  std::uint64_t server = 0;
  /// Of a command to several independent primaries: the outcome at each; there is no reply then.
  const votes* of_each = nullptr;
  /// Bits by the numbers of the primaries: those that have said yes, and those where it may have run or may still run.
  /// A single server is number 0.
  std::uint32_t yes = 1, may_have_run = 1;
  /// The server pushes the next change of each key that the command has read, and has not written since. It pushes that
  /// change once; a read after it asks anew. A write by the same connection ends this silently. The push may come
  /// before this outcome. Not set for a refusal, and not for several primaries: each answers for itself.
  bool tracked = false;
  /// An earlier copy has ended inside its script, because the slot was being moved: it may have written.
  bool ran_in_part = false;
};

/// The outcomes of the copies of one command, one for each primary.
struct votes {
  std::vector<std::optional<outcome>> outcomes;  // empty: not known yet
  std::vector<std::string> where;                // the addresses, for texts
  detail::lease_clock::duration slowest{};       // until the last of the answers that have come
};
using handler = detail::function<void(const outcome&)>;

/// The failure of an outcome with an error. Whether the command was never written or its answer never came: to the
/// caller the server was unreachable.
inline failure failure_of(const outcome& outcome) {
  const bool unconfirmed = outcome.error == errc::unconfirmed;
  const bool may_have_run = unconfirmed || (outcome.of_each && outcome.may_have_run != 0);
  return {unconfirmed ? errc::unreachable : outcome.error, outcome.detail, may_have_run};
}

/// Gets the messages of one channel. Called on the client's strand, never inside subscribe().
class subscriber {
 public:
  /// The server acknowledged: from now on messages arrive. Called again after each re-subscription: messages that were
  /// published in between are missed.
  virtual void on_subscribed() = 0;
  virtual void on_message(std::string_view payload) = 0;
  /// A message of fewer than a majority of several primaries.
  virtual void on_rumour(std::string_view payload) { on_message(payload); }
  /// The server refused (ACL), or no connection can be made for a reason that does not mend itself. Not called for an
  /// outage.
  virtual void on_subscribe_failed(error_code error, const std::string& detail) = 0;
  /// The server has no SUBSCRIBE, or ends the connection after it: no message comes. It is asked again, less and less
  /// often, and on_subscribed() is called if it acknowledges. Until then the subscriber must poll.
  virtual void on_no_messages(error_code, const std::string& /*detail*/) {}
  /// Bits by the numbers of several primaries: those at which the awaited lock is free already.
  virtual std::uint32_t free_at() const { return 0; }

 protected:
  ~subscriber() = default;
};

/// Keeps a subscription while it lives; the last one of a channel unsubscribes.
using subscription = std::shared_ptr<void>;

}  // namespace holdfast::redis
