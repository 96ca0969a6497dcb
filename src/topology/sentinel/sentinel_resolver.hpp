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

/// Pure: which sentinels there are, whom to ask now, and where the primary is by what they say.
///
/// Of one sentinel:
///
///   idle ── at first, each second, and after news ────> asked ── said() ──> its word counts for 3 s
///                                                         └───── failed() ─> an earlier word counts to its end
///
/// Of the primary, among the words that count:
///
///   the newest config-epoch, not older than any before        its address, although one sentinel alone says so
///   an older one, from all known sentinels for 10 s           its address: somebody has reset them
///   no epoch (an ACL withholds it), more than half of all     its address
///   of several addresses of one epoch                         the one in use, else that of most
///   nothing that counts                                       the last address stays
///
/// Nobody is sent to an address before the round of questions that begins with start() is over: more than half of the
/// known have spoken, or all have spoken or failed, or a quarter of a second is over.
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
    bool for_others;  // which other sentinels it knows, too
  };

  /// `strict`: there is no way to the primary while fewer than half of the sentinels speak.
  sentinel_resolver(std::string_view primary_name, const std::vector<redis::address>& seeds, bool strict,
                    reach_by reach);

  /// Somebody needs the primary from now on, or nobody does. Whoever begins again hears the sentinels first, unless a
  /// word is younger than the pause between two questions.
  void start(time_point now);
  void stop() noexcept { asking_ = false; }

  /// The seeds, and those that were learnt: each has an id that changes with its address.
  std::vector<sentinel> known() const;
  /// Whom to ask now; each answer is to be told by said() or failed().
  std::vector<question> take_due(time_point now);
  /// There is news: to be asked at once, or once more if it is being asked.
  void ask_soon(sentinel_id id, time_point now);
  void ask_all_soon(time_point now);

  void replied(sentinel_id id, const sentinel_answer& answer, time_point now);
  /// The question was not answered.
  void failed(sentinel_id id, redis::failure why, time_point now);
  /// It cannot be reached at present, whether it is being asked or not.
  void down(sentinel_id id, redis::failure why, time_point now);
  /// Its run id, by which the others know it.
  void identified(sentinel_id id, const std::string& run);
  void listed(const std::vector<listed_sentinel>& others, time_point now);
  /// The server there says that it is no primary: nobody is sent there for a while.
  void refused(const redis::address& at, time_point now);
  /// To be called when next_look() is due; the others above look by themselves.
  void look(time_point now);

  /// Where the primary is by the newest word; nothing before the first.
  const std::optional<redis::address>& target() const noexcept { return target_; }
  /// The round of questions is over, so that target() may be used.
  bool ready() const noexcept { return ready_; }
  /// A connection to the target may be made, or be kept.
  bool open(time_point now) const;
  /// More than half of the known have spoken within three seconds.
  bool trusted(time_point now) const;
  /// It could not be trusted for three seconds.
  bool unreachable(time_point now) const;
  /// It is not open, no word counts, and nobody is left who might have one.
  bool hopeless(time_point now) const;
  /// Why there is no way to the primary: each sentinel that does not speak, and its cause. invalid_config, auth_failed
  /// where there never was one and all that have answered say so; else unreachable.
  redis::failure trouble(time_point now) const;
  /// When look() or take_due() may have something to say.
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
  template <class Which>
  entry* find_if(Which matches);
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
