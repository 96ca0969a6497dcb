// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <type_traits>
#include <utility>

#include <holdfast/owner.hpp>

namespace holdfast::detail {

/// Forwards everything to the executor inside, and carries the owner of the task that it runs.
class owner_executor {
 public:
  owner_executor(asio::any_io_executor inner, owner owner) noexcept : inner_(std::move(inner)), owner_(owner) {}

  owner current_owner() const noexcept { return owner_; }

  // decltype and not auto: execution_context& must stay a reference.
  template <class Property>
    requires asio::can_query_v<const asio::any_io_executor&, Property>
  auto query(const Property& property) const
      -> decltype(asio::query(std::declval<const asio::any_io_executor&>(), property)) {
    return asio::query(inner_, property);
  }
  template <class Property>
    requires asio::can_require_v<const asio::any_io_executor&, Property>
  owner_executor require(const Property& property) const {
    return {asio::require(inner_, property), owner_};
  }
  template <class Property>
    requires asio::can_prefer_v<const asio::any_io_executor&, Property>
  owner_executor prefer(const Property& property) const {
    return {asio::prefer(inner_, property), owner_};
  }
  template <class F>
  void execute(F&& action) const {
    inner_.execute(std::forward<F>(action));
  }

  friend bool operator==(const owner_executor&, const owner_executor&) noexcept = default;

 private:
  asio::any_io_executor inner_;
  owner owner_;
};

}  // namespace holdfast::detail
