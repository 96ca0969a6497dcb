// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/actor.hpp"

namespace holdfast::sim {

/// Does harm at random times, mends it again, and tells the judge what cannot be expected meanwhile.
class faults {
 public:
  faults(workload& w, server& node, std::vector<std::unique_ptr<sim_client>>& clients, nanoseconds ttl);

  void start() { strike_later(); }
  /// Nothing new from now on; what is under way ends by itself until mended_at().
  void finish();
  time_point mended_at() const noexcept { return mended_at_; }
  std::size_t strikes() const noexcept { return strikes_; }
  /// Closes a client for good, as a fault.
  std::function<void(sim_client&)> close_client;

 private:
  struct kind {
    std::string_view name;
    unsigned weight;
    void (faults::*strike)();
  };
  static const std::vector<kind>& kinds();

  void strike_later();
  void strike();

  // The network of one client.
  void reset_losing_requests();
  void reset_losing_replies();
  void reset_with_late_requests();
  void swallow_requests();
  void swallow_replies();
  void partition();
  void slow_down();
  void lose_messages();
  void delay_messages();
  void spoof_message();
  // The server.
  void pause_server();
  void restart_with_loss();
  void restart_without_loss();
  void flush_scripts();
  void step_clock_forward();
  void step_clock_back();
  void run_out_of_memory();
  void fail_disk();
  void load_data();
  void refuse_client_kill();
  // The client.
  void pause_client();
  void close_one();
  // The data.
  void take_away(const std::string& name);
  void flush_all();
  void delete_lock();
  void put_another_type();
  void put_hold_without_ttl();
  void take_ttl_away();
  void garble_token();

  sim_client& some_client();
  nanoseconds some_time();
  void restart(bool keep_data);
  void refuse(refusal why);
  /// Does `undo` after `duration`, during which `whom` (null: everybody) is not to be blamed.
  void mend_after(nanoseconds duration, const sim_client* whom, std::function<void()> undo);
  /// To all connections of a client, or to the one on which it sends next, with that on its way.
  void to_wires(const std::function<void(wire&)>& act);

  workload& w_;
  server& server_;
  std::vector<std::unique_ptr<sim_client>>& clients_;
  const nanoseconds ttl_;
  time_point mended_at_{};
  std::size_t strikes_ = 0;
  bool finishing_ = false;
};

}  // namespace holdfast::sim
