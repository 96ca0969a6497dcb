// SPDX-License-Identifier: BSL-1.0
#include <holdfast/simple_mutex.hpp>

#include <holdfast/client.hpp>

#include <utility>

#include "api/core.hpp"

namespace holdfast {

simple_mutex::simple_mutex(std::weak_ptr<detail::core> core, std::shared_ptr<const detail::lock_keys> keys,
                           std::optional<holdfast::owner> owner)
    : mutex(std::move(core), std::move(keys), owner) {}

simple_mutex client::simple_mutex(std::string_view name) const {
  return detail::access::make_mutex<holdfast::simple_mutex>(core_, detail::simple_lock, name, std::nullopt);
}

simple_mutex client::simple_mutex(std::string_view name, holdfast::owner owner) const {
  return detail::access::make_mutex<holdfast::simple_mutex>(core_, detail::simple_lock, name, owner);
}

}  // namespace holdfast
