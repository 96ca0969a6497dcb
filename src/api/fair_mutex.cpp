// SPDX-License-Identifier: BSL-1.0
#include <holdfast/fair_mutex.hpp>

#include <utility>

#include <holdfast/client.hpp>

#include "api/lock_call.hpp"
#include "protocol/fair/fair_lock.hpp"

namespace holdfast {

fair_mutex::fair_mutex(std::weak_ptr<detail::core> core, std::shared_ptr<const detail::lock_keys> keys,
                       std::optional<holdfast::owner> owner)
    : mutex(std::move(core), std::move(keys), owner) {}

asio::awaitable<unsigned> fair_mutex::waiters() const {
  return detail::on_lock<unsigned>(core_, keys_,
                                   [](detail::engine& engine, const detail::shared_keys& keys,
                                      const std::shared_ptr<detail::caller<unsigned>>& to, const auto&) {
                                     engine.ask().waiters(keys, [to](detail::answer<unsigned>&& standing) {
                                       to->answer(standing.failed, standing.value);
                                     });
                                   });
}

fair_mutex client::fair_mutex(std::string_view name) const {
  return detail::access::make_mutex<holdfast::fair_mutex>(core_, detail::fair_lock, name, std::nullopt);
}

fair_mutex client::fair_mutex(std::string_view name, holdfast::owner owner) const {
  return detail::access::make_mutex<holdfast::fair_mutex>(core_, detail::fair_lock, name, owner);
}

}  // namespace holdfast
