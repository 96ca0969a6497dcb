// SPDX-License-Identifier: BSL-1.0
#include "sync/recount.hpp"

#include <memory>
#include <utility>

#include "sync/ask_twice.hpp"
#include "sync/hold.hpp"

namespace holdfast::detail {
namespace {

/// The one that has it, and does not give it back.
hold* keeper_of(const claim& c) {
  auto* const h = c.holder();
  return h && h->count() > 0 ? h : nullptr;
}

struct sent_count {
  unsigned leases = 0;
  milliseconds ttl{};
};

void on_answer(const hold_services& with, claim& c, const sent_count& sent, const outcome& o) {
  auto& its = c.counted;
  const bool asked_again = std::exchange(its.asked_again, false);
  its.under_way = false;
  auto* const h = keeper_of(c);
  if (!h || with.closed()) return;
  const auto said = c.keys->of.recount.read(o);
  if (said.failed) {
    its.leases = 0;
    if (said.failed->code == errc::corrupt_lock) return h->lose(errc::corrupt_lock);
  } else {
    if (!said.value || !h->exclusive()) return h->lose(errc::lost);
    its.leases = sent.leases;
    h->confirmed(o.sent, sent.ttl, o.yes);
  }
  const bool differs = !said.failed && its.leases != h->count();
  if (asked_again || differs) recount(with, c, asked_again ? in_question::claim : in_question::count);
}

}  // namespace

void recount(const hold_services& with, claim& c, in_question what) {
  auto* const h = keeper_of(c);
  if (!h || with.closed()) return;
  auto& its = c.counted;
  if (its.under_way) {
    its.asked_again |= what == in_question::claim;
    return;
  }
  if (what == in_question::count && its.leases == h->count()) return;
  const auto sent = std::make_shared<sent_count>();
  auto send = [&with, keep = claim_ptr(&c), sent](nanoseconds left, topology::handler then) {
    auto* const holds = keeper_of(*keep);
    if (!holds) return then({errc::unconfirmed, {}});
    *sent = {static_cast<unsigned>(holds->count()), holds->ttl_to_keep()};
    with.around.run(keep->keys->of.recount.make(*keep->keys, holds->ttl_to_send(sent->ttl), keep->field, sent->leases),
                    {.timeout = left, .rank = urgency::obligation}, std::move(then));
  };
  auto answered = [&with, keep = claim_ptr(&c), sent](const outcome& o) { on_answer(with, *keep, *sent, o); };
  ask_twice(with.around, command_budget(with.around.settings, h->ttl()), std::move(send), std::move(answered));
  its.under_way = true;  // not where there was no memory to send it
}

}  // namespace holdfast::detail
