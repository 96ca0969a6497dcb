// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

#include <holdfast/error.hpp>

#include "base/function.hpp"

namespace holdfast::detail {

/// Called once with the end of something that has no result: no error means that it succeeded.
using done_handler = function<void(error_code, const std::string& detail)>;
/// The same with a result, which counts only where there is no error.
template <class T>
using value_handler = function<void(error_code, const std::string& detail, T)>;

}  // namespace holdfast::detail
