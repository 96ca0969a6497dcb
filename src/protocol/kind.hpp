// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/export.hpp>

#include "protocol/call.hpp"
#include "protocol/keys.hpp"
#include "protocol/replies.hpp"
#include "redis/outcome.hpp"

namespace holdfast::detail {

/// A kind of lock: the command of each step, the reader of its answer, and a few rules. Waiting, holding and losing are
/// the same for all kinds.
///
/// Each step except first_acquire and acquire_any can be sent twice: acquire recognises its own field, a count is
/// absolute, and a late release finds nothing.
///
/// Decision: a kind is a row of a table and a few scripts. Registry, line, hold, watchdog and releases read the row of
/// their lock, and know no script and no text of a key. Each rule exists because a kind needs it:
///
///   rule       reader                                                  plain, fenced             simple
///   nested     registry: one more lease, already_held, or a call like  enters                    refuses
///              any other
///   bars       name: other callers of this client wait for its hold    yes                       yes
///   passes     turns: the next waiter gets its claim                   yes                       yes
///   joins      name: callers of any owner get leases of its hold       no                        no
///   queue      line, release: a place of the client in Redis           no                        no
///   places     line, release: a place of each waiter in Redis          no; fair: yes             no
///   tokens     re-entry, last_token(), acquire for its successors      fenced: 1, in turns 1000  no
///   voted      client: one server or several; line: short attempts,    no; red_lock: yes         no; red_lock: yes
///              and votes of a minority given back; a lost hold: the
///              same
///   looks      line: pause of a waiter that keeps newcomers out        no                        no
///   polls      line: ask again soon; turns: leave the lock free        no                        20 ms to 250 ms
///   layout     registry: one line                                      one for both              its own
///   pushed     line: the server pushes the end of a foreign hold;      holds; red_lock: both     both
///              watchdog: and the changes of a key that is held
///
/// Decision: a rule that no kind needs yet is not written. It would be a guess, and no test could break it.
///
/// Decision: a count is absolute. HINCRBY would count a repeated command twice. The client knows how many leases it
/// has, and sends that number.
struct kind {
  template <class T, class... Of>
  struct step {
    call (*make)(const lock_keys&, Of...);
    answer<T> (*read)(const redis::outcome&);
  };

  /// The name of the public class.
  std::string_view name;
  const key_layout& layout;

  // Rules
  /// The call of an owner that holds the lock already.
  enum class nesting : std::uint8_t {
    enters,   // gets one more lease of its hold
    refuses,  // gets already_held
    anew,     // is a call like any other: it gets a hold of its own
  } nested;
  /// True: while this client has a hold, its other callers ask nobody. False: the client may have several at once.
  /// Kinds of one layout may differ: a reader bars nobody, and a writer bars readers and writers.
  bool bars;
  /// The claim of an ended hold goes on to the next waiter, without a command. Both have to be of such a kind.
  bool passes;
  /// The time after a grant during which callers of this client get leases of that hold, without a command. Its leases
  /// are then of several owners. Zero: each hold has one owner.
  milliseconds joins;
  /// The most fencing tokens of one grant: for its hold, and for the later holds of the same claim. 0: no tokens.
  std::int64_t tokens;
  constexpr bool fenced() const noexcept { return tokens > 0; }
  /// True: the lock is held at a majority of several independent primaries. False: at one server.
  bool voted;
  /// For locks that other programs release without a message. A waiter asks again after `first`, then at growing
  /// intervals up to `longest`. Clients that pass the lock on leave it free for `first` now and then. Zero: every
  /// release is published.
  struct {
    milliseconds first, longest;
  } polls;
  /// The changes of its key that a server is asked to push (topology::on_key_changed). `waits`: a waiter's attempt asks
  /// for the next change, because other programs free the lock without a message. `holds`: each renewal is followed by
  /// a question that asks for it, because nobody but the holder changes the key. Several holders under one key would
  /// wake each other by their renewals.
  struct {
    bool waits, holds;
  } pushed;

  /// The longest pause between two attempts of a waiter that keeps newcomers out (see acquire_party, queue).
  milliseconds looks;

  // Steps
  step<acquire_answer, milliseconds, const owner_field&> acquire;
  /// An acquire for a party: several waiters, each with its own field. It grants as many as possible, from the first
  /// on. `stands`: if none is granted, a door keeps other fields out until the first one is granted or released. The
  /// door opens by itself a little after `looks`. Null: the kind has none, and uses `acquire`.
  struct {
    call (*make)(const lock_keys&, milliseconds, std::span<const owner_field>, bool stands);
    answer<acquire_answer> (*read)(const redis::outcome&, std::size_t sent);
  } acquire_party;
  /// A cheaper acquire for a field that was never sent. It returns no TTL of a busy lock, and does not recognise its
  /// own field. Null: the kind has none.
  step<acquire_answer, milliseconds, const owner_field&> first_acquire;
  /// Takes the first free lock of several, of this kind and at one server. The field was never sent before, because the
  /// script does not recognise its own. Null: any_of refuses the kind.
  struct {
    call (*make)(const std::vector<shared_keys>&, milliseconds, const owner_field&);
    answer<acquire_any_answer> (*read)(const redis::outcome&, std::size_t sent);
  } acquire_any;
  /// Takes all of several locks, of this kind and at one server, or none. Each has a field of its own. Null: multi_lock
  /// takes one after the other, or refuses a kind that votes.
  struct {
    call (*make)(const std::vector<shared_keys>&, milliseconds, std::span<const owner_field>);
    answer<acquire_all_answer> (*read)(const redis::outcome&, std::size_t sent);
  } acquire_all;
  /// For a re-entrant kind: sets the number of leases of the hold. False: the field does not hold the lock.
  step<bool, key_ttl, const owner_field&, unsigned> set_hold_count;
  /// Confirms one or more holds, each with its TTL. They are at one server, and their kinds have an equal step.
  struct renewal_step {
    call (*make)(std::span<const renewal>);
    call (*make_one)(const lock_keys&, key_ttl, const owner_field&);
    answer<std::vector<renewal_answer>> (*read)(const redis::outcome&, std::size_t sent);
    bool operator==(const renewal_step&) const = default;
  } renew;
  step<release_answer, const owner_field&> release;
  /// Of a kind whose waiting clients stand in a queue in Redis (queue_place.hpp): an acquire that asks for a place
  /// there, and a release that gives a place up or takes one again. Their answers are those of `acquire` and `release`.
  /// A client that has a place listens on two channels besides: `called` calls it by name, and `counted` has no
  /// messages. Null: the kind has no queue.
  /// `downgrade`: the hold becomes one of the reader's side. The lock is kept for `reserve` for the clients that are
  /// asked. True: it is one, also after a second copy. Null: of the reader's side.
  struct queue_steps {
    call (*acquire)(const lock_keys&, milliseconds, const owner_field&, standing);
    call (*release)(const lock_keys&, const owner_field&, const departure&);
    std::string (*called)(const lock_keys&, const uuid&);
    std::string (*counted)(const lock_keys&);
    step<bool, milliseconds, const owner_field&, milliseconds> downgrade;
    explicit operator bool() const noexcept { return acquire; }
  } queue;
  /// Of a kind that serves the waiters of all clients in the order of their arrival. Each has a place in one queue in
  /// Redis, up to most_places of a client, and each place has a channel of its own. Null: the kind has none.
  /// `acquire`: the suspect is the place of acquire_answer::turn, which was told before, and did not come. Empty: none.
  /// Its answer is that of kind::acquire, which is the same without a suspect.
  /// `stand`: these places of a client stand in this order, and its others leave. A place that stands keeps its
  /// position.
  /// `leave`: all places leave of the client of this field. Both are absolute, and have the same answer.
  /// `release`: it takes the lock for `next`, a fresh field of the same client, if the turn of this client has come.
  /// `waiters`: how many places stand, those of all clients.
  struct place_steps {
    call (*acquire)(const lock_keys&, milliseconds, const owner_field&, const std::string& suspect);
    step<stand_answer, std::span<const owner_field>> stand;
    call (*leave)(const lock_keys&, const owner_field&);
    step<ride_answer, const owner_field&, const renewal&> release;
    step<unsigned> waiters;
    std::string (*channel)(const lock_keys&, const owner_field& place);
    explicit operator bool() const noexcept { return acquire; }
  } places;
  bool ordered() const noexcept { return static_cast<bool>(places); }
  /// How many holds were broken.
  step<unsigned> force_release;
  /// Of a semaphore: sets the number of permits. Null: another kind.
  step<bool, std::uint32_t> set_permits;

  // Questions, which change nothing
  step<bool> exists;
  step<std::optional<milliseconds>> ttl;
  step<std::optional<holder_answer>> holder;
  struct {
    call (*make)(const lock_keys&, const owner_field&);
    answer<unsigned> (*read)(const redis::outcome&, const owner_field&);
  } count;
  step<std::optional<std::uint64_t>> last_token;  // of a fenced kind
  step<semaphore_state> semaphore;                // of a semaphore
};

/// Redisson's RLock.
HOLDFAST_EXPORT extern const kind plain_lock;
/// Redisson's RFencedLock: the same keys, and a counter. `in_turns` is for a client that passes its locks on.
extern const kind fenced_lock;
extern const kind fenced_lock_in_turns;
/// One string key, SET NX PX.
HOLDFAST_EXPORT extern const kind simple_lock;
/// Redlock: a plain lock, or a simple one, at a majority of several primaries.
extern const kind red_plain_lock;
extern const kind red_simple_lock;

/// Why the command was not done. Empty: it was done.
std::optional<failure> refusal_in(const redis::outcome& outcome);
/// Why a release has freed the lock without its message: the server refused PUBLISH. Empty: it did not.
std::optional<failure> withheld_message(const redis::outcome& outcome);

/// Reads an answer. Without memory to read it, the answer is lost, and the command may have run.
template <class Read>
auto read_if_memory(Read read) -> decltype(read()) try {
  return read();
} catch (const std::bad_alloc&) {
  auto why = redis::without_memory();
  why.may_have_run = true;
  return {std::move(why), {}};
}

/// Makes a reader of outcomes from a reader of replies.
template <auto Read, class... With>
auto read_outcome(const redis::outcome& outcome, With... with) -> decltype(Read(outcome.reply, with...)) {
  using read = decltype(Read(outcome.reply, with...));
  return read_if_memory([&]() -> read {
    if (outcome.error) return {redis::failure_of(outcome), {}};
    return Read(outcome.reply, with...);
  });
}

}  // namespace holdfast::detail
