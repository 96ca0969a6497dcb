// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/actor.hpp"

namespace holdfast::sim {

/// Does harm at random times, mends it again, and tells the judge what cannot be expected meanwhile.
class faults {
 public:
  faults(workload& w, deployment& servers, std::vector<std::unique_ptr<sim_client>>& clients, nanoseconds ttl);

  void start() { strike_later(); }
  /// Nothing new from now on; what is under way ends by itself until mended_at().
  void finish();
  time_point mended_at() const noexcept { return mended_at_; }
  /// What was put in the way of locks is gone, also where a replica had it that was not told in time.
  void sweep();
  /// Latches that will never open are deleted, as an operator does it.
  void delete_latches();
  /// How many had an effect: a command or a message that met them, data that they took away.
  std::size_t felt() const noexcept { return felt_; }
  /// Closes a client for good, as a fault; false: it may not be closed.
  std::function<bool(sim_client&)> close_client;

 private:
  struct kind {
    std::string_view name;
    unsigned weight;
    bool (faults::*strike)();  // whether it had an effect at once
    enum { anywhere, one_server_alone, if_one_takes_over, in_a_cluster } where = anywhere;
  };
  using counter = const std::uint64_t&;
  static const std::vector<kind>& kinds();
  bool can_be(const kind& k) const;

  void strike_later();
  void strike();

  // The network between one client and a node.
  bool reset_losing_requests();
  bool reset_losing_replies();
  bool reset_with_late_requests();
  bool swallow_requests();
  bool swallow_replies();
  bool partition();
  bool slow_down();
  bool lose_messages();
  bool delay_messages();
  bool spoof_message();
  // The server.
  bool pause_server();
  bool restart_with_loss();
  bool restart_without_loss();
  bool flush_scripts();
  bool step_clock_forward();
  bool step_clock_back();
  bool run_out_of_memory();
  bool fail_disk();
  bool lose_replicas();
  bool become_replica();
  bool be_busy();
  bool load_data();
  bool refuse_client_kill();
  // Several servers.
  bool ask_for_failover();
  bool isolate_server();
  bool slow_down_replicas();
  bool move_slot();
  // The client.
  bool pause_client();
  bool close_one();
  // The data.
  bool flush_all();
  bool delete_lock();
  bool evict_counter();
  bool evict_place();
  bool evict_deadline();
  bool is_string(const std::string& name) const;
  bool never_ends(std::size_t node, const std::string& name);
  bool put_another_type();
  bool put_hold_without_ttl();
  bool take_ttl_away();
  bool garble_token();

  sim_client& some_client();
  std::size_t some_node() { return w_.below(nodes_.size()); }
  /// A server with data; of those that take each other's place, the one that has this key.
  std::size_t some_node_with(std::string_view key) {
    return servers_.fails_over() ? servers_.holder(0, key) : some_node();
  }
  /// The data of a server, to be tampered with.
  template <class Do>
  auto tamper(std::size_t node, Do what);
  /// Between a client and a node.
  struct path {
    sim_client& client;
    std::size_t node;
    route& way() const { return client.ways()[node]; }
  };
  path some_path();
  nanoseconds some_time();
  void feel(std::string_view fault);
  bool restart(bool keep_data);
  bool refuse(refusal why);
  bool take_away(std::size_t node, const std::string& name);
  /// Does `undo` after `duration`, during which `whom` (null: everybody) is not to be blamed for what it has to do with
  /// that node.
  void mend_after(nanoseconds duration, const sim_client* whom, std::size_t node, std::function<void()> undo);
  /// The same for what has an effect only if something meets it: if `met` counts any until then.
  bool mend_after(nanoseconds duration, const sim_client* whom, std::size_t node, counter met,
                  std::function<void()> undo);
  /// The same for what is in nobody's way.
  void undo_after(nanoseconds duration, std::function<void()> undo);
  void watch(std::string_view fault, time_point end, counter met);
  /// To all connections of a client to a node, or to the one on which it sends next, with that on its way.
  bool to_wires(const std::function<bool(const path&, wire&)>& act);
  /// The same with what swallows silently.
  bool swallow(void (wire::*what)() noexcept);

  workload& w_;
  deployment& servers_;
  std::deque<server>& nodes_;  // its machines
  std::vector<std::unique_ptr<sim_client>>& clients_;
  const nanoseconds ttl_;
  const bool has_calms_;
  std::map<std::string, std::uint64_t, std::less<>> refused_;  // by the error's first word
  time_point mended_at_{};
  const kind* striking_ = nullptr;
  std::size_t felt_ = 0;
  bool finishing_ = false;
};

}  // namespace holdfast::sim
