// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/lease_clock.hpp"
#include "redis/resp.hpp"

namespace holdfast::redis {

/// Pure: which channels are wanted, what the server was asked for, and which of its answers are outstanding.
///
/// One SUBSCRIBE or UNSUBSCRIBE for each channel, so that a refusal names it; many of them go out in one write. Answers
/// come in the order of the commands: a channel is confirmed when the last of its outstanding answers is that to a
/// SUBSCRIBE.
class subscription_table {
 public:
  using time_point = detail::time_point;

  /// Asks again for a channel that was refused.
  void want(std::string_view channel);
  void unwant(std::string_view channel);
  bool any_wanted() const noexcept { return wanted_ != 0; }
  /// Something is to be sent, or an answer to come.
  bool busy() const noexcept { return !changed_.empty() || ping_ || !questions_.empty(); }
  bool confirmed(std::string_view channel) const;
  /// Whether the server may have a channel subscribed: one was asked for, and is not known to be given back.
  bool any_asked() const;

  /// A connection is up: asks for all that is wanted.
  void start();
  /// It is gone, and what was asked of it.
  void stop();
  void clear() noexcept;
  void ping() { ping_ = true; }

  /// Appends what is to be sent until `out` holds `enough` bytes.
  void write(std::string& out, std::size_t enough, time_point now);
  /// When the oldest command without an answer was written.
  std::optional<time_point> oldest_unanswered() const;

  struct event {
    enum class kind { nothing, confirmed, refused, message, desync, error } what = kind::nothing;
    std::string channel{};  // confirmed, refused, message
    std::string text{};     // refused, error: the server's words; message: the payload; desync: a cause
  };
  event on_reply(reply r);

 private:
  struct state {
    bool wanted = false;
    bool asked = false;  // the last command sent was SUBSCRIBE
    int unanswered = 0;
    bool refused = false;
  };
  using channels = std::map<std::string, state, std::less<>>;
  enum class command { subscribe, unsubscribe, ping };
  struct question {
    command what;
    channels::iterator of;  // not for ping
    time_point when;
  };

  void mark(channels::iterator c);
  void forget_if_unused(channels::iterator c);
  void ask(std::string& out, channels::iterator c, time_point now);
  event on_answer(const question& q, const reply& r);
  event on_push(reply& r);

  channels channels_;
  std::size_t wanted_ = 0;
  bool started_ = false;
  bool ping_ = false;
  std::set<std::string> changed_;  // wanted and asked may differ
  std::deque<question> questions_;
};

}  // namespace holdfast::redis
