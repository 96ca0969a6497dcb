// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cerrno>

#include <holdfast/error.hpp>

namespace holdfast::detail {

/// The error of a call that its caller has cancelled: asio::error::operation_aborted, without Asio.
inline error_code cancelled() noexcept { return {ECANCELED, boost::system::system_category()}; }

}  // namespace holdfast::detail
