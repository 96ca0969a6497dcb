// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "testing/sim/database.hpp"

/// The commands on lists. LPOP has no count.
namespace holdfast::sim::lists {

reply lindex(database&, const arguments&);
reply llen(database&, const arguments&);
reply lpop(database&, const arguments&);
reply lrange(database&, const arguments&);
reply lrem(database&, const arguments&);
reply rpush(database&, const arguments&);

}  // namespace holdfast::sim::lists
