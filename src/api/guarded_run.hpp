// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/with_lock.hpp>

#include "api/core.hpp"

namespace holdfast::detail {

/// The fate of the lease after the end of its body.
enum class afterwards { unlocked, kept };

/// Runs one body under its lease, on a strand of its own. A loss of the lease cancels the body and is thrown. A
/// cancellation goes to the body; the unlock after it is awaited. `Held`: lease or multi_lease.
template <class Held>
asio::awaitable<void> run_guarded(Held& held, basic_body_ref<Held> body, afterwards then);

extern template asio::awaitable<void> run_guarded(lease&, basic_body_ref<lease>, afterwards);
extern template asio::awaitable<void> run_guarded(multi_lease&, basic_body_ref<multi_lease>, afterwards);

}  // namespace holdfast::detail
