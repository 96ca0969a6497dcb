// SPDX-License-Identifier: BSL-1.0
#include "redis/error_replies.hpp"

#include <cstddef>
#include <string>

#include "base/escape.hpp"

namespace holdfast::redis {
namespace {

constexpr std::size_t longest_text = 240;

struct row {
  std::string_view begins;
  errc code;
  std::string_view meaning = {};
};

constexpr row table[] = {
    {"OOM", errc::server_refused},
    {"NOREPLICAS", errc::server_refused},
    {"MISCONF", errc::server_refused},  // also in answer to PING
    {"LOADING", errc::server_refused},
    {"BUSY", errc::server_refused},
    {"MASTERDOWN", errc::server_refused},
    {"TRYAGAIN", errc::server_refused},
    {"CLUSTERDOWN", errc::server_refused},
    {"max number of clients", errc::server_refused},
    {"READONLY", errc::not_primary},
    {"MOVED", errc::not_primary, cluster_node},  // where INFO, which says so, is withheld
    {"ASK ", errc::not_primary, cluster_node},
    {"CROSSSLOT", errc::not_primary, cluster_node},
    {"Script attempted to access", errc::not_primary, cluster_node},
    {"unknown command", errc::protocol_error},
    {"wrong number of arguments", errc::protocol_error},
    {"Unknown Redis command called from", errc::protocol_error},  // in a script: renamed away
    {"Unknown command called from", errc::protocol_error},        // Valkey's words for it
    {"WRONGTYPE", errc::corrupt_lock},
    {"NOAUTH", errc::auth_failed},
    {"WRONGPASS", errc::auth_failed},
    {"NOPERM", errc::no_permission},
    {"DENIED", errc::no_permission},  // protected mode
    // An ACL's refusal inside a script, up to Redis 7.0 and since.
    {"The user executing the script", errc::no_permission},
    {"ACL failure in script", errc::no_permission},
};

// Errors of a call inside a script, which Redis wraps ("ERR Error running script … WRONGTYPE …" before 7.0).
constexpr std::string_view wrapped[] = {"The user executing the script",
                                        "ACL failure in script",
                                        "Unknown Redis command called from",
                                        "WRONGTYPE",
                                        "OOM command",
                                        "NOREPLICAS",
                                        "MISCONF",
                                        "READONLY"};

const row* row_of(std::string_view text) {
  constexpr std::string_view generic = "ERR ";
  const auto words = text.substr(text.starts_with(generic) ? generic.size() : 0);
  for (const auto& row : table)
    if (words.starts_with(row.begins)) return &row;
  for (const auto inner : wrapped)
    if (const auto at = text.find(inner); at != text.npos) return row_of(text.substr(at));
  return nullptr;
}

}  // namespace

failure classify(std::string_view text, errc otherwise) {
  const auto* known = row_of(text);
  const auto meaning = known && !known->meaning.empty() ? std::string(known->meaning) + ": " : std::string();
  return {known ? known->code : otherwise, meaning + detail::escaped(text, longest_text - meaning.size())};
}

// TRYAGAIN is no redirect: it is about the keys of one script, and comes from a server that serves the others. No text
// is made here, because the sender of the command must get its answer even without memory.
bool is_redirect(std::string_view error_reply) {
  return error_reply.starts_with("MOVED ") || error_reply.starts_with("ASK ");
}

bool shows_work(const reply& reply) {
  if (!reply.is_error() || reply.text.starts_with("TRYAGAIN")) return true;
  const auto* known = row_of(reply.text);
  return !known || !failure{.code = known->code, .detail = {}}.mends_itself();
}

}  // namespace holdfast::redis
