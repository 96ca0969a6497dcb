// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lease_clock.hpp"
#include "redis/endpoint.hpp"
#include "redis/failure.hpp"
#include "topology/sentinel/sentinel_replies.hpp"
#include "topology/server_list.hpp"

namespace holdfast::detail {

/// Pure: the known sentinels, the questions that are due, and the primary's address by the sentinels' words.
///
/// Decision: the sentinels' word counts, not the server's. A primary that was replaced goes on granting for about 11 s,
/// if it hung or the failover was planned. It says `master` all that time, on a connection that stays whole. So all
/// known sentinels are listened to, and asked each second and after each message. A message is only a hint: the one of
/// the failover's leader comes last. Asking the servers for their role instead would be 0.85 s faster, but would follow
/// every replica that is detached for a backup.
///
/// Decision: the newest config-epoch wins, although one sentinel alone reports it. An epoch is a vote that a majority
/// has given. An older epoch is accepted only if every sentinel ever heard, and a majority of those known, has reported
/// it for 10 s. That happens after SENTINEL RESET. If no sentinel is heard, the last address stays: an outage of the
/// sentinels alone ends no healthy lease. config::sentinel.strict makes the other choice.
///
/// Of one sentinel:
///
///   idle ── at first, each second, and after news ────> asked ── replied() ─> its word counts for 3 s
///                                                         └───── failed() ──> an earlier word counts to its end
///
/// Of the primary, among the words that count:
///
///   the newest config-epoch, not older than any before        its address
///   an older one, from all known sentinels for 10 s           its address: an operator has reset them
///   no epoch (an ACL withholds it), more than half of all     its address
///   of several addresses of one epoch                         the one in use, else the most frequent
///   nothing that counts                                       the last address stays
///
/// start() begins a round of questions, and no address is used before it is over. It ends when more than half of the
/// known sentinels have spoken, when all have spoken or failed, or after a quarter of a second.
class sentinel_resolver {
 public:
  using duration = lease_clock::duration;
  using sentinel_id = std::uint32_t;  // never reused

  static constexpr std::size_t most_known = 32;

  struct sentinel {
    sentinel_id id;
    redis::address at;
  };
  struct question {
    sentinel_id whom;
    bool for_others;  // ask for the other sentinels that it knows, too
  };

  /// `strict`: there is no way to the primary unless more than half of the sentinels speak.
  sentinel_resolver(std::string_view primary_name, const std::vector<redis::address>& seeds, bool strict,
                    reach_by reach);

  /// The primary is needed from now on, or no longer. A new start asks the sentinels first, unless a word is younger
  /// than the pause between two questions.
  void start(time_point now);
  void stop() noexcept { asking_ = false; }

  /// The seeds and the sentinels that were learnt from others. An id changes with the address.
  std::vector<sentinel> known() const;
  /// The questions to send now. Report each answer by replied() or failed().
  std::vector<question> take_due(time_point now);
  /// There is news: the sentinel is asked at once, or once more if it is being asked.
  void ask_soon(sentinel_id id, time_point now);
  void ask_all_soon(time_point now);

  void replied(sentinel_id id, const sentinel_answer& answer, time_point now);
  /// The question was not answered.
  void failed(sentinel_id id, redis::failure why, time_point now);
  /// The sentinel cannot be reached at present, whether it is being asked or not.
  void down(sentinel_id id, redis::failure why, time_point now);
  /// The run id by which the other sentinels know this one.
  void identified(sentinel_id id, const std::string& run);
  void listed(const std::vector<listed_sentinel>& others, time_point now);
  /// The server at this address says that it is no primary. The address is not used for a while.
  void refused(const redis::address& at, time_point now);
  /// Call it when next_look() is due. The functions above do it themselves.
  void look(time_point now);

  /// The primary's address by the newest word; nothing before the first.
  const std::optional<redis::address>& target() const noexcept { return target_; }
  /// The round of questions is over, so that target() may be used.
  bool ready() const noexcept { return ready_; }
  /// A connection to the target may be made, or be kept.
  bool open(time_point now) const;
  /// More than half of the known have spoken within three seconds.
  bool trusted(time_point now) const;
  /// trusted() was false for three seconds.
  bool unreachable(time_point now) const;
  /// open() is false, no word counts, and every sentinel has been heard.
  bool hopeless(time_point now) const;
  /// The reason why no primary can be used: each silent sentinel with its cause. If there never was a primary and all
  /// answers agree, the code is theirs (invalid_config, auth_failed …). Otherwise it is unreachable.
  redis::failure trouble(time_point now) const;
  /// The time at which look() or take_due() may change its result.
  std::optional<time_point> next_look(time_point now) const;

 private:
  struct entry {
    sentinel_id id;
    redis::address at;
    bool seed;
    std::string run{};   // empty: unknown
    time_point named{};  // by another one, or it has spoken
    std::optional<sentinel_word> word{};
    time_point spoken{};                  // the word
    std::optional<redis::failure> why{};  // it has none
    bool heard = false;                   // since start(), of whatever kind
    bool moved = false;                   // a seed that is silent, and known at another address: it counts there
    bool asked = false, again = false;
    unsigned questions = 0;  // answered in a row
    time_point next{};       // question
  };
  struct lower_epoch {
    redis::address at;
    std::uint64_t epoch;
    time_point since;
  };

  entry* find(sentinel_id id);
  template <class Predicate>
  entry* find_if(Predicate matches);
  static bool counts(const entry& entry, time_point now);
  void name(const listed_sentinel& other, time_point now);
  void answered(entry& entry, time_point now);
  void decide(time_point now);
  void watch_trust(time_point now);
  void choose(time_point now);
  std::optional<redis::address> most_frequent(time_point now, std::optional<std::uint64_t> epoch,
                                              std::size_t more_than) const;
  void consider_lower(time_point now);
  std::size_t speakers(time_point now) const;
  std::size_t members() const;
  redis::address reached(const redis::address& announced) const { return reach_ ? reach_(announced) : announced; }

  const std::string name_;
  const bool strict_;
  const reach_by reach_;
  std::vector<entry> known_;
  sentinel_id ids_ = 0;
  bool asking_ = false;
  bool ready_ = false;
  bool was_trusted_ = false;  // in or since the round of questions
  time_point started_{};      // the round of questions
  std::optional<time_point> last_word_;
  std::optional<time_point> untrusted_since_;  // the last words of a majority
  std::optional<redis::address> target_;
  std::optional<std::uint64_t> highest_;  // epoch that was ever followed
  std::optional<lower_epoch> lower_;      // that all agree on
  std::optional<redis::address> shunned_;
  time_point shunned_until_{};
};

}  // namespace holdfast::detail
