// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/lease_clock.hpp"
#include "base/timers.hpp"
#include "redis/endpoint.hpp"
#include "redis/request.hpp"
#include "topology/cluster/redirects.hpp"
#include "topology/cluster/slots.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// A command on its way through a cluster, as the connections see it. Its router gets the outcome, and answers its
/// sender or sends it on.
///
///   waiting ── send ──> at a node ── answer, or no answer ──> gone
///      ^                    │
///      └── pause, or no owner of its slot is known ──┘        withdrawn: gone from waiting, and from a node's queue
class routed_command final : public redis::command {
 public:
  class router {
   public:
    virtual void heard(routed_command& command, const redis::outcome& outcome) = 0;

   protected:
    ~router() = default;
  };

  routed_command(router& by, timers& alarms, slot_number of, redis::request request, time_point now)
      : slot(of), asked(std::move(request)), deadline(saturating_add(now, asked.terms.timeout)),
        policy(asked.terms.divisible), pause(alarms), router_(by) {}

  const slot_number slot;
  const redis::request asked;
  /// The time at which its sender is answered, or notified that it is late. Redirects and pauses count.
  const time_point deadline;
  redirects policy;
  redis::ticket number = 0;  // among the open commands; 0: it is over
  node_id at = 0;            // where it is; 0: it waits
  redis::ticket sent_as = 0;
  std::optional<redis::address> named;  // its next node, if that is not the owner of its slot
  bool asking = false;
  bool ran_in_part = false;               // as of redis::outcome
  time_point resume = time_point::max();  // while it waits: until then; max: until its slot has an owner
  bool unwanted = false;                  // its sender has withdrawn it: it is not sent anew
  bool reported_late = false;
  std::string refusal;                              // the last one, safe to print
  std::unique_ptr<const redis::outcome> try_again;  // the last answer, if it was TRYAGAIN
  timer pause;                                      // while it waits: resume or deadline

  /// The delivery with which it is sent now.
  redis::delivery delivery_at(time_point now) const;

  void append_to(std::string& out) const override { asked.command->append_to(out); }
  void written(time_point now, lease_clock::duration left) noexcept override { asked.command->written(now, left); }
  const redis::command_name* counted_as() const noexcept override { return asked.command->counted_as(); }
  void answered(const redis::outcome& outcome) override {
    if (number != 0) router_.heard(*this, outcome);
  }
  void late(const redis::outcome& outcome) override {
    reported_late = true;
    if (number != 0) asked.command->late(outcome);
  }

 private:
  router& router_;
};
using routed_ptr = std::shared_ptr<routed_command>;

/// The commands that are not over, in the order in which they came.
class open_commands {
 public:
  bool empty() const noexcept { return alive_ == 0; }
  std::size_t size() const noexcept { return alive_; }
  /// Gives it its number.
  void add(routed_ptr command);
  /// Null: the command is over.
  routed_ptr find(redis::ticket number) const;
  /// The command is over. The caller keeps it alive meanwhile.
  void remove(routed_command& command);
  void clear() noexcept;

  /// The numbers of the commands that match. Commands may be added and removed while the caller walks them.
  template <class Predicate>
  std::vector<redis::ticket> all(Predicate matches) const {
    std::vector<redis::ticket> found;
    for (const auto& entry : entries_)
      if (entry.command && matches(*entry.command)) found.push_back(entry.number);
    return found;
  }

 private:
  struct entry {
    redis::ticket number;
    routed_ptr command;  // null: a gap
  };
  std::deque<entry>::iterator place_of(redis::ticket number);

  std::deque<entry> entries_;  // gaps are fewer than half, and none is at an end
  std::size_t alive_ = 0;
  redis::ticket last_ = 0;
};

}  // namespace holdfast::detail
