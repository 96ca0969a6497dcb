// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "protocol/call.hpp"
#include "protocol/kind.hpp"
#include "redis/outcome.hpp"
#include "sync/line/lock_request.hpp"

namespace holdfast::detail {

/// The discipline of a line: whom it lets ask, for how many waiters, on which channel it listens, the meaning of a
/// reply, and the release that a leaving waiter needs. Pure.
///
/// Decision: a discipline is an interface with one implementation. A kind whose waiters all ask brings the second one.
/// Until then the rules know one asking waiter, the first.
///
/// Decision: the first may ask for a party, which is itself and the waiters right behind it that want the same terms.
/// Each has a field of its own, and each field is given back by itself.
class discipline {
 public:
  /// The waiter at this place of the line may ask. The first has place 0.
  virtual bool asks(std::size_t place) const noexcept = 0;
  /// So many of the waiting callers one grant serves.
  virtual std::size_t served_at_once(std::size_t waiting) const noexcept = 0;
  virtual std::string channel(const lock_keys& keys) const = 0;
  /// The waiter `next` may go along with the command of `first`, whose party wants `amount` already.
  virtual bool goes_along(const lock_request& first, const attempts& tries_of_first, const lock_request& next,
                          const attempts& tries_of_next, std::size_t amount) const noexcept = 0;
  /// The command of the next attempt of a party. It refers to the keys and to the fields.
  virtual call attempt_of(const lock_keys& keys, const lock_request& request, const attempts& tries,
                          std::span<const owner_field> party) const = 0;
  virtual answer<acquire_answer> read(const kind& row, const attempts& tries, const redis::outcome& outcome,
                                      std::size_t party) const = 0;
  /// The reply refuses the cheaper first command, and says nothing about the lock.
  virtual bool refuses_first_try(const attempts& tries, const redis::outcome& outcome) const noexcept = 0;
  /// The primaries that may have granted an earlier attempt of a waiter that leaves. nowhere: it needs no release.
  virtual primary_set may_have_granted(const attempts& tries) const noexcept = 0;

 protected:
  ~discipline() = default;
};

/// The first waiter asks for itself, all others wait behind it. Every mutex is so.
const discipline& first_asks() noexcept;

}  // namespace holdfast::detail
