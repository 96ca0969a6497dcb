// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/mutex.hpp>
#include <holdfast/election.hpp>
#include <holdfast/export.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::blocking {

/// holdfast::election for threads. The object is a candidate: lock() campaigns with the value that it was made with,
/// and unlock() resigns. Not re-entrant: lock() by the thread that leads throws already_held.
///
///     holdfast::blocking::client redis({.url = "redis://localhost"});
///     auto chief = redis.election("chief", "10.0.0.1:80");
///     std::lock_guard leading(chief);
///
/// Its functions wait, throw as those of holdfast::election, and have the rules of lockable. Those of lockable throw
/// invalid_argument for the value.
class HOLDFAST_EXPORT election : public mutex {
 public:
  /// The term of the newest hold that this thread has taken through this object: a fencing token, for the resource to
  /// check. It stays when that hold is lost. Empty without one.
  [[nodiscard]] std::optional<std::uint64_t> token() const noexcept;
  /// Changes the value of that hold. The next lock() campaigns with the old one. Throws not_held without a hold.
  void proclaim(std::string value) const;
  std::optional<leader_info> leader() const;  ///< the leader; empty: none; a snapshot
  /// Waits until the leader is not `after`. It throws shutting_down when the client ends or drains, and closed when
  /// this object ends.
  std::optional<leader_info> next(std::optional<leader_info> after) const;

 private:
  friend detail::access;
  election(mutex candidate, holdfast::election of);

  holdfast::election of_;
};

}  // namespace holdfast::blocking
