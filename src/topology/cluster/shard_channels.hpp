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
#include "redis/subscriber_list.hpp"
#include "redis/subscription_table.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// The subscribers of a cluster's channels: keeps each channel subscribed at the node that owns its slot, and moves
/// with the slot. Every subscriber gets on_subscribed() each time that its channel is subscribed anew, because it may
/// have missed messages in between.
///
/// Decision: a classic channel is subscribed at the owner of its slot, too. Any node would do, but one rule is simpler,
/// and the nodes share the work.
///
/// Used on the strand only, in a shared_ptr. As of redis::pubsub: subscribers are called on the strand, never inside a
/// call, and may unsubscribe and subscribe meanwhile; the last owner calls close().
class shard_channels final : public std::enable_shared_from_this<shard_channels> {
 public:
  /// A kind of channels by which a message may come; empty: sharded where the server has them, as in redis::pubsub.
  using way = std::optional<redis::channel_kind>;

  /// The functions of the cluster that are needed here.
  struct environment {
    /// The known owner of the channel's slot; 0: none.
    std::function<node_id(std::string_view channel)> owner;
    /// Subscribes at the pub/sub connection of this node for this way. Calls no subscriber inside.
    std::function<subscription(node_id node, const way& by, std::string_view channel, subscriber& subscriber)>
        subscribe;
  };

  /// `ways`: one or several. With several a channel is subscribed when all of them are, and a message may come once by
  /// each.
  shard_channels(const redis::io_services& services, environment env, std::vector<way> ways);
  shard_channels(const shard_channels&) = delete;
  shard_channels& operator=(const shard_channels&) = delete;
  ~shard_channels();

  /// The result is released on the strand; it may outlive this object. `subscriber` must live until then.
  subscription subscribe(std::string_view channel, subscriber& subscriber);

  /// The node's pub/sub connection has reported it. The cluster has updated its map before.
  void moved(node_id node, std::string_view channel);
  /// Slots may have another owner than before.
  void map_changed();
  /// The pub/sub connections of the node are closed for good.
  void node_gone(node_id node);

  /// The slot of a channel has no known owner, for a reason that does not mend itself: its subscribers get the reason.
  void tell_homeless(const redis::failure& why);

  bool empty() const noexcept { return channels_.empty(); }
  /// A channel is subscribed at the node, or about to be.
  bool any_at(node_id node) const noexcept;
  /// A channel has no node: a better map would help.
  bool any_homeless() const noexcept;
  void close();

 private:
  using member = redis::channel_member<shard_channels>;
  friend member;
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

  template <class Action>
  void tell_all(channel& channel, Action action);

  const redis::io_services services_;
  const environment env_;
  const std::vector<way> ways_;
  std::map<std::string, std::shared_ptr<channel>, std::less<>> channels_;
  std::set<std::pair<time_point, channel*>> pauses_;
  timer next_pause_;
  bool closed_ = false;
};

}  // namespace holdfast::detail
