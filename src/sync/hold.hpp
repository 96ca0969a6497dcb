// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include <holdfast/error.hpp>
#include <holdfast/lease_state.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/owner_id.hpp>

#include "base/function.hpp"
#include "base/lease_clock.hpp"
#include "sync/change_queue.hpp"
#include "sync/claim.hpp"
#include "sync/terms.hpp"

namespace holdfast::detail {

struct lease_record;

/// Waits for its turn with a hold.
class hold_waiter {
 public:
  virtual void hold_lost() = 0;

 protected:
  ~hold_waiter() = default;
};

/// One owner's possession of one name, counted: it stands on a claim. Plain memory: leases may outlive everything else.
struct hold : std::enable_shared_from_this<hold> {
  hold(std::shared_ptr<claim> on, owner_id who, bool bound);

  // Any thread.
  bool exclusive() const noexcept { return left() > nanoseconds::zero(); }
  nanoseconds left() const noexcept;  // of the validity; 0 once lost, released or the client closed
  /// held, suspended, lost or released. Lost and released are final.
  lease_state state() const noexcept;
  time_point valid_until() const noexcept { return on->valid_until(); }
  /// How it is known that the hold is lost: what was told, or what its clock says before anybody is.
  std::string cause_of_loss() const;
  const shared_keys& keys() const noexcept { return on->keys; }
  const owner_field& field() const noexcept { return on->field; }
  const clock& time() const noexcept { return on->time(); }
  /// Its max_hold is over, and nobody renews it.
  bool renewal_paused() const noexcept { return renewal_paused_.load(std::memory_order_acquire); }
  void pause_renewal() noexcept { renewal_paused_.store(true, std::memory_order_release); }
  /// True: it was paused, and the watchdog is to be told.
  bool resume_renewal() noexcept { return renewal_paused_.exchange(false, std::memory_order_acq_rel); }

  /// end() was called; a validity that has just run out does not count before.
  bool ended() const noexcept;

  // The client's strand, and so is all that follows.
  /// Lost or released, for good. `why`, `detail`: what its leases hear.
  void end(lease_state how, error_code why, std::string detail = {}) noexcept;
  const error_code& end_reason() const noexcept { return end_reason_; }
  const std::string& end_detail() const noexcept { return end_detail_; }
  /// The TTL that the server's key should get from a renewal.
  milliseconds ttl() const noexcept;
  bool wants_renewal(time_point now) const noexcept { return now < renewed_until(); }
  /// When the last of its leases that ask for renewal has come to its max_hold; the end of time when one has none.
  time_point renewed_until() const noexcept;
  /// Whether renewal is paused now, because nobody wants it. Asked once more when that is noted: who fed a lease
  /// meanwhile saw no pause.
  template <class Predicate>
  bool pause_renewal_unless(Predicate wanted) {
    if (!wanted()) {
      renewal_paused_.exchange(true, std::memory_order_acq_rel);  // no mere store: it sees what a feeder wrote before
      if (!wanted()) return true;
    }
    renewal_paused_.store(false, std::memory_order_release);
    return false;
  }

  const std::shared_ptr<claim> on;
  const owner_id who;
  const bool bound;                    // the owner was given or bound, not made up for one lock()
  std::optional<std::uint64_t> token;  // set once, with the grant
  time_point granted_at{};

  // The live ones; their number is the count that the server should have.
  boost::container::small_vector<lease_record*, 1> leases;
  bool forced = false;  // force_unlock() of this client has broken a hold of the name meanwhile

  // Commands that change the count run one after the other: a repeated one must not undo a later one.
  change_queue changes;
  /// One that is queued, and was the last lease's when it was called. Re-entries may be granted between several: one
  /// release answers all.
  struct last_unlock {
    milliseconds ttl;  // of the hold at the call
    time_point called;
    time_point answer_by;
    function<void(error_code, std::string detail)> done;
  };
  std::list<last_unlock> last_unlocks;
  std::list<hold_waiter*> reentries;  // not answered yet

 private:
  std::atomic<lease_state> end_{lease_state::held};  // or lost, or released; its claim knows whether it is suspended
  error_code end_reason_;
  std::string end_detail_;
  std::atomic<bool> renewal_paused_{false};
};

/// What an event says of its hold.
event event_of(event::kind what, const hold& h, time_point now);

}  // namespace holdfast::detail
