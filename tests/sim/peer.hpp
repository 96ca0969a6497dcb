// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

#include "sim/actor.hpp"

namespace holdfast::sim {

/// A service beside the library that shares its locks, as Redisson writes them: counts with HINCRBY, releases with DEL,
/// sometimes dies without a release. It talks to the node without delay, so it knows what it holds. It ends the permits
/// of a semaphore by a clock of its own, which may be ahead of the node's. It reads and writes beside any order of
/// ours. It sets latches and counts them down.
class peer {
 public:
  peer(workload& w, deployment& to, std::size_t number);

  void start() { act_later(); }
  void finish() noexcept { finishing_ = true; }

 private:
  void act_later();
  void act();
  void acquire();
  bool acquire_permit(milliseconds ttl);
  void release();
  void use_latch();
  std::string publish_word() const;
  bool simple() const;
  bool permits() const;
  bool shared() const;
  server& server_of(const std::string& name) const { return servers_.machines()[servers_.holder(0, name)]; }
  reply call(const std::string& script, const std::string& argument);
  reply call_for_permits(const std::string& script, milliseconds ttl);
  reply call_for_shared(const std::string& script, milliseconds ttl);

  workload& w_;
  deployment& servers_;
  const std::string id_;
  const milliseconds ahead_;  // its clock
  std::string name_, field_;  // what it holds
  std::string owner_;         // the field, and of a writer its beginning
  bool writes_ = false;       // a shared mutex
  std::uint64_t holds_ = 0;
  bool finishing_ = false;
};

}  // namespace holdfast::sim
