// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/function.hpp>

namespace holdfast::detail {

/// A callback. Unlike GCC's std::function it keeps up to three pointers, a shared_ptr among them, without allocating:
/// every step of a lock passes one.
template <class Signature>
using function = boost::function<Signature>;

}  // namespace holdfast::detail
