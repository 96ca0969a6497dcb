// SPDX-License-Identifier: BSL-1.0
#include "sync/command/environment.hpp"

#include <new>
#include <utility>

#include "base/cancelled.hpp"
#include "base/escape.hpp"
#include "base/if_memory.hpp"
#include "sync/claim/terms.hpp"

namespace holdfast::detail {

void environment::when_replicated(std::string_view key, unsigned wanted, std::uint64_t server, time_point valid,
                                  function<void(std::optional<redis::failure>)> then) const {
  // Replicas are waited for only while the grant is still worth something.
  const auto deadline = now() + replication_budget(settings, valid, now());
  auto heard = [wanted, then = std::move(then)](const std::optional<redis::failure>& failed, unsigned had) {
    then(too_few_replicas(failed, had, wanted));
  };
  servers.replicated(key, {wanted, server, deadline}, std::move(heard));
}

std::optional<redis::failure> too_few_replicas(const std::optional<redis::failure>& failed, unsigned had,
                                               unsigned wanted) {
  // Callers see one code for every cause, because they react alike.
  if (failed) return redis::failure_with(errc::not_replicated, failed->detail);
  if (had >= wanted) return std::nullopt;
  redis::failure why{errc::not_replicated, {}};
  if_memory([&] { why.detail = std::to_string(had) + " of " + std::to_string(wanted) + " in time"; });
  return why;
}

// The flag is set before the report, and never cleared: a missing permission concerns every release, and one event is
// enough. Without memory for the text, the next release reports it.
void environment::note_withheld_message(const outcome& outcome) try {
  if (message_withheld) return;
  const auto why = withheld_message(outcome);
  if (!why) return;
  message_withheld = true;
  report({.kind = event_kind::notifications_degraded, .reason = why->code, .detail = why->detail});
} catch (const std::bad_alloc&) {
}

void environment::report_with_id(hold_event& event) const {
  // The content refers to this text only until the observer returns.
  const auto id = event.id->hold_id(event.passes);
  event.content.id = id;
  settings.observer->on(event.content);
}

event_kind end_of_call(const std::optional<redis::failure>& failed) noexcept {
  if (!failed) return event_kind::not_acquired;
  // A caller that gave up, or a client that ends, says nothing about the health of Redis.
  const auto& code = failed->code;
  const bool unwanted = code == cancelled() || code == errc::closed || code == errc::shutting_down;
  return unwanted ? event_kind::acquire_cancelled : event_kind::acquire_failed;
}

std::string about(std::string_view name, std::string_view cause) {
  std::string text = "lock " + in_quotes(name);
  if (!cause.empty()) text.append(": ").append(cause);
  return text;
}

}  // namespace holdfast::detail
