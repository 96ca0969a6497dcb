// SPDX-License-Identifier: BSL-1.0
#include "context_end.hpp"

#include <utility>

namespace holdfast::detail {

asio::execution_context::id context_end::id;

void context_end::add(std::weak_ptr<core> client) {
  const std::lock_guard lock(guard_);
  std::erase_if(clients_, [](const auto& other) { return other.expired(); });
  clients_.push_back(std::move(client));
}

void context_end::shutdown() { abandon_all(); }

void context_end::notify_fork(asio::execution_context::fork_event event) {
  if (event == asio::execution_context::fork_child) abandon_all();
}

void context_end::abandon_all() {
  for (const auto& client : std::exchange(clients_, {}))
    if (const auto c = client.lock()) c->abandon();
}

}  // namespace holdfast::detail
