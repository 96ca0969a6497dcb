// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/timers.hpp"
#include "redis/io_services.hpp"
#include "redis/subscription_table.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// The subscribers of a cluster's channels: keeps each channel subscribed at the node that owns its slot, and goes with
/// it. Every subscriber hears on_subscribed() each time that its channel is subscribed anew, because what was published
/// in between is missed.
///
/// A classic channel could be heard at any node. It is subscribed at the owner of its slot, too: there is no second
/// rule, and the nodes share the work.
///
/// Used on the strand only, in a shared_ptr. As of redis::pubsub: subscribers are called on the strand, never inside a
/// call, and may unsubscribe and subscribe meanwhile; the last owner calls close().
class shard_channels final : public std::enable_shared_from_this<shard_channels> {
 public:
  /// By which kind of channels a message may come; empty: sharded where the server has them, as redis::pubsub has it.
  using way = std::optional<redis::channel_kind>;

  /// The cluster, as far as it is needed here.
  struct environment {
    /// Who has the slot of the channel, as far as is known; 0: nobody.
    std::function<node_id(std::string_view channel)> owner;
    /// Subscribes at the pub/sub connection of this node for this way. Calls nobody inside.
    std::function<subscription(node_id node, const way& by, std::string_view channel, subscriber& subscriber)>
        subscribe;
  };

  /// `ways`: one, or several at once; then a channel is subscribed when it is by all of them, and a message may come
  /// once by each.
  shard_channels(const redis::io_services& services, environment env, std::vector<way> ways);
  shard_channels(const shard_channels&) = delete;
  shard_channels& operator=(const shard_channels&) = delete;
  ~shard_channels();

  /// The result is released on the strand; it may outlive this object. `subscriber` must live until then.
  subscription subscribe(std::string_view channel, subscriber& subscriber);

  /// A node's pub/sub connection has said so, after the cluster has learned of it what there is to learn.
  void moved(node_id node, std::string_view channel);
  /// Slots may have another owner than before.
  void map_changed();
  /// The pub/sub connections of the node are closed for good.
  void node_gone(node_id node);

  /// The slot of a channel has no known owner, for a reason that does not mend itself: its subscribers hear why.
  void tell_homeless(const redis::failure& why);

  bool empty() const noexcept { return channels_.empty(); }
  /// A channel was asked for at the node.
  bool any_at(node_id node) const noexcept;
  /// A channel is nowhere: a better map would help.
  bool any_homeless() const noexcept;
  void close();

 private:
  struct member;
  struct channel;
  struct leg;

  void leave(member& member);
  void greet_late_comer(std::weak_ptr<member> member);
  void look(channel& channel);
  void ask(channel& channel, node_id node);
  void pause(channel& channel, time_point until);
  void stop_pause(channel& channel);
  void on_pause_over();
  void on_subscribed(leg& by);
  void tell_failed(channel& channel, error_code error, const std::string& detail);

  template <class What>
  void tell_all(channel& channel, What action);

  const redis::io_services services_;
  const environment env_;
  const std::vector<way> ways_;
  std::map<std::string, std::shared_ptr<channel>, std::less<>> channels_;
  std::set<std::pair<time_point, channel*>> pauses_;
  timer next_pause_;
  bool closed_ = false;
};

}  // namespace holdfast::detail
