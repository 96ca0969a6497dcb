// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string_view>

#include <holdfast/error.hpp>

#include "redis/failure.hpp"
#include "redis/resp.hpp"

namespace holdfast::redis {

/// The cause for a node of a cluster where one server was expected.
inline constexpr std::string_view cluster_node = "a cluster node; the URL of a cluster begins with redis+cluster://";

/// The meaning of an error reply of Redis: its code, and the server's words, safe to print. `otherwise`: the code of
/// unknown words.
failure classify(std::string_view error_reply, errc otherwise);

/// A node of a cluster names another one: MOVED or ASK. Also if the name cannot be used.
bool is_redirect(std::string_view error_reply);

/// The reply shows a server at work. A refusal that mends itself does not: Redis is up, and serves nothing yet.
bool shows_work(const reply& reply);

}  // namespace holdfast::redis
