// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

#include <holdfast/error.hpp>

#include "base/function.hpp"

namespace holdfast::detail {

/// Called once, at the end of an operation without a result. No error means success.
using done_handler = function<void(error_code, const std::string& detail)>;
/// The same with a result, which is valid only without an error.
template <class T>
using value_handler = function<void(error_code, const std::string& detail, T)>;

}  // namespace holdfast::detail
