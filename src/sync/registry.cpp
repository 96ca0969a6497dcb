// SPDX-License-Identifier: BSL-1.0
#include "sync/registry.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "sync/lease_record.hpp"

namespace holdfast::detail {
namespace {

constexpr auto* drained_without = "it is being drained, and only an owner that holds may still lock or wait";

/// The event of an answer without a lease.
auto failed_at(const std::string& name) {
  return [&name](const lock_answer& said) { return event{.what = end_of_call(said.error), .name = name}; };
}

}  // namespace

registry::registry(const hold_services& with, owner_fields fields, function<void()> drained)
    : with_(with), fields_(std::move(fields)), drained_(std::move(drained)) {}

// Nobody is answered here. What refers to itself, through a timer, a queue or its caller, is taken apart.
registry::~registry() {
  for (const auto& [name, e] : names_)
    e.each_hold([](hold& h) {
      const auto keep = h.shared_from_this();
      h.forget_changes();
      h.leave_host();
    });
  end_changes();
}

std::shared_ptr<acquisition> registry::lock(const shared_keys& keys, lock_request request, lock_handler done) {
  const auto place = names_.lower_bound(keys->name);
  const bool known = place != names_.end() && place->first == keys->name;
  auto* const mine = known ? place->second.hold_of(request.who) : nullptr;
  if (!mine && drains_without(request.who)) {
    done({errc::closed, drained_without, nullptr});
    return nullptr;
  }
  auto who = std::make_shared<acquisition>(with_.around, keys, std::move(request), std::move(done));
  if (mine) {
    reenter(*mine, who);
    return who;
  }
  if (draining_) draining_->waits(who->request.who, keys->name);
  const auto at = known ? place : names_.try_emplace(place, keys->name, *this, keys);
  auto& e = at->second;
  if (!known) e.known_at(at);
  tell_if_waiting_for_ourselves(e, who->request);
  e.join(who);
  return who;
}

hold* registry::hold_of(std::string_view name, owner_id who) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second.hold_of(who);
}

// The hold that was broken may be ours: its holder should know now, not at the next renewal.
void registry::forced(std::string_view name, bool was_held) {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  if (auto* h = found->second.live_hold()) {
    if (was_held) h->forced();
    with_.renewals.confirm_soon(*h->on, nanoseconds::zero());
  }
  found->second.wake();
}

void registry::tell_if_waiting_for_ourselves(const entry& e, const lock_request& request) const {
  const auto* h = e.live_hold();
  if (h && !h->bound && !request.bound && request.wait != lock_request::patience::once)
    with_.around.report({.what = event::kind::waiting_for_ourselves, .name = e.keys()->name});
}

void registry::reenter(hold& h, std::shared_ptr<acquisition> who) {
  std::make_shared<reentry>(with_.around, h.shared_from_this(), std::move(who))->begin();
}

void registry::drain() {
  draining_.emplace();
  std::vector<std::shared_ptr<waiting_line>> lines;  // a line that becomes empty leaves its name
  for (const auto& [name, e] : names_) {
    e.each_hold([&](const hold& h) {
      if (!h.ended()) draining_->add(h.who);
    });
    if (auto* l = e.line()) lines.push_back(l->shared_from_this());
  }
  for (const auto& l : lines)
    l->fail(
        [&](const acquisition& a) {
          const bool stays = draining_->contains(a.request.who);
          if (stays) draining_->waits(a.request.who, l->name());
          return !stays;
        },
        errc::closed, drained_without);
}

void registry::hold_is_over(owner_id who) {
  if (!draining_) return;
  for (const auto& name : draining_->remove(who)) {
    const auto found = names_.find(name);
    auto* const line = found == names_.end() ? nullptr : found->second.line();
    if (line) line->fail_all_of(who, errc::closed, "it is being drained, and its owner holds no more");
  }
  if (draining_->empty()) drained_();
}

void registry::close() {
  draining_.reset();
  struct known {
    std::shared_ptr<waiting_line> line;
    std::vector<std::shared_ptr<hold>> holds;
  };
  std::vector<known> all;  // closing a hold may remove its name
  for (const auto& [name, e] : names_) {
    auto& k = all.emplace_back();
    if (auto* l = e.line()) k.line = l->shared_from_this();
    e.each_hold([&](hold& h) { k.holds.push_back(h.shared_from_this()); });
  }
  for (const auto& k : all) {
    if (k.line) k.line->fail([](const acquisition&) { return true; }, errc::closed, "");
    for (const auto& h : k.holds) {
      h->close();
      if (h->changing()) changing_.push_back(h);
    }
  }
  for (auto next = names_.begin(); next != names_.end();) (next++)->second.close();
}

void registry::end_changes() {
  for (const auto& h : std::exchange(changing_, {})) h->forget_changes();
}

// ---- one name

hold* registry::entry::live_hold() const {
  const auto live = std::find_if(holds_.begin(), holds_.end(), [](const auto* h) { return !h->ended(); });
  return live == holds_.end() ? nullptr : *live;
}

hold* registry::entry::hold_of(owner_id who) const {
  const auto mine = std::find_if(holds_.begin(), holds_.end(), [&](const auto* h) { return h->who == who; });
  return mine == holds_.end() ? nullptr : *mine;
}

void registry::entry::join(std::shared_ptr<acquisition> who) {
  if (!line_) line_ = std::make_shared<waiting_line>(of_.with_.around, *this, keys_);
  line_->join(std::move(who));
}

void registry::entry::wake() {
  if (line_) line_->wake();
}

void registry::entry::doubt_hold_here() {
  // After 20 ms most holds are over: the echo of their release has cost nothing.
  if (auto* h = live_hold()) of_.with_.renewals.confirm_soon(*h->on, milliseconds(20));
}

std::shared_ptr<lease_record> registry::entry::granted(const acquisition& first, std::optional<std::uint64_t> token,
                                                       time_point now) {
  const auto& with = of_.with_;
  const auto& asked = first.request;
  const node_id node = with.around.servers.node_of(keys_->lock);
  auto c = std::make_shared<claim>(with.around.time, with.closed_flag, keys_, first.seat.field, std::span(&node, 1), 1);
  holds_.reserve(holds_.size() + 1);
  const auto h = std::make_shared<hold>(std::move(c), asked.who, asked.bound, token, now, with, *this);
  holds_.push_back(h.get());
  std::shared_ptr<lease_record> lease;
  try {
    lease = h->grant(asked.asked, first.seat.sent, now);
    if (of_.draining_) of_.draining_->add(h->who);
  } catch (...) {
    holds_.pop_back();
    h->leave_host();
    throw;
  }
  while (auto same = asked.bound ? line_->extract(asked.who) : nullptr) move_to(*h, std::move(same));
  return lease;
}

// The hold stands, whatever becomes of those who would re-enter it.
void registry::entry::move_to(hold& h, std::shared_ptr<acquisition> who) try {
  of_.reenter(h, who);
} catch (const std::bad_alloc&) {
  who->answer({errc::unreachable, "no memory to re-enter", nullptr}, failed_at(keys_->name));
}

void registry::entry::give_back(const owner_field& field, milliseconds ttl, function<void()> tried) {
  of_.with_.freeing.release_in_background(*this, keys_, field, ttl, std::move(tried));
}

void registry::entry::line_empty() {
  line_.reset();
  leave_if_unused();
}

void registry::entry::close() {
  line_.reset();
  for (auto* h : std::exchange(holds_, {})) h->leave_host();
  leave_if_unused();
}

void registry::entry::ended(hold& h) {
  of_.hold_is_over(h.who);
  if (h.state() == lease_state::lost) wake();
}

void registry::entry::forget(hold& h) {
  const auto place = std::find(holds_.begin(), holds_.end(), &h);
  HOLDFAST_ASSERT(place != holds_.end());
  holds_.erase(place);
  if (of_.with_.closed() && h.changing()) of_.changing_.push_back(h.shared_from_this());
  leave_if_unused();
}

void registry::entry::queue(std::shared_ptr<acquisition> who) {
  const bool closed = of_.with_.closed();
  if (!closed && !of_.drains_without(who->request.who)) {
    if (of_.draining_) of_.draining_->waits(who->request.who, keys_->name);
    return join(std::move(who));
  }
  who->answer({errc::closed, closed ? "" : drained_without, nullptr}, failed_at(keys_->name));
}

void registry::entry::release_ends() {
  HOLDFAST_ASSERT(releasing_ > 0);
  wake();
  --releasing_;
  leave_if_unused();
}

void registry::entry::leave_if_unused() {
  if (!line_ && holds_.empty() && releasing_ == 0) of_.names_.erase(place_);
}

}  // namespace holdfast::detail
