// SPDX-License-Identifier: BSL-1.0
#include "sync/command/surroundings.hpp"

#include <memory>
#include <new>
#include <utility>

#include "base/cancelled.hpp"
#include "base/escape.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/script_command.hpp"
#include "sync/hold/hold.hpp"

namespace holdfast::detail {
namespace {

class one_call : public script_command {
 public:
  explicit one_call(topology::handler done) : done_(std::move(done)) {}

 private:
  void on_answer(const outcome& o) final { std::exchange(done_, {})(o); }

  topology::handler done_;  // emptied when it is called
};

class bounded_call final : public one_call {
 public:
  bounded_call(topology::handler done, const clock& time, time_point end)
      : one_call(std::move(done)), time_(time), end_(end) {}

 private:
  std::optional<nanoseconds> time_left_for_copies() const override { return end_ - time_.now(); }

  const clock& time_;
  const time_point end_;
};

}  // namespace

void surroundings::run(const call& what, const delivery& how, topology::handler done) const {
  make_pooled<one_call>(blocks, std::move(done))->send(*this, what, how);
}

void surroundings::run_until(time_point end, const call& what, urgency rank, topology::handler done) const {
  make_pooled<bounded_call>(blocks, std::move(done), time, end)
      ->send(*this, what, {.timeout = end - now(), .rank = rank});
}

void surroundings::run_at(std::size_t primary, const call& what, const delivery& how, topology::handler done) const {
  make_pooled<one_call>(blocks, std::move(done))->send(servers.primary(primary), what, how);
}

void surroundings::when_replicated(std::string_view key, unsigned wanted, std::uint64_t server, time_point valid,
                                   function<void(std::optional<redis::failure>)> then) const {
  const auto deadline = now() + replication_budget(settings, valid, now());
  auto heard = [wanted, then = std::move(then)](const std::optional<redis::failure>& failed, unsigned had) {
    then(too_few_replicas(failed, had, wanted));
  };
  servers.replicated(key, {wanted, server, deadline}, std::move(heard));
}

std::optional<redis::failure> too_few_replicas(const std::optional<redis::failure>& failed, unsigned had,
                                               unsigned wanted) {
  if (failed) return redis::failure{errc::not_replicated, failed->detail};
  if (had >= wanted) return std::nullopt;
  return redis::failure{errc::not_replicated, std::to_string(had) + " of " + std::to_string(wanted) + " in time"};
}

// Without memory for the text, the next release reports it.
void surroundings::note_withheld_message(const outcome& o) try {
  if (message_withheld) return;
  const auto why = withheld_message(o);
  if (!why) return;
  message_withheld = true;
  report({.what = event::kind::notifications_degraded, .reason = why->code, .detail = why->detail});
} catch (const std::bad_alloc&) {
}

void surroundings::report(event::kind what, const hold& h, error_code reason, std::string_view detail,
                          loss_cause cause) const {
  if (!settings.observer) return;
  auto e = event_of(what, h, now());
  e.what.ttl = h.ttl();
  e.what.cause = cause;
  e.what.reason = reason;
  e.what.detail = detail;
  report(std::move(e));
}

void surroundings::report_with_id(hold_event& e) const {
  const auto id = e.id->hold_id(e.passes);
  e.what.id = id;
  settings.observer->on(e.what);
}

event::kind end_of_call(const error_code& failed) noexcept {
  if (!failed) return event::kind::not_acquired;
  const bool unwanted = failed == cancelled() || failed == errc::closed || failed == errc::shutting_down;
  return unwanted ? event::kind::acquire_cancelled : event::kind::acquire_failed;
}

std::string about(std::string_view name, std::string_view cause) {
  std::string text = "lock " + in_quotes(name);
  if (!cause.empty()) text.append(": ").append(cause);
  return text;
}

}  // namespace holdfast::detail
