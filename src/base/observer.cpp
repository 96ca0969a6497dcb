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
  void on(const event& e) noexcept override {
    first_->on(e);
    second_->on(e);
  }
  bool wants_ids() const noexcept override { return first_->wants_ids() || second_->wants_ids(); }
  void measured(const measurement& m) noexcept override {
    first_->measured(m);
    second_->measured(m);
  }

 private:
  const std::shared_ptr<observer> first_, second_;
};

}  // namespace

std::string_view to_string(event::kind kind) noexcept {
  switch (kind) {
    case event::kind::acquired: return "acquired";
    case event::kind::reentered: return "reentered";
    case event::kind::not_acquired: return "not_acquired";
    case event::kind::acquire_failed: return "acquire_failed";
    case event::kind::acquire_cancelled: return "acquire_cancelled";
    case event::kind::released: return "released";
    case event::kind::passed: return "passed";
    case event::kind::release_failed: return "release_failed";
    case event::kind::lost: return "lost";
    case event::kind::closed: return "closed";
    case event::kind::dropped_at_once: return "dropped_at_once";
    case event::kind::renewal_failed: return "renewal_failed";
    case event::kind::suspended: return "suspended";
    case event::kind::restored: return "restored";
    case event::kind::released_late: return "released_late";
    case event::kind::release_given_up: return "release_given_up";
    case event::kind::waiting_for_ourselves: return "waiting_for_ourselves";
    case event::kind::perhaps_waiting_for_ourselves: return "perhaps_waiting_for_ourselves";
    case event::kind::lock_order_broken: return "lock_order_broken";
    case event::kind::foreign_unlock: return "foreign_unlock";
    case event::kind::not_replicated: return "not_replicated";
    case event::kind::outage: return "outage";
    case event::kind::connected: return "connected";
    case event::kind::fencing_degraded: return "fencing_degraded";
    case event::kind::notifications_degraded: return "notifications_degraded";
    case event::kind::primary_changed: return "primary_changed";
    case event::kind::sentinels_unreachable: return "sentinels_unreachable";
    case event::kind::ttl_shorter_than_failover: return "ttl_shorter_than_failover";
    case event::kind::vote_withheld: return "vote_withheld";
    case event::kind::delayed_restart_degraded: return "delayed_restart_degraded";
    case event::kind::slots_moved: return "slots_moved";
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
