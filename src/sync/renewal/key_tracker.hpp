// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>

#include "sync/command/environment.hpp"
#include "sync/command/push_demand.hpp"
#include "sync/renewal/push_budget.hpp"
#include "sync/renewal/renewals.hpp"

namespace holdfast::detail {

/// Asks the servers to push the next change of the keys that are held, after each renewal.
///
/// Decision: the question is a command of its own, EXISTS, behind the answer of the renewal. A server forgets a tracked
/// key at each write, also at our own, which it does not push. A renewal that asked for pushes would forget its key by
/// its own write, and cost the server 18 microseconds for each lock instead of 8 (docs/internals/pushes.md).
///
/// Decision: the first renewal begins it, not the grant. A hold that ends before a third of its TTL costs nothing.
///
/// Decision: a client asks for at most `most_tracked` keys. A server has room for a million by default
/// (tracking-table-max-keys). Beyond that it forgets keys at random, and pushes each of them.
class key_tracker {
 public:
  /// With more held shares than this, none is asked for. Holders learn of a change by their next renewal.
  static constexpr std::size_t most_tracked = 100'000;

  class host {
   public:
    /// Some of these shares have no key any more.
    virtual void missing(const renewals::shares& parts) = 0;

   protected:
    ~host() = default;
  };

  key_tracker(environment& env, host& of) noexcept : env_(env), host_(of) {}

  /// Asks for the next change of the shares that are guarded and not denied. `held`: the shares of the client.
  void ask(node_id node, const renewals::shares& parts, std::size_t held);
  /// No claim is held any more.
  void end() noexcept { pushes_.end(); }
  /// Limits the confirmations that pushed changes cause.
  push_budget budget;

 private:
  class question;

  environment& env_;
  host& host_;
  push_demand::user pushes_;
};

}  // namespace holdfast::detail
