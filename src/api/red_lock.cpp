// SPDX-License-Identifier: BSL-1.0
#include <holdfast/red_lock.hpp>

#include <holdfast/client.hpp>

#include <utility>

#include "api/on_strand.hpp"

namespace holdfast {
namespace {

const detail::kind& kind_of(reentrancy reentrancy) {
  return reentrancy == reentrancy::reentrant ? detail::red_plain_lock : detail::red_simple_lock;
}

}  // namespace

red_lock::red_lock(std::weak_ptr<detail::core> core, std::shared_ptr<const detail::lock_keys> keys,
                   std::optional<holdfast::owner> owner)
    : mutex(std::move(core), std::move(keys), owner) {}

asio::awaitable<void> red_lock::initialise(const client& client) {
  return detail::on_strand<void>(
      detail::access::home(client),
      [](detail::engine& engine, const std::shared_ptr<detail::caller<void>>& to, const auto&) {
        engine.initialise_votes([to](const std::optional<detail::failure>& failed) { to->answer(failed); });
      },
      detail::refused_by(detail::access::home(client)));
}

red_lock client::red_lock(std::string_view name, reentrancy nested) const {
  return detail::access::make_mutex<holdfast::red_lock>(core_, kind_of(nested), name, std::nullopt);
}

red_lock client::red_lock(std::string_view name, holdfast::owner owner, reentrancy nested) const {
  return detail::access::make_mutex<holdfast::red_lock>(core_, kind_of(nested), name, owner);
}

}  // namespace holdfast
