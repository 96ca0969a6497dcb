// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "chaos/call_book.hpp"
#include "chaos/nested_rig.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

/// Disturbs servers and links, each by one fault at a time, and servers by want of memory besides. None lasts longer
/// than a second. One thread.
class nested_faults {
 public:
  nested_faults(nested_rig& on, call_book& book, std::uint64_t seed) : on_(on), book_(book), dice_(seed) {}

  /// Returns after `time`, when all is well again.
  void rage(milliseconds time);

 private:
  enum class kind {
    none,
    // of a server
    full,  // beside the others
    stop,
    pause_writes,
    pause_everything,
    restart,
    kill_clients,
    kill_subscribers,
    flush_scripts,
    // of a link
    cut,
    refuse,
    swallow_requests,
    swallow_replies,
    hold_requests,
    hold_replies,
    delay,
    forget,
    cut_before_replies,
    lose_reply,
    lose_messages,
  };
  struct place {
    kind now = kind::none;
    call_instant until{};
  };

  void begin(std::size_t target);
  void end(std::size_t target);
  void begin_on_server(std::size_t server, kind, milliseconds lasts);
  void begin_on_link(test::proxy&, kind);
  void set_full(std::size_t server, bool full);
  std::string name_of(std::size_t target) const;

  nested_rig& on_;
  call_book& book_;
  dice dice_;
  std::vector<place> places_;  // servers, their memory, links
};

}  // namespace holdfast::chaos
