// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/server/lock_facts.hpp"

namespace holdfast::cli {

/// The body of POST /api/free: a lock, and the holders that the reader was shown.
struct free_request {
  std::string name;
  std::vector<std::string> holders;  // as in the JSON of a lock
};

/// Empty: the body is no such request.
std::optional<free_request> read_free_request(std::string_view body);

/// Pure: the reason why the lock is not freed; empty: those that hold it were shown.
std::string_view objection_to(const free_request& request, const key_facts& key);

}  // namespace holdfast::cli
