// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include "chaos/campaign.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

enum class fault_kind {
  // on one worker's way to the server
  cut,
  refuse,
  swallow_requests,
  swallow_replies,
  hold_requests,
  hold_replies,
  delay_requests,
  delay_replies,
  cut_before_reply,
  lose_reply,
  lose_messages,
  split,
  throttle,
  forget_in_silence,
  forget_with_reset,
  // of one worker
  stop_worker,
  kill_worker,
  // of the server
  stop_server,
  restart_server,
  kill_clients,
  kill_subscribers,
  pause_writes,
  pause_everything,
  // harmless
  flush_scripts,
  foreign_release,
  false_messages,
  lose_queues,
  // beyond what a lock on one server can survive
  flush_all,
  restart_empty,
  restart_old,
  delete_lock,
  // where another server takes the place of the primary
  kill_primary,
  stop_primary,
  relieve_primary,
  kill_sentinel,
  move_slots,
};

/// A link is one worker's to one server. A shard is what has a primary of its own: one of all, drawn when it is time.
enum class target { link, worker, server, shard, sentinel };

/// In which campaigns it is done.
enum class harm {
  none,       ///< each: a lock survives it
  disorders,  ///< where there is a fair_mutex: each survives it, and its order is lost
  delays,     ///< within, outside, red: elsewhere a link is not alone, and a server that is silent is replaced
  forgets,    ///< outside, red: a server forgets its locks
  returns,    ///< red: a server knows again what it had once
  breaks,     ///< outside: a lock is ended behind its holder's back
  replaces,   ///< sentinel, cluster
  silences,   ///< sentinel: nobody hears of it from this one
  moves,      ///< cluster: keys go to another primary
};

/// What there is to know of a kind of fault.
struct fault_terms {
  fault_kind kind;
  std::string_view name;
  target where;
  milliseconds shortest, longest;  ///< how long one lasts
  unsigned cards;                  ///< how many of them are in the deck
  harm does;
};
const fault_terms& terms_of(fault_kind) noexcept;

/// One fault of a storm.
struct fault {
  fault_kind kind;
  std::size_t worker;       ///< whom it concerns, unless it is a server
  std::size_t server;       ///< which it concerns, unless it is a worker
  milliseconds begin, end;  ///< since the start of the storm
};

/// Deals every kind in turn, so that each comes up. Those of shards have a deck of their own.
class deck {
 public:
  deck(campaign c, bool of_shards) : campaign_(c), of_shards_(of_shards) {}
  fault_kind deal(dice&);
  /// How long that one lasts.
  milliseconds lasts(const fault_terms&, dice&) const;

 private:
  bool is_done(harm) const;
  unsigned cards(const fault_terms&) const;

  const campaign campaign_;
  const bool of_shards_;
  bool slots_move_ = false;  // next
  std::vector<fault_kind> left_;
};

/// A few faults that overlap, at most one for each target; of several servers some concern two. One of a shard, if
/// there are any. The same for the same seed.
std::vector<fault> make_storm(campaign, deck&, deck& of_shards, dice&, std::size_t workers, std::size_t servers);

}  // namespace holdfast::chaos
