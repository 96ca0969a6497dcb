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

/// Several independent primaries, each of which has every key: they vote. What is said here of all of them, a majority
/// of those that are configured says.
class quorum final : public topology {
 public:
  quorum(timers& alarms, const clock& time, std::vector<std::unique_ptr<topology>> each);
  ~quorum() override;

  /// Of the first: each of them has the key.
  node_id node_of(std::string_view) const override { return 0; }
  /// Not here: each is asked by itself.
  redis::ticket execute(std::string_view key, redis::request asked) override;
  bool withdraw(redis::ticket ticket) override;
  bool answering(std::string_view key) override;
  bool answered_since(std::string_view key, time_point when) override;
  redis::failure trouble(std::string_view key) const override;
  std::optional<redis::failure> silence_since(std::string_view key, time_point when) override;
  std::size_t primaries() const noexcept override { return each_.size(); }
  topology& primary(std::size_t index) noexcept override { return *each_[index]; }
  std::string run_of(std::string_view) const override { return {}; }
  /// Not here, as execute().
  std::uint64_t server_of(std::string_view) const override { return 0; }
  bool in_outage(std::string_view key) const override;
  std::string where(std::string_view key) const override;
  void note_round(lease_clock::duration took) override;
  /// It hears a message when a majority has sent one or was free; where none was, one round trip after the first at
  /// the latest; not that of the slower ones.
  subscription subscribe(std::string_view channel, subscriber& subscriber) override;
  void keep_watch(bool on) override;
  void on_link_change(link_listener listener) override;
  void close() override;

 private:
  class subscriber_list;

  std::size_t needed() const noexcept { return each_.size() / 2 + 1; }
  template <class Which>
  bool majority(Which matches) const;

  timers& alarms_;
  const clock& time_;
  const std::vector<std::unique_ptr<topology>> each_;
  lease_clock::duration round_ = std::chrono::milliseconds(1);  // until the last answer to a round, the last time
};

}  // namespace holdfast::detail
