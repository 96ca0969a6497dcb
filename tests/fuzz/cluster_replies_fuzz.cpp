// SPDX-License-Identifier: BSL-1.0
// Nodes of a cluster may say anything: a map has known owners alone and keeps what it knew, and no redirect leads to
// what is no address. A run is replies: maps, and errors, which answer one command and may move a slot.
#include <string_view>

#include "fuzz/input.hpp"
#include "topology/cluster/redirects.hpp"
#include "topology/cluster/slot_map.hpp"

using namespace holdfast;
using namespace holdfast::detail;
using fuzz::require;

namespace {

void can_be_reached(const redis::address& at) {
  require(!at.host.empty() && at.host.size() <= 253, "an address has a host");
  require(fuzz::printable(at.host) && at.host.find_first_of(" /@") == at.host.npos, "a host can be printed");
  require(at.port != 0, "an address has a port");
  require(at.unix_path.empty(), "no server is on a path of this machine");
}

void can_be_used(const slot_map& map) {
  std::size_t covered = 0;
  for (slot_number s = 0; s < slot_count; ++s) {
    const auto who = map.owner(s);
    covered += who != slot_map::nobody;
    require(who == slot_map::nobody || map.owns_any(who), "an owner owns something");
  }
  require(covered == map.covered(), "what is covered is counted");
}

class replies {
 public:
  void hear(const redis::reply& r) {
    const auto& by = nodes_[turn_++ % 2];
    if (r.is_error()) return follow(r, by);
    const auto view = read_slots(r, by, {});
    if (!view) return;
    for (const auto& range : view->ranges) {
      require(range.first <= range.last && range.last < slot_count, "a range is of slots");
      if (range.primary) can_be_reached(*range.primary);
    }
    const auto before = map_.covered();
    const auto taken = map_.replace(*view, by);
    require(taken || map_.covered() == before, "what is not taken changes nothing");
    can_be_used(map_);
  }

 private:
  void follow(const redis::reply& r, const redis::address& by) {
    using kind = redirects::step::kind;
    const auto next = policy_.on_reply(r, by, {}, now_);
    now_ += next.pause;
    require(next.type != kind::deliver || !next.refresh, "an answer needs no newer map");
    require(next.pause <= std::chrono::milliseconds(100), "a pause has an end");
    if (next.type != kind::deliver && next.pause == lease_clock::duration{})
      require(++followed_at_once_ <= 2, "nothing is followed at once for ever");
    if (next.type == kind::to_named) can_be_reached(next.to);
    if (!next.moved) return;
    can_be_reached(next.moved->to);
    map_.moved(next.moved->slot, next.moved->to);
    require(map_.owner(next.moved->slot) == map_.number_of(next.moved->to), "a slot that has moved has its new owner");
  }

  const redis::address nodes_[2] = {{"10.0.0.1", 7000, {}}, {"10.0.0.2", 7001, {}}};
  slot_map map_;
  redirects policy_;
  time_point now_{};
  unsigned turn_ = 0, followed_at_once_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  redis::reader server;
  server.feed({reinterpret_cast<const char*>(data), size});
  replies told;
  while (const auto r = server.next()) told.hear(*r);
  return 0;
}
