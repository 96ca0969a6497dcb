// SPDX-License-Identifier: BSL-1.0
#include "cli/exit_status.hpp"

#include <boost/system/errc.hpp>

namespace holdfast::cli {

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
