// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/backoff.hpp"
#include "protocol/kind.hpp"
#include "sync/command/environment.hpp"
#include "sync/command/script_command.hpp"
#include "sync/line/places.hpp"

namespace holdfast::detail {

/// The line whose waiters have the places.
class place_host {
 public:
  /// A message calls a place: the lock is free, and its turn has come.
  virtual void place_called(std::uint8_t place, std::string_view message) = 0;
  /// Redis has answered which places stand, or why it does not say.
  virtual void places_shown(const answer<stand_answer>& answer) = 0;
  /// The server refuses the subscription of a place.
  virtual void places_unheard(error_code error, const std::string& detail) = 0;
  /// Places may have to be shown.
  virtual void places_due() = 0;

 protected:
  ~place_host() = default;
};

/// Shows the places of one line to Redis: their subscriptions, and one command at a time. `rules` decides.
///
/// Decision: all places are shown again at least every `looks`. That keeps their deadlines ahead, and brings a lost
/// queue back. The answer tells whether the lock is free, so a lost message costs time alone.
class place_keeper final : public script_command {
 public:
  place_keeper(environment& env, place_host& host, shared_keys keys, std::shared_ptr<const uuid> client);
  ~place_keeper();

  places rules;
  /// The place of another client whose turn it is, by the last answer that named one.
  std::string turn;
  /// The same, for the attempt under way: its command refers to it. Empty: it suspects nobody.
  std::string suspect;

  /// Subscribes the places of the waiters, and sends the next command, if there is one. `attempting`: the first waiter
  /// has an attempt under way.
  void show(bool attempting);
  /// No place stands, not even perhaps, and no command is under way.
  bool idle() const noexcept { return !rules.shows() && !rules.may_stand(); }
  /// The host is called no more, and the command under way is not sent again.
  void stop();
  /// A field of this client, for a command about all its places.
  owner_field any_place() const noexcept { return place_field(*client_, 0); }

 private:
  /// The subscription of one place.
  class ear;

  void on_answer(const outcome& outcome) override;
  void subscribe();
  void send_shown();
  void look_at(time_point when);

  environment& env_;
  place_host& host_;
  const shared_keys keys_;
  const std::shared_ptr<const uuid> client_;
  std::array<std::unique_ptr<ear>, places::most> ears_;
  boost::container::static_vector<owner_field, places::most> shown_;  // the command under way refers to them
  const owner_field any_;                                             // the same
  retry_backoff backoff_;
  std::optional<time_point> again_at_;  // after a failure
  timer alarm_;
};

}  // namespace holdfast::detail
