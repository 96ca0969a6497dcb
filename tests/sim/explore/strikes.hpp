// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/explore/offer.hpp"
#include "sim/judge/judge.hpp"

namespace holdfast::sim::explore {

/// The faults of a small world, as a set of bits.
enum fault : std::uint32_t {
  no_fault = 0,
  reply_lost = 1,         // a connection ends, and its replies with it; commands arrive
  command_lost = 2,       // a connection ends, and its commands with it
  connection_silent = 4,  // nothing arrives at the client any more, and it sees no end
  server_restart = 8,     // each connection ends; the data stays
  server_loss = 16,       // the same without the data
  server_pause = 32,
  client_pause = 64,
  late = 128,       // the next timer comes before what is on its way
  very_late = 256,  // what is on its way arrives after more than a TTL
  failover = 512,   // as an operator asks for it
};

/// The faults that can strike a small world now, and the ends of those that last. One lasts at a time.
class strikes {
 public:
  /// `beyond_ttl`: longer than any TTL, by any clock.
  strikes(std::uint32_t faults, nanoseconds beyond_ttl, scheduler& plan, deployment& servers,
          const client_list& clients, sim::judge& judge)
      : faults_(faults), beyond_ttl_(beyond_ttl), plan_(plan), servers_(servers), clients_(clients), judge_(judge) {}

  void offer_faults(std::vector<offer>& to);
  void offer_end(std::vector<offer>& to);
  /// After each instant: nothing is expected of those that a fault troubles while it lasts.
  void look() const {
    if (lasting_.undo) lasting_.in_trouble();
  }
  /// The fault that lasts ends now.
  void end();
  bool lasts() const { return lasting_.undo != nullptr; }
  /// A fault has lasted for so long that nothing new can happen before its end.
  bool waits_for_end() const { return lasting_.undo && (plan_.now() >= lasting_.since + beyond_ttl_ || !plan_.next()); }

 private:
  struct lasting {
    std::string label;
    objects changes = 0;
    time_point since{};
    std::function<void()> in_trouble, undo;
  };

  bool has(fault kind) const { return (faults_ & kind) != 0; }
  void add(std::vector<offer>& to, std::string label, objects changes, std::function<void()> strike);
  void offer_connections(std::vector<offer>& to, std::size_t client, std::size_t machine);
  void offer_machine(std::vector<offer>& to, std::size_t machine);
  void offer_delays(std::vector<offer>& to);
  void begin(lasting fault);
  void restart(std::size_t machine, bool keep_data);
  void stop(std::size_t machine);
  void pause(std::size_t client);
  void promote();
  /// Events of a flow that leads nowhere are gone.
  void drop(const flow& on);

  const std::uint32_t faults_;
  const nanoseconds beyond_ttl_;
  scheduler& plan_;
  deployment& servers_;
  const client_list& clients_;
  sim::judge& judge_;
  lasting lasting_;
};

}  // namespace holdfast::sim::explore
