// SPDX-License-Identifier: BSL-1.0
#include "cli/exit_status.hpp"

#include <boost/system/errc.hpp>

namespace holdfast::cli {

std::span<const exit_meaning> exit_meanings() noexcept {
  static constexpr exit_meaning all[] = {
      {"0", "done; of run: its command ended with 0"},
      {"1, 2", "of doctor: the worst line is a WARN, a FAIL"},
      {"64", "the command line is wrong"},
      {"65", "the key is no lock, and was not changed"},
      {"69", "Redis is unreachable, or refuses to write for now"},
      {"70", "an internal error"},
      {"74", "the output cannot be written"},
      {"75", "the lock is busy"},
      {"77", "wrong password, or a missing permission"},
      {"78", "a wrong setting, or a server of another kind"},
      {"79", "the lock was lost"},
      {"126, 127", "of run: the command cannot be executed, is not found"},
      {"128 + N", "of run: the command was killed by signal N, or this signal came before it began"},
  };
  return all;
}

exit_status status_of(const error_code& code) noexcept {
  if (code == condition::retry_later) return unreachable;
  if (code == errc::lost || code == errc::closed) return lost;
  if (code == errc::corrupt_lock) return no_lock;
  if (code == errc::auth_failed || code == errc::no_permission) return not_permitted;
  if (code == condition::misuse) return misused;
  if (code == condition::setup) return misconfigured;
  return broken;
}

}  // namespace holdfast::cli
