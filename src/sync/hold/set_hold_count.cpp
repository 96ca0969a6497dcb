// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/set_hold_count.hpp"

#include <new>
#include <utility>

#include "sync/command/send_once.hpp"
#include "sync/hold/hold.hpp"

namespace holdfast::detail {
namespace {

/// The one that has it, and does not give it back.
hold* keeper_of(const claim& c) {
  auto* const h = c.holder();
  return h && h->count() > 0 ? h : nullptr;
}

struct sent_count {
  unsigned leases;
  milliseconds ttl;
};

void on_answer(const engine_parts& with, claim& c, const sent_count& sent, const outcome& o) {
  auto& its = c.counted;
  const auto what = std::exchange(its.asked_again, false) ? in_question::claim : in_question::count;
  its.under_way = false;
  const auto said = c.keys->of.set_hold_count.read(o);
  const bool counted = !said.failed && said.value;
  its.leases = counted ? sent.leases : 0;  // also where the last unlock waits for its turn: the claim may be passed on
  auto* const h = keeper_of(c);
  if (!h || with.closed()) return;
  if (said.failed && said.failed->code == errc::corrupt_lock) return h->lose(errc::corrupt_lock);
  if (!said.failed && (!said.value || !h->exclusive())) return h->lose(errc::lost);
  if (counted) h->confirmed_by_count(o.sent, sent.ttl, o.yes);
  if (!counted && what == in_question::count) return;  // it is told with the next
  try {
    set_hold_count(with, c, what);
  } catch (const std::bad_alloc&) {
    its.leases = 0;
  }
}

}  // namespace

void set_hold_count(const engine_parts& with, claim& c, in_question what) {
  auto* const h = keeper_of(c);
  if (!h || with.closed()) return;
  auto& its = c.counted;
  if (its.under_way) {
    its.asked_again |= what == in_question::claim;
    return;
  }
  if (what == in_question::count && its.leases == h->count()) return;
  const sent_count sent{static_cast<unsigned>(h->count()), h->ttl_to_keep()};
  auto answered = [&with, keep = claim_ptr(&c), sent](const outcome& o) { on_answer(with, *keep, sent, o); };
  send_once(with.around, c.keys->of.set_hold_count.make(*c.keys, h->ttl_to_send(sent.ttl), c.field, sent.leases),
            {.timeout = command_budget(with.around.settings, h->ttl()), .rank = urgency::obligation},
            std::move(answered));
  its.under_way = its.ever_sent = true;  // not where there was no memory to send it
}

}  // namespace holdfast::detail
