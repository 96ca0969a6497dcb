// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>

#include "chaos/testimony.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

/// A section under a multi_lock, of one task. Each of its holds is written down as one that was asked for alone, with
/// the number of the first operation as that of the whole.
asio::awaitable<void> do_joint_section(workplace& place, client& redis, testimony& told, dice& d, const owner& self,
                                       const section& s);

}  // namespace holdfast::chaos
