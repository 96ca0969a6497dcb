// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/json/object.hpp>

#include <optional>
#include <string>
#include <vector>

#include "cli/server/lock_facts.hpp"
#include "cli/server/lock_watch.hpp"

namespace holdfast::cli {

/// The line of `list`, and one more for each permit or read hold.
std::string lines_of(const lock_facts& lock);
std::string line_of_titles();
/// The lines of `inspect`.
std::string paragraph_of(const lock_facts& lock);
/// The same for programs: docs/cli.schema.json.
boost::json::object json_of(const lock_facts& lock);
boost::json::object json_of(const permit_facts& permits, const std::vector<hold_facts>& holds);
/// Sets holder, process and ttl_ms.
void put_hold(boost::json::object& into, const hold_facts& hold);
/// Of a shared mutex that is read: the number of its read holds, and those that are shown.
boost::json::object json_of_readers(const lock_facts& lock);
/// The value of a leader, for people: the first 200 bytes, or "-" for an empty one.
std::string leader_text(const std::string& value);
/// The line of `watch`, and the same for programs.
std::string line_of(const lock_event& event);
boost::json::object json_of(const lock_event& event);
/// "4711 on web-3 (billing)", or "-".
std::string process_text(const std::optional<process_facts>& process);

}  // namespace holdfast::cli
