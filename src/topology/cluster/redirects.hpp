// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <optional>
#include <string_view>

#include "base/lease_clock.hpp"
#include "redis/endpoint.hpp"
#include "redis/resp.hpp"
#include "topology/cluster/slot_map.hpp"
#include "topology/cluster/slots.hpp"

namespace holdfast::detail {

/// A key was moved away between two accesses of one script: it may have written before.
bool ended_in_script(std::string_view error) noexcept;

/// "MOVED 3999 127.0.0.1:6381" or "ASK 3999 127.0.0.1:6381". An empty host is the host of the node that answered. The
/// last colon ends an IPv6 address.
struct redirect {
  enum class kind { moved, ask } type;
  slot_number slot;
  redis::address to;
};
/// Nothing if the error is no redirect, or leads nowhere.
std::optional<redirect> read_redirect(std::string_view error, const redis::address& answered_by, const reach_by& reach);

/// Pure: the next step of one command whose answer says "elsewhere" or "not now".
///
/// Decision: such an answer stays in the topology. The command did not run, so it is sent again without further care,
/// and no caller gets the answer. At its deadline it is `unreachable`, with the words of the last refusal. TRYAGAIN is
/// an answer at the deadline, because it comes from a server that serves all other keys. A withdrawn command is not
/// followed: its sender has sent a release behind it on the same connection.
///
///   MOVED        to the named node, at once; the second MOVED, or if a node names itself, after a pause, by the map
///   ASK          to the named node, with ASKING before it; the map does not change
///   TRYAGAIN     after a pause, to the same node, for no longer than longest_try_again; after that it is an answer, as
///                it is at the deadline, and to a command that is divisible
///   no answer, because the named node cannot be reached: after a pause, by the map; meanwhile its connection is tried
///   CLUSTERDOWN, READONLY, LOADING, MASTERDOWN, a key of another node, a redirect that leads nowhere:
///                after a pause, by the map, which is asked for anew
///
/// A pause is 2 ms, twice as long each time, and 100 ms at most. From the sixth redirect on, each but a first MOVED is
/// followed after the longest pause. Nodes that keep naming each other cost ten commands a second, until the command's
/// deadline.
///
/// TRYAGAIN has a bound of its own, because it comes as long as a slot moves. It comes only to scripts of several keys:
/// a fenced lock and its token, the keys of a semaphore, or two names in one renewal. A waiter and a release try again
/// until the slot has moved.
class redirects {
 public:
  using duration = lease_clock::duration;
  static constexpr duration longest_try_again = std::chrono::seconds(1);

  explicit redirects(bool divisible = false) noexcept : divisible_(divisible) {}

  struct step {
    enum class kind {
      deliver,    // it is an answer
      by_map,     // again, to the owner of its slot
      to_named,   // again, to `to`
      same_node,  // again, to where it was sent, as it was sent; at the deadline it is an answer
    } type = kind::deliver;
    redis::address to{};
    bool asking = false;
    duration pause{};
    bool refresh = false;             // the map is older than what the answer says
    std::optional<redirect> moved{};  // the new owner of one slot
  };
  step on_reply(const redis::reply& reply, const redis::address& answered_by, const reach_by& reach, time_point now);
  /// The node of a redirect cannot be reached, and the command was not written.
  step on_named_lost() { return elsewhere(step::kind::by_map); }

 private:
  step on_redirect(const redirect& redirect, const redis::address& answered_by);
  step on_try_again(time_point now);
  step elsewhere(step::kind kind);
  duration grow();

  bool divisible_;
  unsigned followed_ = 0;  // redirects until now
  bool moved_ = false;     // one of them was a MOVED
  duration pause_{};       // the last one
  std::optional<time_point> try_again_since_;
};

}  // namespace holdfast::detail
