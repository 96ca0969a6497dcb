// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/slist_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/error.hpp>
#include <holdfast/lease_state.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/owner_id.hpp>

#include "base/function.hpp"
#include "base/lease_clock.hpp"
#include "protocol/replies.hpp"
#include "sync/claim/claim.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/environment.hpp"
#include "sync/command/handlers.hpp"
#include "sync/hold/change_queue.hpp"
#include "sync/hold/few_leases.hpp"
#include "sync/hold/last_unlock.hpp"
#include "sync/release/releases.hpp"

// Room hold: the owner of a name, the number of its leases, and the end of its possession. Three files share the work.
// This one has the leases, the owner and the count, and ends a hold that is lost. The table of its steps is in
// hold.cpp. unlocking.hpp ends a hold by the wish of its owner. loss.hpp explains a loss, and needs no hold for that.
//
// A hold stands on a claim, which is the possession in Redis (claim.hpp). The claim may outlive the hold: where clients
// take turns, the last unlock hands it to the next hold, and nothing is sent.
//
// Decision: a held lock is five small objects, because a client may hold a million. Name, claim, hold, lease and keys
// of a lock take 592 bytes together (64 bit, names of up to 15 bytes). So a hold has no base with virtual functions.
// Its hooks and its count of references are intrusive. Its small fields are packed at its end. Fields that most holds
// never need are a pointer until then: a second lease, waiting changes, listeners, the text of a loss. Text that
// follows from other fields is not kept: a channel follows from the name, an owner field from its number and the uuid.

namespace holdfast::detail {

class hold;
struct late_vote;
struct loss_facts;
struct lease_record;
struct engine_parts;
using hold_ptr = boost::intrusive_ptr<hold>;

/// The registry's entry of a name. It knows a hold of that name until the hold has ended and has no lease.
class hold_host : public release_host {
 public:
  /// The hold has ended: others may have the name now.
  virtual void ended(hold& hold) = 0;
  // Of a joinable hold: an owner has one lease more or less in it.
  virtual void came(owner_id owner) = 0;
  virtual void left(owner_id owner) = 0;
  /// The hold has ended and has no lease. It calls the host no more.
  virtual void forget(hold& hold) = 0;
  struct handoff_offer {
    bool sound;         // the claim is good for another hold
    milliseconds ttl;   // of the hold until now
    unsigned replicas;  // number of replicas that have the claim
  };
  /// The hold has ended by the wish of its owner. True: the next hold has the claim, and the observer was notified.
  /// False: the claim must be released.
  virtual bool pass_on(hold& hold, const handoff_offer& offer) = 0;

 protected:
  ~hold_host() = default;
};

/// A re-entry that waits for its turn in the changes of a hold.
class hold_reentry : public boost::intrusive::list_base_hook<> {
 public:
  // One of these two is called, once. The hold has taken the re-entry out, and keeps it during the call.
  virtual void hold_ended() = 0;
  /// The engine ends. The caller gets no answer.
  virtual void forget_caller() = 0;

  std::shared_ptr<hold_reentry> kept;  // while it waits; only the hold uses it

 protected:
  ~hold_reentry() = default;
};

/// A counted possession of one name, which stands on a claim. It has one owner. Only a hold of a kind that others join
/// has leases of several owners.
///
/// The leases keep the hold alive, and may outlive everything else. The host knows it by its address alone. So a hold
/// without a lease keeps itself until the host has forgotten it.
class hold final : public boost::intrusive_ref_counter<hold> {
 public:
  struct fencing {
    std::optional<std::uint64_t> token{};
    std::uint16_t spare = 0;
  };
  /// `parts`: outlives every handler of the strand. `host`: is called until forget() or leave_host().
  /// `passes`: number of hand-overs of the claim before this hold.
  hold(claim_ptr on, owner_id owner, bool bound, fencing token, std::uint32_t passes, time_point now,
       const engine_parts& parts, hold_host& host);
  hold(const hold&) = delete;
  hold& operator=(const hold&) = delete;
  ~hold();

  // In its client's pool.
  static void* operator new(std::size_t size, block_pool& in) { return in.take(size); }
  static void operator delete(void* memory, block_pool& in) noexcept { in.give_back(memory, sizeof(hold)); }
  static void operator delete(hold* ended, std::destroying_delete_t) noexcept;

  const std::uint32_t passes;
  const claim_ptr on;
  owner_id owner;  // the first; of a joinable hold without a lease: the last. Only the strand uses it
  const time_point granted_at;
  boost::intrusive::slist_member_hook<> of_host;  // only the host uses it

  // Any thread.
  /// The user gave or bound the owner. Else lock() made one up for this hold alone.
  bool bound() const noexcept { return packed_.bound; }
  std::optional<std::uint64_t> token() const noexcept { return packed_.fenced ? std::optional(token_) : std::nullopt; }
  bool exclusive() const noexcept { return left() > nanoseconds::zero(); }
  /// The rest of the validity. 0 if the hold is lost or released, or the client is closed.
  nanoseconds left() const noexcept;
  /// held, suspended, lost or released. Lost and released are final.
  lease_state state() const noexcept;
  time_point valid_until() const noexcept { return on->valid_until(); }
  /// The text of the loss. Before the strand has noticed the loss, it follows from the clock.
  std::string cause_of_loss() const;
  const shared_keys& keys() const noexcept { return on->keys; }
  const owner_field& field() const noexcept { return on->field; }
  owner_field::text id() const noexcept { return field().hold_id(passes); }
  const clock& time() const noexcept { return on->time(); }
  /// The max_hold of all leases is over, and the hold is not renewed.
  bool renewal_paused() const noexcept { return packed_.renewal_paused.load(std::memory_order_acquire); }
  // Only exchanges write the flag, never a store: each one sees everything that the feeders before it wrote.
  void pause_renewal() noexcept { packed_.renewal_paused.exchange(true, std::memory_order_acq_rel); }
  /// True: renewal was paused, and the caller must notify the watchdog.
  bool resume_renewal() noexcept { return packed_.renewal_paused.exchange(false, std::memory_order_acq_rel); }
  /// The hold was lost or released. A validity that has just run out does not count before live() has noticed it.
  bool ended() const noexcept;

  // The client's strand, from here on.
  /// Its leases may have several owners (kind::joins).
  bool joinable() const noexcept { return keys()->of.joins > milliseconds::zero(); }
  /// The owner has the hold, or a lease of a joinable one.
  bool held_by(owner_id by) const noexcept;
  /// The number of this owner's leases.
  std::size_t count_of(owner_id by) const noexcept;
  /// Visits the owner of the hold, or of each lease of a joinable one.
  template <class Visitor>
  void each_owner(Visitor visit) const {
    if (!joinable() || leases_.empty()) return visit(owner);
    for (const auto* lease : leases_.all()) visit(owner_of(*lease));
  }
  /// The leases that it has now.
  std::span<lease_record* const> leases() const noexcept { return leases_.all(); }
  /// The hold has not ended. If its validity has run out, this call ends it.
  bool live();
  /// The reason of a loss; not_held after a release.
  error_code end_reason() const noexcept { return packed_.end_reason; }
  const std::string& end_detail() const noexcept;
  failure end_cause() const noexcept { return redis::failure_with(end_reason(), end_detail()); }
  /// Ends the hold as lost and notifies all its leases and re-entries. Does nothing if the hold has ended.
  void lose(errc reason);
  /// The client is closed. The hold is lost, and no re-entry waits any more. The caller keeps the hold.
  void close();
  bool client_closed() const noexcept;
  /// A force_unlock() of this client has broken a hold of the name.
  void forced() noexcept { packed_.forced = true; }
  /// The answer to a renewal: the hold is about to be lost.
  void denied(renewal_answer why) noexcept { packed_.shared = why == renewal_answer::shared; }
  /// The answer to a renewal. Every answer except a confirmation ends the hold.
  void heed(renewal_answer answer);
  /// A message says that the lock was freed. The hold is confirmed within `pause`. Until then it is neither passed on
  /// nor re-entered without asking.
  void doubt(nanoseconds pause);
  /// The host ends, or could not make the first lease. The hold is renewed no more, and calls the host no more.
  void leave_host() noexcept;
  /// The engine ends. The waiting changes never begin. Needs no memory.
  void forget_changes() noexcept;

  // The leases. Their number is the count that the server should have.
  std::size_t count() const noexcept { return leases_.all().size(); }
  /// Whether a nested lock() of these terms gets a lease at once. Nothing may be in doubt, and the terms may not ask
  /// for more than the hold has.
  bool covers(const terms& asked, time_point now) const noexcept;
  /// One more lease, which the hold covers. The server gets the new count afterwards.
  std::shared_ptr<lease_record> enter(owner_id by, const terms& asked, time_point now);
  /// One more lease, by a command that was sent at `sent` and confirmed by these primaries.
  std::shared_ptr<lease_record> grant(owner_id by, const terms& asked, time_point sent, time_point now, primary_set at);
  /// A primary has answered the acquire of this hold after the majority.
  void hear_of(std::size_t primary, const late_vote& late, milliseconds ttl);
  /// The first lease of a hold to which a valid claim was handed. Needs no command.
  std::shared_ptr<lease_record> take_over(const terms& asked, time_point now);
  /// Adds a lease that was made elsewhere.
  void add(lease_record& lease);
  /// The token of the next hold of the same claim; none if the block of tokens is used up.
  fencing next_token() const noexcept {
    const auto spare = packed_.spare_tokens;
    return packed_.fenced && spare > 0 ? fencing{token_ + 1, static_cast<std::uint16_t>(spare - 1)} : fencing();
  }
  void renew(std::shared_ptr<lease_record> lease, milliseconds ttl, time_point answer_by, done_handler done);

  /// Notifies the observer.
  void report(event_kind happened, error_code reason = {}, std::string_view detail = {},
              loss_cause cause = loss_cause::none) const;

  // A downgrade of the only lease, while its change runs (downgrade.hpp).
  /// Its command is sent. The claim is in doubt until the answer, and is not renewed. Behind the command a renewal or
  /// a count would be denied.
  void begin_downgrade();
  /// Its command may run or have run. An answer about the writer's field proves nothing.
  bool downgrading() const noexcept { return packed_.downgrading && !ended(); }
  /// The command has not run, and never will. The hold goes on, and is confirmed at once.
  void no_downgrade();
  /// The command may have run. The hold is lost, and its field is released.
  void lose_downgraded();
  /// Another hold stands for the only lease from now on. This one ends, and nothing is released.
  void replaced(lease_record& lease);

  // The wishes of the leases.
  /// The TTL that a renewal gives the key: the longest of all leases.
  milliseconds ttl() const noexcept;
  /// The number of replicas that must confirm a renewal: the highest of all leases.
  unsigned min_replicas() const noexcept;
  bool wants_renewal(time_point now) const noexcept { return now < renewed_until(); }
  /// The latest end of max_hold of the leases that ask for renewal. The end of time if one of them has no max_hold.
  time_point renewed_until() const noexcept;
  /// Pauses renewal unless a lease wants it. True: it is paused now. After the pause is noted the wish is asked once
  /// more, because a feeder in between saw no pause and notifies nobody.
  template <class Predicate>
  bool pause_renewal_unless(Predicate wanted) {
    if (!wanted()) {
      pause_renewal();
      if (!wanted()) return true;
    }
    resume_renewal();
    return false;
  }

  // Commands that change the count run one after the other: a repeated command must not undo a later one.
  template <class Change>
  void begin_change(Change change) {
    changes_.add(std::move(change));
  }
  /// Ends the change under way. May destroy the hold, if nothing else keeps it.
  void end_change();
  bool changing() const noexcept { return changes_.busy(); }
  /// The TTL that a command must send if it wants `wanted`. It shortens nothing, and is noted as sent.
  key_ttl ttl_to_send(milliseconds wanted);
  /// The TTL that a count gives the key: that of a renewal if the hold is renewed, else one that raises nothing.
  milliseconds ttl_to_keep() const noexcept;
  /// The server has answered this count; 0: the count is unknown.
  void note_count(unsigned at_server) noexcept {
    on->counted.leases = at_server;
    on->counted.ever_sent = true;
  }
  /// Another server may have the key with an older count. Sends the count once more, if one was ever sent.
  void count_elsewhere() noexcept;
  /// The server has confirmed a count that was sent at `sent` with this TTL. That is as good as a renewal, unless the
  /// hold is in doubt or wants replicas.
  void confirmed_by_count(time_point sent, milliseconds ttl, primary_set at);
  /// The hold keeps the re-entry until it is taken out.
  void add(std::shared_ptr<hold_reentry> waiting) noexcept {
    reentries_.push_back(*waiting);
    waiting->kept = std::move(waiting);
  }
  std::shared_ptr<hold_reentry> take_out(hold_reentry& waiting) noexcept {
    reentries_.erase(reentries_.iterator_to(waiting));
    return std::move(waiting.kept);
  }

 private:
  friend class unlocking;  // the other half of the room: the end by the wish of the owner

  using text = std::unique_ptr<const std::string>;  // null: empty
  using reentries = boost::intrusive::list<hold_reentry, boost::intrusive::constant_time_size<false>>;

  /// The small fields, without padding: there are as many holds as held locks.
  struct packed {
    const std::uint16_t spare_tokens;  // after its own, for the next holds of the claim
    const bool bound;
    const bool fenced;  // it has a token
    std::atomic<bool> renewal_paused{false};
    bool forced : 1 = false;
    bool shared : 1 = false;                          // the key has the fields of others as well
    bool half_done : 1 = false;                       // a downgrade may have run, and was not confirmed
    bool downgrading : 1 = false;                     // the command of a downgrade is sent
    bool kept : 1 = false;                            // it refers to itself, from the last unlock on
    std::atomic<lease_state> end{lease_state::held};  // or lost, or released; the claim knows whether it is suspended
    errc end_reason : 8 = {};
  };
  static_assert(sizeof(packed) == 8);

  hold_ptr self() noexcept { return hold_ptr(this); }
  void keep_itself() noexcept {
    if (!packed_.kept) intrusive_ptr_add_ref(this);
    packed_.kept = true;
  }
  /// Null if the hold did not keep itself.
  hold_ptr no_more_kept() noexcept {
    hold_ptr own(packed_.kept ? this : nullptr, false);
    packed_.kept = false;
    return own;
  }
  std::shared_ptr<lease_record> make_lease(owner_id by, const terms& asked, time_point now);
  void remove(const lease_record& lease) noexcept;
  void tell_wishes() noexcept;
  void tell_owner(owner_id by);
  static owner_id owner_of(const lease_record& lease) noexcept;
  void tell_count() noexcept;
  bool confirm(time_point sent, milliseconds ttl, primary_set at);
  void answer_after_downgrade(done_handler done);
  topology::handler when_replicated(topology::handler then);
  bool unquestioned() const noexcept;
  void end(lease_state as, errc reason, text detail) noexcept;
  void end_by_loss(errc reason);
  text text_of(const loss_facts& loss) const noexcept;
  void tell_reentries();
  void leave_claim() noexcept;
  void leave_if_forgotten();

  const engine_parts& parts_;
  hold_host* host_;            // null once the host has forgotten the hold
  const std::uint64_t token_;  // if packed_.fenced
  text end_detail_;
  few_leases leases_;
  change_queue changes_;
  std::forward_list<last_unlock> last_unlocks_;  // they wait for their turn
  reentries reentries_;
  packed packed_;
};

/// An event about the hold, with all its facts except the TTL.
hold_event event_of(event_kind kind, const hold& hold, time_point at);

}  // namespace holdfast::detail
