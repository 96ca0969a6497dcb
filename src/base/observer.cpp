// SPDX-License-Identifier: BSL-1.0
#include <holdfast/observer.hpp>

#include <memory>
#include <utility>

namespace holdfast {
namespace {

class tee_observer final : public observer {
 public:
  tee_observer(std::shared_ptr<observer> first, std::shared_ptr<observer> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  void on(const event& event) noexcept override {
    first_->on(event);
    second_->on(event);
  }
  bool wants_ids() const noexcept override { return first_->wants_ids() || second_->wants_ids(); }
  void measured(const measurement& measurement) noexcept override {
    first_->measured(measurement);
    second_->measured(measurement);
  }

 private:
  const std::shared_ptr<observer> first_, second_;
};

}  // namespace

std::string_view to_string(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::acquired: return "acquired";
    case event_kind::reentered: return "reentered";
    case event_kind::not_acquired: return "not_acquired";
    case event_kind::acquire_failed: return "acquire_failed";
    case event_kind::acquire_cancelled: return "acquire_cancelled";
    case event_kind::released: return "released";
    case event_kind::passed: return "passed";
    case event_kind::release_failed: return "release_failed";
    case event_kind::lost: return "lost";
    case event_kind::closed: return "closed";
    case event_kind::dropped_at_once: return "dropped_at_once";
    case event_kind::renewal_failed: return "renewal_failed";
    case event_kind::suspended: return "suspended";
    case event_kind::restored: return "restored";
    case event_kind::released_late: return "released_late";
    case event_kind::release_given_up: return "release_given_up";
    case event_kind::waiting_for_ourselves: return "waiting_for_ourselves";
    case event_kind::perhaps_waiting_for_ourselves: return "perhaps_waiting_for_ourselves";
    case event_kind::lock_order_broken: return "lock_order_broken";
    case event_kind::foreign_unlock: return "foreign_unlock";
    case event_kind::not_replicated: return "not_replicated";
    case event_kind::outage: return "outage";
    case event_kind::connected: return "connected";
    case event_kind::fencing_degraded: return "fencing_degraded";
    case event_kind::notifications_degraded: return "notifications_degraded";
    case event_kind::push_degraded: return "push_degraded";
    case event_kind::notes_degraded: return "notes_degraded";
    case event_kind::primary_changed: return "primary_changed";
    case event_kind::sentinels_unreachable: return "sentinels_unreachable";
    case event_kind::ttl_shorter_than_failover: return "ttl_shorter_than_failover";
    case event_kind::vote_withheld: return "vote_withheld";
    case event_kind::delayed_restart_degraded: return "delayed_restart_degraded";
    case event_kind::slots_moved: return "slots_moved";
  }
  return "unknown";
}

std::string_view to_string(loss_cause cause) noexcept {
  switch (cause) {
    case loss_cause::none: return "none";
    case loss_cause::unconfirmed: return "unconfirmed";
    case loss_cause::not_renewed: return "not_renewed";
    case loss_cause::denied: return "denied";
    case loss_cause::forced: return "forced";
    case loss_cause::corrupt: return "corrupt";
  }
  return "unknown";
}

observer::~observer() = default;

// Not inline: the compiler would guess at each call that nobody has overridden them.
void observer::on(const event&) noexcept {}
void observer::measured(const measurement&) noexcept {}

std::shared_ptr<observer> tee(std::shared_ptr<observer> first, std::shared_ptr<observer> second) {
  if (!first) return second;
  if (!second) return first;
  return std::make_shared<tee_observer>(std::move(first), std::move(second));
}

}  // namespace holdfast
