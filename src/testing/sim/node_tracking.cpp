// SPDX-License-Identifier: BSL-1.0
// A node's CLIENT TRACKING: which keys its sessions have read, and the changes that it pushes to others.
#include <algorithm>
#include <utility>

#include "testing/sim/node.hpp"

namespace holdfast::sim {
namespace {

using kind = reply::kind;

reply one_key(const std::string& key) { return {kind::array, 0, {}, {string_reply(key)}}; }

}  // namespace

reply node::track(session& of, const arguments& args) {
  if (args.size() < 3) return wrong_number_of_arguments("client|tracking");
  tracking asked;
  bool redirected = false;
  for (std::size_t i = 3; i < args.size(); ++i) {
    const auto option = lower(args[i]);
    if (option == "optin") {
      asked.opt_in = true;
    } else if (option == "noloop") {
      asked.no_loop = true;
    } else if (option == "redirect" && i + 1 < args.size()) {
      if (std::exchange(redirected, true))
        return error_reply("ERR A client can only redirect to a single other client");
      if (!to_integer(args[++i], asked.to)) return not_an_integer();
      if (!connected(asked.to)) return error_reply("ERR The client ID you want redirect to does not exist");
    } else {
      return syntax_error();
    }
  }
  const auto verb = lower(args[2]);
  if (verb != "on" && verb != "off") return syntax_error();
  of.tracks = verb == "on" ? std::optional(asked) : std::nullopt;
  data_.tracked = true;
  return status_reply("OK");
}

reply node::cache(session& of, const arguments& args) {
  if (args.size() != 3) return wrong_number_of_arguments("client|caching");
  if (!of.tracks)
    return error_reply(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled");
  const auto verb = lower(args[2]);
  if (verb == "no") return error_reply("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  if (verb != "yes") return syntax_error();
  if (!of.tracks->opt_in)
    return error_reply("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
  of.caching = true;
  return status_reply("OK");
}

// An expiry is nobody's command: it is pushed to the session that finds it, too.
void node::access(const std::string& key) {
  const auto found = tracked_.find(key);
  if (found != tracked_.end() && found->second.seen && !std::as_const(data_.keys).find(key)) push_change(key, false);
}

// Redis 7.0 tracks all keys that a script declares, upon each read of any.
void node::note_read(const std::string& key) {
  const auto by = sessions_.find(current_);
  if (by == sessions_.end() || !by->second.tracks || (by->second.tracks->opt_in && !caching_)) return;
  if (script_keys_.empty()) return remember(key);
  for (const auto& declared : script_keys_) remember(declared);
}

void node::remember(const std::string& key) {
  auto& tracked = tracked_[key];
  tracked.by.insert(current_);
  const auto* entry = std::as_const(data_.keys).find(key);
  tracked.seen = entry ? std::optional(*entry) : std::nullopt;
  if (entry && entry->expires) expect_end(*entry->expires);
}

void node::expect_end(wall_ms end) {
  if (next_end_ && *next_end_ <= end) return;
  next_end_ = end;
  on_tracked_end(end);
}

void node::end_expired() {
  tick();
  next_end_.reset();
  std::vector<std::string> over;
  for (const auto& [key, tracked] : tracked_)
    if (tracked.seen && !std::as_const(data_.keys).find(key)) over.push_back(key);
  for (const auto& key : over) push_change(key, false);
  std::optional<wall_ms> next;
  for (const auto& [key, tracked] : tracked_)
    if (tracked.seen && tracked.seen->expires)
      next = std::min(next.value_or(*tracked.seen->expires), *tracked.seen->expires);
  if (next) expect_end(*next);
}

void node::tampered() {
  tick();
  compare_tracked();
  wrote();
}

void node::compare_tracked() {
  std::vector<std::string> changed;
  for (const auto& [key, tracked] : tracked_) {
    const auto* entry = std::as_const(data_.keys).find(key);
    if (entry ? tracked.seen != *entry : tracked.seen.has_value()) changed.push_back(key);
  }
  for (const auto& key : changed) push_change(key, false);
}

void node::push_change(const std::string& key, bool by_command) {
  const auto found = tracked_.find(key);
  if (found == tracked_.end()) return;
  const auto trackers = std::move(found->second.by);
  tracked_.erase(found);
  for (const auto id : trackers) {
    const auto tracker = sessions_.find(id);
    if (tracker == sessions_.end() || !tracker->second.tracks) continue;
    const bool own = by_command && id == current_;
    if (!own || !tracker->second.tracks->no_loop) push_to(id, one_key(key));
  }
}

void node::push_flush() {
  tracked_.clear();
  for (const auto& [id, session] : sessions_)
    if (session.tracks) push_to(id, reply{});
}

void node::push_to(session_id tracker, const reply& keys) {
  const auto to = sessions_.at(tracker).tracks->to;
  const auto listener = sessions_.find(to);
  if (listener == sessions_.end() || !listener->second.listens()) return;
  send_(to, {kind::array, 0, {}, {string_reply("message"), string_reply("__redis__:invalidate"), keys}});
}

}  // namespace holdfast::sim
