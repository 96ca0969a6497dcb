// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace holdfast::test {

#ifndef __has_feature
#define __has_feature(name) 0  // g++ has macros of its own
#endif

/// Whether this build runs under AddressSanitizer, or under ThreadSanitizer: each has needs of its own.
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
inline constexpr bool address_sanitized = true;
#else
inline constexpr bool address_sanitized = false;
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
inline constexpr bool thread_sanitized = true;
#else
inline constexpr bool thread_sanitized = false;
#endif

}  // namespace holdfast::test
