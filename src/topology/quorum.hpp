// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/timers.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// Several independent primaries, each with every key: they vote. An answer about all of them is the answer of a
/// majority of the configured ones.
class quorum final : public topology {
 public:
  quorum(timers& alarms, const clock& time, std::vector<std::unique_ptr<topology>> each);
  ~quorum() override;

  /// The first one: each of them has the key.
  node_id node_of(std::string_view) const override { return 0; }
  /// Not called here: each primary is asked by itself.
  redis::ticket execute(std::string_view key, redis::request asked) override;
  bool withdraw(redis::ticket ticket) override;
  bool answering(std::string_view key) override;
  bool answered_since(std::string_view key, time_point when) override;
  redis::failure trouble(std::string_view key) const override;
  std::optional<redis::failure> silence_since(std::string_view key, time_point when) override;
  std::size_t primaries() const noexcept override { return each_.size(); }
  topology& primary(std::size_t index) noexcept override { return *each_[index]; }
  std::string run_of(std::string_view) const override { return {}; }
  /// Not called here, as execute().
  std::uint64_t server_of(std::string_view) const override { return 0; }
  bool in_outage(std::string_view key) const override;
  std::string where(std::string_view key) const override;
  void note_vote_time(lease_clock::duration took) override;
  /// The subscriber gets a message when a majority of the primaries has sent one or was free. If none was free, it gets
  /// the message within one round trip of the first. The same message of the slower primaries is dropped.
  subscription subscribe(std::string_view channel, subscriber& subscriber) override;
  void count_as_message(const subscription& kept, node_id primary) override;
  void start_pushing(std::string_view key) override;
  void stop_pushing() override;
  bool pushes(std::string_view key) const override;
  void on_key_changed(change_listener listener) override;
  void keep_watch(bool on) override;
  void on_link_change(link_listener listener) override;
  void close() override;

 private:
  class subscriber_list;

  std::size_t needed() const noexcept { return each_.size() / 2 + 1; }
  template <class Predicate>
  bool majority(Predicate matches) const;

  timers& alarms_;
  const clock& time_;
  const std::vector<std::unique_ptr<topology>> each_;
  lease_clock::duration vote_time_ = std::chrono::milliseconds(1);  // of the last vote, until its last answer
};

}  // namespace holdfast::detail
