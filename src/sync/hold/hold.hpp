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

// Room hold: who has a name, how often, and how that ends. Three files share the work. This one has the leases, the
// owner and the count, and ends a hold that is lost. unlocking.hpp ends it by its owner's wish; the table of its states
// is there. loss.hpp explains a loss, and needs no hold for that.
//
// A hold stands on a claim, which is the possession in Redis. The two are apart because the claim may outlive the hold:
// where clients take turns, the last unlock hands it to the next hold, and nothing is sent.
//
// There are as many holds as held locks, and each byte counts. A hold has no base with virtual functions, its hooks are
// intrusive, and all that is small is packed at its end.

namespace holdfast::detail {

class hold;
struct late_vote;
struct loss_facts;
struct lease_record;
struct engine_parts;
using hold_ptr = boost::intrusive_ptr<hold>;

/// The registry's entry of a hold's name: it knows the hold until that has ended and nobody has a lease of it.
class hold_host : public release_host {
 public:
  /// It has ended: others may have the name now.
  virtual void ended(hold& hold) = 0;
  /// It has ended, and nobody has a lease of it.
  virtual void forget(hold& hold) = 0;
  struct handoff_offer {
    bool sound;         // the claim is good for another hold
    milliseconds ttl;   // of the hold until now
    unsigned replicas;  // so many have the claim
  };
  /// It has ended by its holder's wish. True: its claim is the next hold's now, and the observer was told. False: the
  /// claim is to be released.
  virtual bool pass_on(hold& hold, const handoff_offer& offer) = 0;

 protected:
  ~hold_host() = default;
};

/// Waits for its turn with a hold.
class hold_reentry : public boost::intrusive::list_base_hook<> {
 public:
  // It hears one of these, once, and removes itself in that call.
  virtual void hold_ended() = 0;
  /// The engine ends: its caller is not answered.
  virtual void forget_caller() = 0;

 protected:
  ~hold_reentry() = default;
};

/// One owner's possession of one name, counted: it stands on a claim. Its leases keep it alive, and they may outlive
/// everything else; its host knows it by its address. With no lease left it keeps itself until its host has forgotten
/// it.
class hold final : public boost::intrusive_ref_counter<hold> {
 public:
  struct fencing {
    std::optional<std::uint64_t> token{};
    std::uint16_t spare = 0;
  };
  /// `parts`: outlives every handler of the strand. `host`: hears of it until forget() or leave_host().
  /// `passes`: of the claim, before it.
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
  const owner_id owner;
  const time_point granted_at;
  const void* coroutine = nullptr;                // the thread of co_spawn that has taken it; null: it cannot be known
  boost::intrusive::slist_member_hook<> of_host;  // its host's alone

  // Any thread.
  /// The owner was given or bound, not made up for one lock().
  bool bound() const noexcept { return packed_.bound; }
  std::optional<std::uint64_t> token() const noexcept { return packed_.fenced ? std::optional(token_) : std::nullopt; }
  bool exclusive() const noexcept { return left() > nanoseconds::zero(); }
  nanoseconds left() const noexcept;  // of the validity; 0 once lost, released or the client closed
  /// held, suspended, lost or released. Lost and released are final.
  lease_state state() const noexcept;
  time_point valid_until() const noexcept { return on->valid_until(); }
  /// How it is known that the hold is lost: what was told, or what its clock says before anybody is.
  std::string cause_of_loss() const;
  const shared_keys& keys() const noexcept { return on->keys; }
  const owner_field& field() const noexcept { return on->field; }
  owner_field::text id() const noexcept { return field().hold_id(passes); }
  const clock& time() const noexcept { return on->time(); }
  /// Its max_hold is over, and nobody renews it.
  bool renewal_paused() const noexcept { return packed_.renewal_paused.load(std::memory_order_acquire); }
  // Exchanges alone write it, never a store: each sees what all feeders before it wrote.
  void pause_renewal() noexcept { packed_.renewal_paused.exchange(true, std::memory_order_acq_rel); }
  /// True: it was paused, and the watchdog is to be told.
  bool resume_renewal() noexcept { return packed_.renewal_paused.exchange(false, std::memory_order_acq_rel); }
  /// It was lost or released; a validity that has just run out does not count before live() has seen it.
  bool ended() const noexcept;

  // The client's strand, and so is all that follows.
  /// It has not ended; if its validity has run out, that ends it now.
  bool live();
  /// Of one that has ended; not_held where it was released.
  error_code end_reason() const noexcept { return packed_.end_reason; }
  const std::string& end_detail() const noexcept;
  /// Lost: all its leases and re-entries are told. Nothing happens if it has ended.
  void lose(errc reason);
  /// The client is closed: the hold is lost, and nobody waits for a turn with it any more.
  void close();
  bool client_closed() const noexcept;
  /// force_unlock() of this client has broken a hold of the name.
  void forced() noexcept { packed_.forced = true; }
  /// The answer to a renewal: the hold is about to be lost.
  void denied(renewal_answer why) noexcept { packed_.shared = why == renewal_answer::shared; }
  /// A message says that the lock was freed: it is confirmed within `pause`, and neither passed on nor entered
  /// before that.
  void doubt(nanoseconds pause);
  /// Its host ends, or could not make its first lease: the hold is renewed no more, and its host hears no more of it.
  void leave_host() noexcept;
  /// The engine ends: what waits for its turn never has it. Needs no memory.
  void forget_changes() noexcept;

  // Its leases; their number is the count that the server should have.
  std::size_t count() const noexcept { return leases_.all().size(); }
  /// Whether a nested lock() of these terms has a lease at once: nothing is in doubt, and they ask for no more than
  /// the hold has.
  bool covers(const terms& asked, time_point now) const noexcept;
  /// One more lease, without asking the server: the hold covers it. The server hears of it.
  std::shared_ptr<lease_record> enter(const terms& asked, time_point now);
  /// One more lease, by a command that was sent at `sent` and confirmed by these.
  std::shared_ptr<lease_record> grant(const terms& asked, time_point sent, time_point now, primary_set at);
  /// What a primary has said of the acquire that has made it, after the majority.
  void hear_of(std::size_t primary, const late_vote& late, milliseconds ttl);
  /// Its first lease, without a command: the claim was another hold's, and is valid.
  std::shared_ptr<lease_record> take_over(const terms& asked, time_point now);
  /// One that was made elsewhere.
  void add(lease_record& lease);
  /// That of the hold that this one is passed on to; no token where none is left.
  fencing next_token() const noexcept {
    const auto spare = packed_.spare_tokens;
    return packed_.fenced && spare > 0 ? fencing{token_ + 1, static_cast<std::uint16_t>(spare - 1)} : fencing();
  }
  void renew(std::shared_ptr<lease_record> lease, milliseconds ttl, time_point answer_by, done_handler done);

  /// Tells the observer of it.
  void report(event_kind happened, error_code reason = {}, std::string_view detail = {},
              loss_cause cause = loss_cause::none) const;

  // What its leases want.
  /// The TTL that the server's key should get from a renewal.
  milliseconds ttl() const noexcept;
  /// How many replicas must have a renewal.
  unsigned min_replicas() const noexcept;
  bool wants_renewal(time_point now) const noexcept { return now < renewed_until(); }
  /// When the last of its leases that ask for renewal has come to its max_hold; the end of time when one has none.
  time_point renewed_until() const noexcept;
  /// Whether renewal is paused now, because nobody wants it. Asked once more when that is noted: who fed a lease
  /// meanwhile saw no pause.
  template <class Predicate>
  bool pause_renewal_unless(Predicate wanted) {
    if (!wanted()) {
      pause_renewal();
      if (!wanted()) return true;
    }
    resume_renewal();
    return false;
  }

  // Commands that change the count run one after the other: a repeated one must not undo a later one.
  template <class Change>
  void begin_change(Change change) {
    changes_.add(std::move(change));
  }
  /// Ends the change under way. May destroy the hold, if nothing else keeps it.
  void end_change();
  bool changing() const noexcept { return changes_.busy(); }
  /// The TTL to send where a command wants `wanted`, so that nothing is shortened; it is noted as sent.
  key_ttl ttl_to_send(milliseconds wanted);
  /// The TTL that a count gives the key: that of a renewal where the hold is renewed, else one that raises none.
  milliseconds ttl_to_keep() const noexcept;
  /// So many leases the server has said that it counts; 0: nobody knows.
  void note_count(unsigned at_server) noexcept {
    on->counted.leases = at_server;
    on->counted.ever_sent = true;
  }
  /// Another server may have its key with an older count. The count is sent once more, if one was ever sent.
  void count_elsewhere() noexcept;
  /// The server has confirmed the hold with a count that was sent at `sent` with this TTL: as good as a renewal, unless
  /// the hold is in doubt, or wants replicas, which nobody has asked.
  void confirmed_by_count(time_point sent, milliseconds ttl, primary_set at);
  void add_reentry(hold_reentry& waiting) noexcept { reentries_.push_back(waiting); }
  void remove_reentry(hold_reentry& waiting) noexcept { reentries_.erase(reentries_.iterator_to(waiting)); }

 private:
  friend class unlocking;  // the other half of its room: how it ends by its owner's wish

  using text = std::unique_ptr<const std::string>;  // null: empty
  using reentries = boost::intrusive::list<hold_reentry, boost::intrusive::constant_time_size<false>>;

  /// All that is small. There are as many holds as held locks, so nothing of it is padded.
  struct packed {
    const std::uint16_t spare_tokens;  // after its own, for those that it is passed on to
    const bool bound;
    const bool fenced;  // it has a token
    std::atomic<bool> renewal_paused{false};
    bool forced = false;
    bool shared = false;                              // its key has other fields, too
    bool kept = false;                                // by itself, while it has a host and no lease
    std::atomic<lease_state> end{lease_state::held};  // or lost, or released; the claim knows whether it is suspended
    errc end_reason{};
  };
  static_assert(sizeof(packed) == 16);

  hold_ptr self() noexcept { return hold_ptr(this); }
  void keep_itself() noexcept {
    if (!std::exchange(packed_.kept, true)) intrusive_ptr_add_ref(this);
  }
  /// Null where it did not keep itself.
  hold_ptr no_more_kept() noexcept { return hold_ptr(std::exchange(packed_.kept, false) ? this : nullptr, false); }
  std::shared_ptr<lease_record> make_lease(const terms& asked, time_point now);
  void remove(const lease_record& lease) noexcept;
  void tell_wishes() noexcept;
  void tell_count() noexcept;
  bool confirm(time_point sent, milliseconds ttl, primary_set at);
  topology::handler when_replicated(topology::handler then);
  /// Anything but a confirmation ends it.
  void heed(renewal_answer answer);
  bool unquestioned() const noexcept;
  void end(lease_state as, errc reason, text detail) noexcept;
  void end_by_loss(errc reason);
  text text_of(const loss_facts& loss) const noexcept;
  void tell_reentries();
  void leave_if_forgotten();

  const engine_parts& parts_;
  hold_host* host_;            // null once it is forgotten
  const std::uint64_t token_;  // where there is one
  text end_detail_;
  few_leases leases_;
  change_queue changes_;
  std::forward_list<last_unlock> last_unlocks_;  // that wait for their turn
  reentries reentries_;
  packed packed_;
};

/// What an event says of its hold, except the TTL.
hold_event event_of(event_kind kind, const hold& hold, time_point at);

}  // namespace holdfast::detail
