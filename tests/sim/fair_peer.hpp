// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "sim/actor.hpp"

namespace holdfast::sim {

/// A thread of Redisson that waits in the queue of a fair mutex, beside waiters of ours. It stands, and listens then
/// or never. It comes when it is called, or when it looks again. It leaves the queue, or dies in it or as a holder. Its
/// clock may be ahead of the node's.
class fair_peer {
 public:
  fair_peer(workload& w, deployment& to, std::size_t number);

  void start() { act_later(); }
  void finish() noexcept { finishing_ = true; }

 private:
  class ear;
  enum class step : std::uint8_t { idle, waits, holds };

  void act_later();
  void act();
  void ask();
  void listen();
  void stop_listening();
  void leave();
  void release();
  void die();
  reply run(std::string_view script, bool purges, const std::string& third, const std::string& fourth = {});
  void note_departure(const std::string& head);
  std::string first_in_line();
  std::string publish_word() const;
  server& machine() const { return servers_.machines()[servers_.holder(0, name_)]; }

  workload& w_;
  deployment& servers_;
  const std::string id_;
  const milliseconds ahead_;
  step step_ = step::idle;
  std::string name_, owner_;
  std::shared_ptr<ear> ear_;
  std::uint64_t lives_ = 0, released_ = 0;  // the number of the life, and of the last one that released
  bool finishing_ = false;
};

}  // namespace holdfast::sim
