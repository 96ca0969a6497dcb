// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "testing/sim/database.hpp"

/// The commands on sorted sets. ZADD has NX, XX and GT alone; ZRANGE has ranks alone; ZPOPMIN has no count.
namespace holdfast::sim::sorted_sets {

reply zadd(database&, const arguments&);
reply zcard(database&, const arguments&);
reply zcount(database&, const arguments&);
reply zincrby(database&, const arguments&);
reply zpopmin(database&, const arguments&);
reply zrange(database&, const arguments&);
reply zrangebyscore(database&, const arguments&);
reply zrank(database&, const arguments&);
reply zrem(database&, const arguments&);
reply zscore(database&, const arguments&);

}  // namespace holdfast::sim::sorted_sets
