// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list.hpp>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/lease_clock.hpp"
#include "redis/resp.hpp"

namespace holdfast::redis {

/// The two kinds of channels of Redis; a message on one kind does not reach subscribers of the other. Classic channels
/// have SUBSCRIBE and PUBLISH. Sharded channels (in a cluster, since Redis 7) have SSUBSCRIBE and SPUBLISH; such a
/// channel has a slot, and its messages arrive at the node of that slot.
enum class channel_kind { classic, sharded };

/// The channel by which the server pushes the keys that have changed. It is a classic one on every connection.
inline constexpr std::string_view push_channel = "__redis__:invalidate";

/// The word for SUBSCRIBE of this kind.
std::string_view subscribe_word(channel_kind) noexcept;

/// Pure: the channels that are wanted, the commands that were sent for them, and the answers that are outstanding.
///
/// Each SUBSCRIBE or UNSUBSCRIBE has one channel, so that a refusal belongs to it; many of them go out in one write.
/// Answers come in the order of the commands. A channel is confirmed when the last of its outstanding answers is that
/// to a SUBSCRIBE.
///
/// A sharded channel may be at another node, or move there. SSUBSCRIBE is then answered by a redirect, or an unasked
/// `sunsubscribe` comes. The latter looks like the answer to SUNSUBSCRIBE, and is taken for it if one is outstanding;
/// the real answer is then the surplus one. Both prove nothing about a channel with a command outstanding, whose answer
/// comes later. A surplus redirect names no channel and leaves the answers out of step: the connection ends, and
/// everything is subscribed anew.
///
/// A message on push_channel has an array of keys, or nothing if any key may have changed. Another form counts as
/// nothing: a change that is not understood must not be missed.
class subscription_table {
 public:
  using time_point = detail::time_point;

  /// Asks again for a channel that was refused, or has moved.
  void want(std::string_view channel);
  void unwant(std::string_view channel);
  bool any_wanted() const noexcept { return wanted_ != 0; }
  /// The number of channels that are wanted.
  std::size_t wanted() const noexcept { return wanted_; }
  /// A command is to be sent, or an answer is outstanding.
  bool busy() const noexcept { return !changed_.empty() || ping_ || !questions_.empty(); }
  bool confirmed(std::string_view channel) const;
  /// The server may have a channel subscribed: one was asked for, and is not known to be unsubscribed.
  bool any_asked() const;
  /// A SUBSCRIBE has no answer yet.
  bool any_unanswered() const { return oldest_subscribe().has_value(); }
  /// The time at which the oldest SUBSCRIBE without an answer was written.
  std::optional<time_point> oldest_subscribe() const;

  /// A connection is up: asks for all wanted channels.
  void start(channel_kind of = channel_kind::classic);
  /// The connection is gone, and its commands with it.
  void stop();
  void clear() noexcept;
  void ping() { ping_ = true; }
  /// Asks again for the channels that were unavailable.
  void ask_again();
  /// The kind of the connection's channels.
  channel_kind kind_of_channels() const noexcept { return kind_; }

  /// Appends commands until `out` holds `enough` bytes.
  void write(std::string& out, std::size_t enough, time_point now);
  /// The time at which the oldest command without an answer was written.
  std::optional<time_point> oldest_unanswered() const;

  struct event {
    /// refused: by an ACL; unavailable: by any other words
    /// changed: keys, by push_channel
    enum class kind {
      nothing,
      confirmed,
      refused,
      unavailable,
      moved,
      message,
      changed,
      desync,
      error
    } type = kind::nothing;
    std::string channel{};  // confirmed, refused, unavailable, moved, message
    /// refused, unavailable, error: the server's words; moved: these, or empty; message: the payload; desync: a cause
    std::string text{};
    std::vector<std::string> keys{};  // changed; none: any key
  };
  event on_reply(reply reply);

 private:
  struct state {
    bool wanted = false;
    bool asked = false;  // the last command sent was SUBSCRIBE
    int unanswered = 0;
    bool given_up = false;     // refused, or moved: not asked for again until someone new wants it
    bool unavailable = false;  // the same, or until ask_again()
    const std::string* name = nullptr;
    boost::intrusive::list_member_hook<> changed{};
  };
  using channels = std::map<std::string, state, std::less<>>;
  using states = boost::intrusive::list<
      state, boost::intrusive::member_hook<state, boost::intrusive::list_member_hook<>, &state::changed>>;
  enum class command { subscribe, unsubscribe, ping };
  struct question {
    command sent;
    channels::iterator of;  // not for ping
    time_point when;
  };

  void mark(state& state) noexcept;
  void unmark(state& state) noexcept;
  void forget_if_unused(channels::iterator channel);
  void ask(std::string& out, channels::iterator channel, time_point now);
  bool answers(const question& question, const reply& reply) const;
  event on_answer(const question& question, const reply& reply);
  event on_not_subscribed(channels::iterator channel, event::kind why, std::string words);
  event on_unasked(std::string_view channel);
  event on_changed(reply& reply) const;
  event on_message(reply& reply);

  channel_kind kind_ = channel_kind::classic;
  channels channels_;
  std::size_t wanted_ = 0;
  bool started_ = false;
  bool ping_ = false;
  states changed_;  // wanted and asked differ; by hooks, because to unsubscribe needs no memory
  std::deque<question> questions_;
};

}  // namespace holdfast::redis
