// SPDX-License-Identifier: BSL-1.0
#include <holdfast/red_lock.hpp>

#include <holdfast/client.hpp>

#include <utility>

#include "api/on_strand.hpp"

namespace holdfast {
namespace {

const detail::kind& kind_of(reentrancy r) {
  return r == reentrancy::reentrant ? detail::red_plain_lock : detail::red_simple_lock;
}

}  // namespace

red_lock::red_lock(std::weak_ptr<detail::core> c, std::shared_ptr<const detail::lock_keys> keys,
                   std::optional<holdfast::owner> who)
    : mutex(std::move(c), std::move(keys), who) {}

asio::awaitable<void> red_lock::initialise(const client& c) {
  return detail::on_strand<void>(
      detail::access::home(c),
      [](detail::engine& e, const std::shared_ptr<detail::caller<void>>& to, const auto&) {
        e.initialise_votes([to](error_code failed, const std::string& detail) { to->answer(failed, detail); });
      },
      detail::refused_by(detail::access::home(c)));
}

red_lock client::red_lock(std::string_view name, reentrancy nested) const {
  return detail::access::make_mutex<holdfast::red_lock>(core_, kind_of(nested), name, std::nullopt);
}

red_lock client::red_lock(std::string_view name, holdfast::owner who, reentrancy nested) const {
  return detail::access::make_mutex<holdfast::red_lock>(core_, kind_of(nested), name, who);
}

}  // namespace holdfast
