// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cerrno>

#include <holdfast/error.hpp>

namespace holdfast::detail {

/// What a caller hears who has cancelled its call: asio::error::operation_aborted, without Asio.
inline error_code cancelled() noexcept { return {ECANCELED, boost::system::system_category()}; }

}  // namespace holdfast::detail
