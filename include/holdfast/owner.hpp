// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/owner_id.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <optional>

namespace holdfast {
namespace asio = boost::asio;

/// Identity of one logical task, which holds locks. A value of 8 bytes, unique in this process, never empty, never on
/// the wire. If the owner holds the name already, its lock() re-enters. A lock() by another owner waits. Owners are per
/// client: the same owner through two clients counts as two, and would wait for itself. All functions may be called
/// from any thread.
class HOLDFAST_EXPORT owner : public owner_id {
 public:
  owner() noexcept;                              ///< a new identity
  owner(owner_id of) noexcept : owner_id(of) {}  ///< the owner that an event names

  /// An executor that carries this owner to everything spawned on it. The owner survives co_await, timers, && and ||,
  /// co_spawn(co_await this_coro::executor, …) and make_strand of the executor. Branches of && share the owner, hence
  /// also their holds.
  [[nodiscard]] asio::any_io_executor bind(asio::any_io_executor) const;

  /// The owner that an executor carries, directly or under strands of any_io_executor.
  [[nodiscard]] static std::optional<owner> of(const asio::any_io_executor&) noexcept;
};

}  // namespace holdfast
