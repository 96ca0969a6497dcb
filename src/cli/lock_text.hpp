// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/json/object.hpp>

#include <string>

#include "cli/server/lock_facts.hpp"

namespace holdfast::cli {

/// One line of `list`, and the line above all.
std::string line_of(const lock_facts& lock);
std::string line_of_titles();
/// The lines of `inspect`.
std::string lines_of(const lock_facts& lock);
/// The same for programs: docs/cli.schema.json.
boost::json::object json_of(const lock_facts& lock);
/// "4711 on web-3 (billing)", or "-".
std::string process_text(const std::optional<process_facts>& process);

}  // namespace holdfast::cli
