// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/backoff.hpp"
#include "base/function.hpp"
#include "protocol/vote/vote_count.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/environment.hpp"
#include "sync/release/answered_releases.hpp"

namespace holdfast::detail {

/// The text of a hold that Redis does not know.
inline constexpr const char* not_ours = "Redis answered that its key is gone or another's";

/// The end of a release that was to take a fair mutex for the next waiter of its client.
struct ride_end {
  owner_field next;                   // the field of that waiter
  milliseconds ttl{};                 // of its hold
  std::optional<ride_answer> answer;  // empty: there was none about the lock; the field may have it
  time_point sent{};                  // as of redis::outcome
  std::uint64_t server = 0;           // the same
};

/// The name whose field is released. It lives from release_begins() to release_ends().
class release_host {
 public:
  struct release_end {
    bool may_be_free = true;     // also if the release found the key gone; perhaps no message says so
    bool ends_turn = false;      // it is the release of a hold, and the first end of it
    std::uint64_t heard_by = 0;  // number of subscribers that got its message
    // Of a kind with an order of all waiters.
    bool rode = false;                       // rode() has the answer
    std::optional<std::string_view> turn{};  // the place whose turn it is; empty: unknown
    bool of_places = false;                  // it was leave_places()
    bool unanswered = false;                 // of leave_places(): the places may still stand
  };
  virtual void release_begins() = 0;
  /// The wishes for the client's place in the queue. Asked once for a release, of a kind that has a queue. `of_hold`:
  /// the field has the lock, as far as the client knows.
  virtual departure departs(const lock_keys& keys, bool of_hold) = 0;
  /// The client's place in the queue is that of a waiter of this kind. Asked before a release is repeated.
  virtual bool keeps_place(const lock_keys& keys) const = 0;
  // Of a kind with an order of all waiters.
  /// The waiter for which the release of a hold takes the lock, by its field and its TTL. Empty: for nobody. Asked once
  /// for a release. rode() follows, once, before release_ends().
  struct rider {
    owner_field next;
    milliseconds ttl{};
  };
  virtual rider rides() { return {}; }
  /// That waiter still waits for the release. Asked before it is repeated.
  virtual bool still_rides(const owner_field&) const { return false; }
  virtual void rode(const ride_end&) {}
  /// The host may be gone afterwards.
  virtual void release_ends(const release_end& end) = 0;

 protected:
  ~release_host() = default;
};

/// Releases owner fields.
///
/// It promises:
/// - a release goes on until the server has answered, or until the key must be gone;
/// - it goes on when its caller waits no more, and shutdown waits for it;
/// - a release is sent once more when its connection has ended, and not because it is late on a living one;
/// - with several primaries each one gets its own release, and a majority of equal answers is the answer;
/// - an answered release is sent once more when another server has the key (answered_releases.hpp).
///
/// A release compares its field, which is never used again. It frees its own hold or nothing.
///
/// Decision: a change of the server is an outage that ends at another server. Two rules follow. "Not yours" to a
/// repeated release proves nothing about the first copy if another server says it. And an answer of one server is no
/// proof at another.
///
/// The servers call it back and do not keep it alive: their owner ends them before it.
class releases {
 public:
  /// No failure: released. lost: the owner had lost the lock before. unconfirmed: no answer in time, and the release
  /// goes on. Every other failure is the refusal of the server.
  using handler = function<void(const std::optional<failure>&), 13>;  // with room for the callers of a hold

  explicit releases(environment& env) : env_(env) {}
  releases(const releases&) = delete;
  releases& operator=(const releases&) = delete;
  ~releases();

  /// Releases `field`, whose key may live for `ttl`, and calls `done` no later than `answer_by`. `valid`: the end of
  /// the validity of the hold. `at`: the primaries that may have the field, if there are several.
  void release(release_host& of, shared_keys keys, owner_field field, milliseconds ttl, time_point now,
               time_point valid, time_point answer_by, primary_set at, handler&& done);
  /// The same without a caller: the observer gets released_late or release_given_up. Also for a grant that may still
  /// come. `tried` is called once: when Redis has answered the first copy, when the connection of that copy has ended,
  /// or when the release ends. It is not called after abandon(). `at`: only these primaries.
  void release_in_background(release_host& of, shared_keys keys, owner_field field, milliseconds ttl,
                             function<void()> tried = {}, primary_set at = everywhere);

  /// Takes all places of the client of this field out of the queue of a fair mutex. It goes on as a release does.
  void leave_places(release_host& of, shared_keys keys, owner_field place);

  /// The server has answered that this field holds nothing, although its hold was not released. A server that takes its
  /// place may still have the field.
  void found_gone(const shared_keys& keys, const owner_field& field, milliseconds ttl, time_point now) noexcept;
  /// Passes to `use` the releases that were answered by another server than the one that has their key now. They are
  /// for repeat(). `group`: only releases of these keys. `use` may send.
  template <class Use>
  void take_answered_elsewhere(std::optional<key_group> group, Use use) {
    const auto now = env_.now();
    answered_.take(
        [&](answered_releases::entry& release) {
          return is_in(group, release) && (release.gone_by <= now || answered_elsewhere(release));
        },
        [&](answered_releases::entry&& entry) {
          if (entry.gone_by > now) use(entry);
        });
  }
  /// Sends the release once more, without a caller. The observer gets released_late if that has freed something.
  void repeat(release_host& of, const answered_releases::entry& release);

  bool idle() const noexcept { return under_way_.empty(); }
  /// Calls `then` once, when the last release under way has ended; at once if there is none.
  void when_idle(function<void()> then);
  /// Ends all releases without a further command. Waiting callers get unconfirmed.
  void abandon();

 private:
  class task;
  class joint;
  /// The hook of a task in under_way_. It keeps the task alive while the task is in the list.
  struct member {
    boost::intrusive::list_member_hook<> hook;
    std::shared_ptr<task> kept;
  };
  using members = boost::intrusive::list<
      member, boost::intrusive::member_hook<member, boost::intrusive::list_member_hook<>, &member::hook>>;

  void start(std::shared_ptr<task>, primary_set at, time_point now);
  void begin(std::shared_ptr<task>, time_point now);
  static call command_of(task& task);
  void send(task&, time_point now);
  void on_late(task&, const std::string& detail);
  static answer<release_answer> read(task&, const outcome&);
  void answered(task&, const outcome&);
  void again(task&, const outcome&);
  void tell_unconfirmed(task&, const std::string& detail);
  void end(task&, const std::optional<failure>& failed);
  std::shared_ptr<task> take_out(task&);
  void report(const task&, event_kind kind, const std::optional<failure>& failed) const;
  bool is_in(std::optional<key_group> group, answered_releases::entry& released) const;
  bool answered_elsewhere(const answered_releases::entry& release) const;
  std::uint64_t server_of(std::size_t primary, const shared_keys& keys) const;

  environment& env_;
  members under_way_;  // oldest first
  answered_releases answered_;
  function<void()> when_idle_;
};

}  // namespace holdfast::detail
