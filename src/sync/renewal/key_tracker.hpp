// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "sync/command/environment.hpp"
#include "sync/command/push_demand.hpp"
#include "sync/renewal/push_budget.hpp"
#include "sync/renewal/renewals.hpp"

namespace holdfast::detail {

/// Asks the servers to push the next change of the keys that are held: after each regular renewal, and when a server
/// may have forgotten them.
///
/// Decision: the question is a command of its own, EXISTS, behind the answer of the renewal. A server forgets a tracked
/// key at each write, also at our own, which it does not push. A renewal that asked for pushes would forget its key by
/// its own write, and cost the server 18 microseconds for each lock instead of 8 (docs/internals/pushes.md).
///
/// Decision: the first renewal begins it, not the grant. A hold that ends before a third of its TTL costs nothing.
///
/// Decision: a renewal that a push has caused is not followed by the question. Servers differ in what they push: Redis
/// before 7.0.5 pushes the client's own renewals, and a proxy may do so. The question after such a renewal would bring
/// the next push, without end. So a key is asked for once in a third of its TTL, and pushed at most that often.
///
/// Decision: where all keys of a server are in question, a few commands are under way at a time. Ten thousand locks in
/// as many slots of a cluster are ten thousand commands.
///
/// Decision: a client asks for at most `most_tracked` keys. A server has room for a million by default
/// (tracking-table-max-keys). Beyond that it forgets keys at random, and pushes each of them.
class key_tracker {
 public:
  /// With more held shares than this, none is asked for. Holders learn of a change by their next renewal.
  static constexpr std::size_t most_tracked = 100'000;
  /// The number of commands without an answer, of those that ask_all() sends to one server.
  static constexpr std::size_t most_under_way = 16;

  class host {
   public:
    /// Some of these shares have no key any more.
    virtual void missing(const renewals::shares& parts) = 0;

   protected:
    ~host() = default;
  };

  key_tracker(environment& env, host& of) noexcept : env_(env), host_(of) {}

  /// Shares with their groups, those of one group together.
  using grouped_shares = std::vector<std::pair<key_group, share_ptr>>;

  /// A renewal has confirmed these shares: asks for the next change of those that are guarded and not denied. `held`:
  /// the shares of the client.
  void ask(node_id node, const renewals::shares& parts, std::size_t held);
  /// The server may have forgotten all that was asked for. Asks for these shares, one command after the other.
  void ask_all(node_id node, grouped_shares parts, std::size_t held);
  /// No claim is held any more.
  void end() noexcept;
  /// Limits the confirmations that pushed changes cause.
  push_budget budget;

 private:
  class question;
  /// Shares of one server that are still to be asked for.
  struct backlog {
    grouped_shares parts;
    std::size_t next = 0;       // before it all are asked for
    std::size_t under_way = 0;  // commands

    /// The shares of the next command; none: all are asked for.
    renewals::shares take();
    void forget() noexcept {
      parts.clear();
      next = 0;
    }
  };

  void go_on(node_id node);
  bool send(node_id node, const renewals::shares& parts, bool of_backlog);
  void answered(const question& asked, const outcome& answer);

  environment& env_;
  host& host_;
  push_demand::user pushes_;
  std::map<node_id, backlog> backlogs_;
};

}  // namespace holdfast::detail
