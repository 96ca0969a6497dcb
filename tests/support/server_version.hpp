// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

namespace holdfast::test {

/// Skips a test of `feature`, which Redis has since this version. Valkey counts as 7.
void need_redis(int least_major, const std::string& feature);
void need_redis_7(const std::string& feature);

/// The server pushes the writes of a client's own scripts to it: Redis 6.0, 6.2.0 to 6.2.7 and 7.0.0 to 7.0.4.
bool server_pushes_own_writes();
/// Skips a test of pushed changes there.
void need_pushes();

}  // namespace holdfast::test
