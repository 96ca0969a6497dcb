// SPDX-License-Identifier: BSL-1.0
#include <holdfast/owner.hpp>

#include <atomic>

#include <boost/asio/strand.hpp>

#include "api/owner_executor.hpp"
#include "base/direct_executor.hpp"

// Decision: without an owner each lock() is an owner of its own, like std::mutex. A mutex that is kept in a service is
// used by all requests. If the mutex were the identity, all requests would re-enter each other's holds.
namespace holdfast {
namespace {

std::uint64_t next_identity() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

owner::owner() noexcept : owner_id(next_identity()) {}

asio::any_io_executor owner::bind(asio::any_io_executor inner) const {
  return detail::owner_executor(std::move(inner), *this);
}

std::optional<owner> owner::of(const asio::any_io_executor& executor) noexcept {
  if (detail::is_direct(executor)) return std::nullopt;  // the most frequent case, found by one comparison
  if (const auto* carrier = executor.target<detail::owner_executor>()) return carrier->current_owner();
  if (const auto* strand = executor.target<asio::strand<asio::any_io_executor>>())
    return of(strand->get_inner_executor());
  return std::nullopt;
}

}  // namespace holdfast
