// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

namespace holdfast::test {

/// Skips a test of `feature`, which Redis has since version 7. Valkey counts as 7.
void need_redis_7(const std::string& feature);

}  // namespace holdfast::test
