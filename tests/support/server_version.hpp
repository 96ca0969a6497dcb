// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

namespace holdfast::test {

/// Skips a test of `feature`, which Redis has since this version. Valkey counts as 7.
void need_redis(int least_major, const std::string& feature);
void need_redis_7(const std::string& feature);

}  // namespace holdfast::test
