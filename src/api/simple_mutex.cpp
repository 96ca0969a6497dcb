// SPDX-License-Identifier: BSL-1.0
#include <holdfast/simple_mutex.hpp>

#include <holdfast/client.hpp>

#include <utility>

#include "api/core.hpp"

namespace holdfast {

simple_mutex::simple_mutex(std::weak_ptr<detail::core> c, std::shared_ptr<const detail::lock_keys> keys,
                           std::optional<holdfast::owner> who)
    : mutex(std::move(c), std::move(keys), who) {}

simple_mutex client::simple_mutex(std::string_view name) const {
  return detail::access::make_mutex<holdfast::simple_mutex>(core_, detail::simple_lock, name, std::nullopt);
}

simple_mutex client::simple_mutex(std::string_view name, holdfast::owner who) const {
  return detail::access::make_mutex<holdfast::simple_mutex>(core_, detail::simple_lock, name, who);
}

}  // namespace holdfast
