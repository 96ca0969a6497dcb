// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/function.hpp"
#include "protocol/call.hpp"
#include "redis/failure.hpp"
#include "redis/resp.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/environment.hpp"
#include "sync/command/handlers.hpp"

namespace holdfast::detail {

/// Decides which of several primaries have a vote. A primary that was restarted or emptied may have forgotten locks
/// that are still in use. It has no vote until the longest TTL is over.
///
///   votes ── "no vote" ──> asking for its marker
///     ^                      ├─ a lasting refusal of GET or of a script ────────> refusing ── a second ──> votes
///     │                      ├─ the marker is a vote ───────────────────────────> votes
///     │                      ├─ the marker is a wait ───────────────────────────> waiting
///     │                      ├─ the marker has another longest TTL ─────────────> disagreeing ── a second ──> votes
///     │                      └─ the marker is missing, or of another run ───────> to_wait ── written ──> waiting
///     ├── the longest TTL is over, and the marker untouched ── waiting
///     └── the connection has ended: from everywhere
///
/// Decision: the end of a wait is noticed when an acquire needs the vote. A timer would keep an idle client busy.
///
/// Decision: a wait has a nonce. The reference sets the final marker when the longest TTL is over. That is unsafe with
/// three clients. A lets the server vote, and locks are granted. FLUSHALL deletes these and the marker. C began to wait
/// before all that, and would set the marker at once. So the wait itself is written down, and ends only if that text is
/// untouched. A marker without the run would not do: a snapshot restores it. Nor would the server's uptime, which
/// follows the wall clock.
///
/// A primary begins to wait under three conditions. All connected primaries have answered. Most configured primaries do
/// not disagree about the longest TTL. Among the existing markers, more agree than disagree. Otherwise this client may
/// be the wrong one.
///
/// A server that does not tell its run id gets a number first, which reveals two addresses of one server. The run in
/// its marker is taken for its own, so a restart that keeps the marker is not noticed.
class voting final {
 public:
  /// `client_id`: unique to this client.
  voting(environment& env, const std::string& client_id);
  voting(const voting&) = delete;
  voting& operator=(const voting&) = delete;

  /// True: the primary is to be asked for its vote. Also ends what is over by now, so it is called for each attempt.
  bool may_vote(std::size_t index);
  /// Why the primary has no vote: unreachable, or a code that needs an administrator.
  redis::failure why_no_vote(std::size_t index) const;
  /// The marker that the connected server must have for its vote to count. Empty: no marker is needed.
  std::string marker(std::size_t index) const;
  /// The primary has answered that it has no vote.
  void has_no_vote(std::size_t index);
  /// True: the server has answered this script on the present connection. answered() notes it.
  bool knows(std::size_t index, const call& script) const;
  void answered(std::size_t index, const call& script, const redis::reply& reply);
  /// The last response time. Zero: no answer in time. Empty: not asked yet. took() notes it.
  std::optional<nanoseconds> last_took(std::size_t index) const { return each_[index].last_took; }
  void took(std::size_t index, nanoseconds time) { each_[index].last_took = time; }
  /// Why no vote counts: two addresses lead to one server. Empty: every vote counts.
  const std::string& misconfiguration() const { return misconfiguration_; }

  void link_changed(std::size_t index, bool up);
  /// Makes the markers of a new installation. Does nothing and fails with quorum_failed unless all primaries answer.
  /// Fails with invalid_config if a primary has a marker.
  void initialise(done_handler done);

 private:
  enum class stage { votes, asking, refusing, disagreeing, to_wait, waiting };
  /// The longest TTL by the primary's marker, compared with ours.
  enum class opinion { unknown, none, agrees, disagrees };
  struct primary {
    stage now = stage::votes;
    bool up = false;
    bool heard = false;                           // this connection has answered an acquire
    opinion thinks = opinion::unknown;            // by the answers of this connection
    std::size_t connections = 0;                  // ended ones
    std::string seen;                             // the marker, when the primary had no vote
    std::string adopted;                          // the vote of a server that does not tell its run
    time_point until{};                           // end of the wait, disagreement or refusal
    redis::failure refused;                       // why it cannot be asked
    std::set<const void*> known;                  // scripts
    std::optional<nanoseconds> last_took;         // response time of the last answer
    bool told_apart = false;                      // from the others, by its number
    std::optional<std::size_t> duplicate_server;  // the primary that is the same server
  };
  class initialisation;

  void ask(std::size_t index, const call& command, function<void(const outcome&)> then);
  void refuses(std::size_t index, redis::failure why);
  void look(std::size_t index);
  void on_marker(std::size_t index, std::string text);
  void wait(std::size_t index, std::string marker);
  void begin_waits();
  void begin_wait(std::size_t index);
  void end_wait(std::size_t index);
  void tell_apart(std::size_t index);
  bool majority_agrees() const;
  void look_for_misconfiguration();
  std::string where(std::size_t index) const { return env_.servers.primary(index).where({}); }
  std::string run(std::size_t index) const { return env_.servers.primary(index).run_of({}); }
  std::string marker_value(std::size_t index) const;

  environment& env_;
  const std::string probe_key_;
  std::vector<primary> each_;
  std::vector<std::string> numbers_;
  std::string misconfiguration_;
  bool degraded_ = false;
};

}  // namespace holdfast::detail
