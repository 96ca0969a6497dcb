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

/// Which of several primaries have a vote. One that was restarted, or emptied, may have forgotten locks that others
/// still rely on: it has no vote until the longest of them must be over.
///
///   votes ── "no vote" ──> asking for its marker
///     ^                      ├─ it refuses for good to be asked ───────────────────> refusing ── a second ──> votes
///     │                      ├─ it votes already ──────────────────────────────> votes
///     │                      ├─ it waits already ──────────────────────────────> waiting
///     │                      ├─ it is of clients with another longest TTL ─────> disagreeing ── a second ──> votes
///     │                      └─ it is of another run, or not there ──> to_wait ── its marker says so ──> waiting
///     ├── the longest TTL is over, and its marker untouched ── waiting
///     └── its connection has ended: from everywhere
///
/// The end of a wait is found when somebody asks for the vote: no timer keeps a client busy that wants nothing. A
/// primary is made to wait when all that are connected were heard, a majority does not disagree about the longest TTL,
/// and of those that have a marker more agree than disagree: this client may be the one that is wrong.
///
/// A server that does not say which run it is gets a number first, by which one is found that is there twice. The run
/// that its marker names is taken for its own; so a restart that leaves the marker is not seen.
class voting final {
 public:
  /// `client_id`: of this client alone.
  voting(environment& env, const std::string& client_id);
  voting(const voting&) = delete;
  voting& operator=(const voting&) = delete;

  /// Somebody wants the vote of this one: it may have one at present.
  bool may_vote(std::size_t index);
  /// Why it has none: unreachable, or what somebody must mend.
  redis::failure why_no_vote(std::size_t index) const;
  /// What its marker must be for its vote to count, by the server that is connected now; empty: it needs none.
  std::string marker(std::size_t index) const;
  /// It has answered that it has no vote.
  void has_no_vote(std::size_t index);
  /// Its present connection has answered this script; and it has now, so.
  bool knows(std::size_t index, const call& script) const;
  void answered(std::size_t index, const call& script, const redis::reply& reply);
  /// How long its last answer took, zero where it did not answer in time; empty: it was not asked yet. And it has now.
  std::optional<nanoseconds> last_took(std::size_t index) const { return each_[index].last_took; }
  void took(std::size_t index, nanoseconds time) { each_[index].last_took = time; }
  /// Why no vote counts, until somebody mends that: one server is there twice. Empty: each counts.
  const std::string& misconfiguration() const { return misconfiguration_; }

  void link_changed(std::size_t index, bool up);
  /// Makes the markers of a new installation. quorum_failed, and nothing is done, unless all primaries answer;
  /// invalid_config where one has a marker.
  void initialise(done_handler done);

 private:
  enum class stage { votes, asking, refusing, disagreeing, to_wait, waiting };
  /// What its marker says of the longest TTL.
  enum class opinion { unknown, none, agrees, disagrees };
  struct primary {
    stage now = stage::votes;
    bool up = false;
    bool heard = false;                           // this connection has answered who asked for the vote
    opinion thinks = opinion::unknown;            // as far as this connection has told
    std::size_t connections = 0;                  // that have ended
    std::string seen;                             // its marker, when it had no vote
    std::string adopted;                          // its vote, where it does not say which run it is
    time_point until{};                           // of the wait, the disagreement or the refusal
    redis::failure refused;                       // why it could not be asked
    std::set<const void*> known;                  // scripts
    std::optional<nanoseconds> last_took;         // its answer
    bool told_apart = false;                      // from the others, although it does not say which run it is
    std::optional<std::size_t> duplicate_server;  // the one that it could not be told from
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
