// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/json/object.hpp>

#include <optional>
#include <string>
#include <vector>

#include "cli/server/lock_facts.hpp"

namespace holdfast::cli {

/// The line of `list`, and of a semaphore one more for each permit.
std::string lines_of(const lock_facts& lock);
std::string line_of_titles();
/// The lines of `inspect`.
std::string paragraph_of(const lock_facts& lock);
/// The same for programs: docs/cli.schema.json.
boost::json::object json_of(const lock_facts& lock);
boost::json::object json_of(const permit_facts& permits, const std::vector<hold_facts>& holds);
/// Sets holder, process and ttl_ms.
void put_hold(boost::json::object& into, const hold_facts& hold);
/// The number of permits that are out and not shown.
long long hidden_permits(const lock_facts& semaphore);
/// "4711 on web-3 (billing)", or "-".
std::string process_text(const std::optional<process_facts>& process);

}  // namespace holdfast::cli
