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
#include <holdfast/lease.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/owner.hpp>

#include "base/birthplace.hpp"
#include "base/function.hpp"
#include "base/lease_clock.hpp"
#include "protocol/protocol.hpp"
#include "sync/terms.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

class core;
struct lease_record;

/// Waits for its turn with a hold.
class hold_waiter {
 public:
  virtual void hold_lost() = 0;

 protected:
  ~hold_waiter() = default;
};

/// One owner's possession of one name, counted. Plain memory: leases may outlive everything else.
struct hold : std::enable_shared_from_this<hold> {
  hold(const clock& time, shared_keys keys, owner_field field, owner who, bool bound,
       std::shared_ptr<const std::atomic<bool>> client_closed);

  // Any thread.
  bool exclusive() const noexcept { return left() > nanoseconds::zero(); }
  nanoseconds left() const noexcept;  // of the validity; 0 once lost, released or the client closed
  /// held, suspended, lost or released. Lost and released are final.
  lease_state state() const noexcept;
  time_point valid_until() const noexcept;
  /// How it is known that the hold is lost: what was told, or what its clock says before anybody is.
  std::string cause_of_loss() const;

  // The client's strand, and so is all that follows.
  bool extend(time_point until) noexcept;  // never shortens; false: somebody has seen the validity over, and over it is
  void enter(lease_state s) noexcept;
  /// Lost or released in the registry's eyes; a validity that has just run out does not count before lose() was called.
  bool ended() const noexcept;
  /// The TTL that the server's key should get from a renewal.
  milliseconds ttl() const noexcept;
  /// What to send where a TTL of `wanted` would do: what is claimed already must stay covered, and where the key has no
  /// TTL any more, also what is still in flight and may be claimed with its answer. It is noted: the key may get it
  /// without an answer. `rho`: by how much the server's clock may be faster.
  key_ttl ttl_to_send(milliseconds wanted, double rho) noexcept;
  /// For how long the key may live by all that was sent, if that arrived at once.
  milliseconds may_live(double rho) const noexcept;
  bool wants_renewal(time_point now) const noexcept { return now < renewed_until(); }
  /// When the last of its leases that ask for renewal has come to its max_hold; the end of time when one has none.
  time_point renewed_until() const noexcept;
  /// Whether renewal is paused now, because nobody wants it. Asked once more when that is noted: who fed a lease
  /// meanwhile saw no pause.
  template <class Predicate>
  bool pause_renewal_unless(Predicate wanted) {
    if (!wanted()) {
      renewal_paused.exchange(true, std::memory_order_acq_rel);  // no mere store: it sees what a feeder wrote before
      if (!wanted()) return true;
    }
    renewal_paused.store(false, std::memory_order_release);
    return false;
  }

  const clock& time;
  const shared_keys keys;
  const owner_field field;
  const owner who;
  const bool bound;                    // the owner was given or bound, not made up for one lock()
  std::optional<std::uint64_t> token;  // set once, with the grant
  time_point granted_at{};

  // The live ones; their number is the count that the server should have.
  boost::container::small_vector<lease_record*, 1> leases;
  error_code lost_reason;
  std::string lost_because;  // how a loss is known; written once, before the state is lost
  bool forced = false;       // force_unlock() of this client has broken a hold of the name meanwhile

  // Commands that change the count run one after the other: a repeated one must not undo a later one.
  std::list<function<void()>> changes;
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
  bool changing = false;
  unsigned changes_over = 0;  // not followed by the next yet

  const birthplace here;  // a copy in a child process holds nothing

  // The watchdog's.
  struct due_renewal {
    time_point by;
    node_id node;
  };
  std::optional<time_point> renew_at;       // its place in the order of renewals
  std::optional<due_renewal> due;           // its place among those whose renewal is due
  std::optional<time_point> expires_at;     // its place in the order of expiries; lags behind valid_until()
  bool renewing = false;                    // a renewal is in flight
  std::optional<time_point> confirm_by;     // a doubt came meanwhile: confirmed once more, by then
  std::atomic<bool> renewal_paused{false};  // max_hold is over; lease::feed() on any thread takes it back

 private:
  milliseconds left_until(time_point when, double rho) const noexcept;

  mutable std::atomic<time_point::rep> valid_until_{0};  // negative once somebody has seen it over
  time_point may_live_until_{};
  std::atomic<lease_state> state_{lease_state::held};
  const std::shared_ptr<const std::atomic<bool>> client_closed_;
};

/// What an event says of its hold.
event event_of(event::kind what, const hold& h, time_point now);

/// Leases that were dropped and are not given up yet. Any thread, and no memory: each is in the list by itself, and
/// keeps itself alive there, because its hold still refers to it.
class dropped_leases {
 public:
  struct link {
    link* next = nullptr;
    std::shared_ptr<lease_record> self;
  };

  dropped_leases() = default;
  dropped_leases(const dropped_leases&) = delete;
  dropped_leases& operator=(const dropped_leases&) = delete;
  ~dropped_leases() { close(); }

  void push(std::shared_ptr<lease_record> lease) noexcept;
  /// The oldest one; null when there is none. On the strand.
  std::shared_ptr<lease_record> pop() noexcept;
  /// No hold refers to a lease any more: forgets all, also those that are still to come. On the strand, or after it.
  void close() noexcept;

 private:
  link closed_;  // in newest_: the end of the list for good
  std::atomic<link*> newest_{nullptr};
  link* oldest_ = nullptr;  // of those that were taken over: the strand's
};

/// What a lease points to.
struct lease_record : dropped_leases::link {
  lease_record(std::shared_ptr<hold> of, terms asked, time_point now, const std::weak_ptr<core>& home);

  // Any thread.
  bool try_release() noexcept { return !released.exchange(true, std::memory_order_acq_rel); }  // true once
  /// When its max_hold is over; the beginning of time where it asks for no renewal.
  time_point renewed_until() const noexcept;
  lease_state state() const noexcept;
  void note_use() noexcept {
    if (!used.load(std::memory_order_relaxed)) used.store(true, std::memory_order_relaxed);
  }
  /// Its lease is being destroyed: was that all that happened to it?
  void note_drop() noexcept;
  /// Starts max_hold anew. True: its hold is renewed no more, the watchdog is to be told.
  bool feed() noexcept;

  const std::shared_ptr<hold> of;
  const terms asked;
  const std::shared_ptr<core> home;  // plain memory, too
  std::atomic<bool> released{false};
  std::atomic<time_point::rep> fed_at;  // the grant, or the last feed()
  /// While the call runs that resumes its caller with it: since when; else 0.
  std::atomic<time_point::rep> handed_over_at{0};
  std::atomic<bool> used{false};  // something was asked of its lease
  bool dropped_at_once = false;   // written before it is given up

  // The client's strand.
  /// Called once: with the reason of a loss, or with not_held when the lease was released.
  using end_listener = function<void(error_code)>;
  std::list<end_listener> end_listeners;
  void tell_end(error_code reason);
};

}  // namespace holdfast::detail
