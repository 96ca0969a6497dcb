// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/backoff.hpp"
#include "base/function.hpp"
#include "protocol/vote/vote_count.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/environment.hpp"
#include "sync/release/answered_releases.hpp"

namespace holdfast::detail {

/// What is said of a hold that Redis does not know.
inline constexpr const char* not_ours = "Redis answered that its key is gone or another's";

/// The name of which a field is released. It lives from release_begins() to release_ends().
class release_host {
 public:
  struct release_end {
    bool may_be_free = true;     // the lock, and nobody else may say so; also where the release found the key gone
    bool ends_turn = false;      // of a hold, and its word is the first
    std::uint64_t heard_by = 0;  // so many subscribers heard of it
  };
  virtual void release_begins() = 0;
  /// May destroy the host.
  virtual void release_ends(const release_end& end) = 0;

 protected:
  ~release_host() = default;
};

/// Gives fields back, and does not stop before the server has answered or the key must be gone anyway. What a caller no
/// longer waits for goes on here, in the client's own scope, which shutdown joins. A release is sent once more when its
/// connection has ended; one that is late on a connection that goes on answering is on its way.
///
/// Where there are several primaries, each is sent its own, and goes on by itself; a majority of their answers is the
/// answer.
///
/// An answered release is sent once more when another server has the key, because that server may lack it. A release
/// compares its field, which is never used again: it frees its own hold or nothing.
///
/// The servers call it back and do not keep it alive: their owner ends them before it.
class releases {
 public:
  /// none: released; lost: it was not this owner's any more; unconfirmed: no answer in time, it goes on; else the
  /// server's refusal.
  using handler = function<void(error_code, const std::string& detail), 13>;  // a hold's, which has its callers in it

  explicit releases(environment& env) : env_(env) {}
  releases(const releases&) = delete;
  releases& operator=(const releases&) = delete;
  ~releases();

  /// Releases `field`, whose key may live for `ttl`, and tells `done` at `answer_by` at the latest. `valid`: until when
  /// the hold is exclusive. `at`: where it may be, of several primaries.
  void release(release_host& of, shared_keys keys, owner_field field, milliseconds ttl, time_point now,
               time_point valid, time_point answer_by, primary_set at, handler&& done);
  /// The same with nobody waiting: the observer hears released_late or release_given_up. Also for a grant that may
  /// still come. `tried` is called once, when Redis has answered the first copy or the connection that the copy was
  /// written to has ended; at the latest when the release ends. Not after abandon().
  /// `at`: at these primaries alone.
  void release_in_background(release_host& of, shared_keys keys, owner_field field, milliseconds ttl,
                             function<void()> tried = {}, primary_set at = everywhere);

  /// The server has said that this field holds nothing, although its hold was not given back. A server that takes its
  /// place may still have the field.
  void found_gone(const shared_keys& keys, const owner_field& field, milliseconds ttl, time_point now) noexcept;
  /// Takes the releases that another server has answered than the one that has their key now, for repeat(). `group`: of
  /// these keys alone. `use` may send.
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
  /// Sends the release once more, with nobody waiting. The observer gets released_late if that has freed something.
  void repeat(release_host& of, const answered_releases::entry& release);

  bool idle() const noexcept { return under_way_.empty(); }
  /// Called once, when the last one under way has ended; at once if there is none.
  void when_idle(function<void()> then);
  /// Ends all without a further command; waiting callers get unconfirmed.
  void abandon();

 private:
  class task;
  class joint;
  /// A task's hook in under_way_, and what keeps the task alive while it is there.
  struct member {
    boost::intrusive::list_member_hook<> hook;
    std::shared_ptr<task> kept;
  };
  using members = boost::intrusive::list<
      member, boost::intrusive::member_hook<member, boost::intrusive::list_member_hook<>, &member::hook>>;

  void start(std::shared_ptr<task>, primary_set at, time_point now);
  void begin(std::shared_ptr<task>, time_point now);
  void send(task&, time_point now);
  void on_late(task&, const std::string& detail);
  void answered(task&, const outcome&);
  void again(task&, const outcome&);
  void end(task&, error_code, const std::string& detail);
  std::shared_ptr<task> take_out(task&);
  void report(const task&, event_kind kind, error_code reason, const std::string& detail) const;
  bool is_in(std::optional<key_group> group, answered_releases::entry& released) const;
  bool answered_elsewhere(const answered_releases::entry& release) const;
  std::uint64_t server_of(std::size_t primary, const shared_keys& keys) const;

  environment& env_;
  members under_way_;  // oldest first
  answered_releases answered_;
  function<void()> when_idle_;
};

}  // namespace holdfast::detail
