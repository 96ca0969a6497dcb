// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string_view>

#include <holdfast/error.hpp>

#include "redis/failure.hpp"
#include "redis/resp.hpp"

namespace holdfast::redis {

/// What a node of a cluster is refused with, where one server was expected.
inline constexpr std::string_view cluster_node = "a cluster node; the URL of a cluster begins with redis+cluster://";

/// What an error reply of Redis means: its code, and the server's words, safe to print. `otherwise`: the code of words
/// that are not known.
failure classify(std::string_view error_reply, errc otherwise);

/// Whether a node of a cluster names another one: MOVED or ASK. Also where the name leads nowhere.
bool is_redirect(std::string_view error_reply);

/// Whether a reply shows a server at work. A refusal that mends itself does not: Redis is there, and does nothing yet.
bool shows_work(const reply& reply);

}  // namespace holdfast::redis
