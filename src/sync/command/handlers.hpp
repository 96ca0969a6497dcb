// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>

#include "base/function.hpp"
#include "protocol/replies.hpp"

namespace holdfast::detail {

/// Called once, at the end of an operation without a result. No failure means success.
using done_handler = function<void(const std::optional<failure>&)>;
/// The same with a result.
template <class T>
using answer_handler = function<void(answer<T>&&)>;

}  // namespace holdfast::detail
