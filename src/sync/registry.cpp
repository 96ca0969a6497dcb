// SPDX-License-Identifier: BSL-1.0
#include "sync/registry.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "sync/hold/lease_record.hpp"

namespace holdfast::detail {
namespace {

constexpr auto* not_reentrant = "its owner holds it, and it is not re-entrant";
constexpr auto* holds_no_more = "it is being drained, and its owner holds no more";
constexpr auto* drained_without = "it is being drained, and only an owner that holds may still lock or wait";

/// The event of an answer without a lease.
auto failed_at(const lock_keys& keys) {
  return [&keys](const lock_answer& said) {
    return hold_event{{.what = end_of_call(said.error), .name = keys.name, .lock_kind = keys.of.name}};
  };
}

}  // namespace

registry::registry(const hold_services& with, owner_fields fields, function<void()> drained)
    : with_(with), fields_(std::move(fields)), drained_(std::move(drained)) {}

// Nobody is answered here. What refers to itself, through a timer, a queue or its caller, is taken apart.
registry::~registry() {
  while (!asking_.empty()) {
    const auto who = asking_.front().kept;
    who->forget_caller();
    forget(*who);
  }
  for (auto& e : names_) e.take_apart();
  names_.clear_and_dispose(unmake_entry());
  end_changes();
}

std::shared_ptr<acquisition> registry::lock(const shared_keys& keys, const lock_request& request, lock_handler&& done) {
  const auto key = entry_key::of(*keys);
  const auto place = names_.lower_bound(key);
  entry* e = place != names_.end() && entry_key::of(*place->keys()) == key ? &*place : nullptr;
  auto* mine = e && !request.one_of_several ? e->hold_of(request.who) : nullptr;
  if (mine && !keys->of.reentrant && !mine->live()) mine = nullptr;  // there is nothing to be nested in
  if (!mine && drains_without(request.who)) {
    done({errc::shutting_down, drained_without, nullptr});
    return nullptr;
  }
  auto who = make_pooled<acquisition>(with_.around.blocks, with_.around, keys, request, std::move(done));
  if (mine) {
    if (!enter(*mine, *who)) reenter(*e, *mine, who);
    return who;
  }
  if (draining_) draining_->waits(who->request.who, keys->name);
  if (!e) e = &make_entry(keys, place);
  tell_if_waiting_for_ourselves(*e, *who);
  try {
    e->join(who);
  } catch (...) {
    leave_if_unused(*keys);
    throw;
  }
  return who;
}

const char* registry::refusal(owner_id who) const { return drains_without(who) ? drained_without : nullptr; }

void registry::begin(const std::shared_ptr<asker>& who) {
  who->begin();
  if (!who->open()) return;
  asking_.push_back(who->listed);
  who->listed.kept = who;
}

bool registry::untouched(const lock_keys& keys) {
  auto* const e = find(keys);
  if (!e || e->live_hold()) return !e;
  return !e->line() || e->line()->empty();
}

std::shared_ptr<lease_record> registry::granted(const shared_keys& keys, const lock_request& request,
                                                const granted_field& what) {
  try {
    return at(keys).hold_for(request, keys, what);
  } catch (...) {
    leave_if_unused(*keys);
    throw;
  }
}

void registry::give_back(const shared_keys& keys, const owner_field& field, milliseconds ttl, function<void()> tried) {
  try {
    at(keys).give_back(field, ttl, std::move(tried), everywhere);
  } catch (...) {
    leave_if_unused(*keys);
    throw;
  }
}

void registry::server_changed(node_id node) {
  repeat_releases(std::nullopt);
  if (with_.around.servers.primaries() > 1) return;
  for (auto& e : names_)
    if (with_.around.servers.node_of(e.keys()->lock) == node) e.each_hold([](hold& h) { h.count_elsewhere(); });
}

// Obligations are written before all other commands that wait for the same connection, so the next request for these
// names finds them free. A release without memory leaves its key to the TTL.
void registry::repeat_releases(std::optional<key_group> group) {
  with_.freeing.take_answered_elsewhere(group, [this](const answered_releases::entry& r) {
    try {
      with_.freeing.repeat(at(r.keys), r);
    } catch (const std::bad_alloc&) {
      leave_if_unused(*r.keys);
    }
  });
}

// Something was undone for lack of memory, which may have destroyed the entry.
void registry::leave_if_unused(const lock_keys& keys) {
  if (auto* const e = find(keys)) e->leave_if_unused();
}

void registry::forget(asker& who) {
  if (!who.listed.hook.is_linked()) return;
  asking_.erase(asking_.iterator_to(who.listed));
  who.listed.kept.reset();
}

template <class Which>
void registry::fail_askers(Which which, const char* detail) {
  std::vector<std::shared_ptr<asker>> leaving;
  for (const auto& a : asking_)
    if (which(a.kept->request.who)) leaving.push_back(a.kept);
  for (const auto& a : leaving) a->fail(errc::shutting_down, detail);
}

registry::entry& registry::at(const shared_keys& keys) {
  const auto key = entry_key::of(*keys);
  const auto place = names_.lower_bound(key);
  if (place != names_.end() && entry_key::of(*place->keys()) == key) return *place;
  return make_entry(keys, place);
}

registry::entry& registry::make_entry(const shared_keys& keys, names::iterator before) {
  auto* const e = new (with_.around.blocks->take(sizeof(entry))) entry(*this, keys);
  return *names_.insert_before(before, *e);
}

registry::entry* registry::find(const lock_keys& keys) {
  const auto found = names_.find(entry_key::of(keys));
  return found == names_.end() ? nullptr : &*found;
}

hold* registry::hold_of(const lock_keys& keys, owner_id who) {
  auto* const found = find(keys);
  return found ? found->hold_of(who) : nullptr;
}

// The hold that was broken may be ours: its holder should know now, not at the next renewal.
void registry::forced(const lock_keys& keys, bool was_held) {
  auto* const found = find(keys);
  if (!found) return;
  if (auto* h = found->live_hold()) {
    if (was_held) h->forced();
    with_.renewals.confirm_soon(*h->on, nanoseconds::zero());
  }
  found->wake();
}

// A wait with a deadline is not reported, nor is a wait for another coroutine.
void registry::tell_if_waiting_for_ourselves(entry& e, acquisition& who) const {
  const auto& request = who.request;
  if (request.bound || request.one_of_several || request.wait != lock_request::patience::forever) return;
  const auto* h = e.live_hold();
  if (!h || h->bound()) return;
  const bool known = h->coroutine && request.coroutine;
  if (known && h->coroutine != request.coroutine) return;
  const auto& around = with_.around;
  around.report({.what = known ? event::kind::waiting_for_ourselves : event::kind::perhaps_waiting_for_ourselves,
                 .name = e.keys()->name});
  if (around.notices) around.notices->waits_for_own_hold(who.noticed, e.keys());
}

bool registry::held_since(const lock_keys& keys, time_point since) {
  auto* const found = find(keys);
  const auto* const h = found ? found->live_hold() : nullptr;
  return h && !h->bound() && h->granted_at <= since;
}

void registry::lost_redis() {
  const auto& around = with_.around;
  for (auto& e : names_)
    if (auto* const l = e.line(); l && !around.servers.answering(e.keys()->lock))
      l->each_waiter([&](acquisition& w) { around.notices->lost_redis(w.noticed, w.keys); });
}

bool registry::enter(hold& h, acquisition& who) {
  const auto& of = who.keys->of;
  const auto now = with_.around.now();
  const bool may = of.reentrant && (!of.fenced() || h.token()) && h.count() < most_reentries;
  if (!may || !h.covers(who.request.asked, now)) return false;
  who.answer({{}, {}, h.enter(who.request.asked, now)},
             [&](const lock_answer&) { return event_of(event::kind::reentered, h, now); });
  return true;
}

// Also for waiters whose owner was granted the lock: they come behind the one that was granted, who is answered first.
void registry::reenter(entry& name, hold& h, std::shared_ptr<acquisition> who) {
  if (!h.keys()->of.reentrant) return who->answer({errc::already_held, not_reentrant, nullptr}, failed_at(*who->keys));
  std::make_shared<reentry>(with_.around, name, hold_ptr(&h), std::move(who))->begin();
}

void registry::drain() {
  draining_.emplace();
  std::vector<std::shared_ptr<waiting_line>> lines;  // a line that becomes empty leaves its name
  for (auto& e : names_) {
    e.each_hold([&](const hold& h) {
      if (!h.ended()) draining_->add(h.who);
    });
    if (auto* l = e.line()) lines.push_back(l->shared_from_this());
  }
  fail_askers([&](owner_id who) { return !draining_->contains(who); }, drained_without);
  for (const auto& l : lines)
    l->fail(
        [&](const acquisition& a) {
          const bool stays = draining_->contains(a.request.who);
          if (stays) draining_->waits(a.request.who, l->name());
          return !stays;
        },
        errc::shutting_down, drained_without);
}

void registry::hold_is_over(owner_id who) {
  if (!draining_) return;
  std::vector<std::shared_ptr<waiting_line>> lines;
  for (const auto& name : draining_->remove(who))
    for (auto e = names_.lower_bound(entry_key::first_of(name)); e != names_.end() && e->keys()->name == name; ++e)
      if (auto* l = e->line()) lines.push_back(l->shared_from_this());
  fail_askers([&](owner_id asks) { return asks == who && !draining_->contains(who); }, holds_no_more);
  for (const auto& l : lines) l->fail_all_of(who, errc::shutting_down, holds_no_more);
  if (draining_->empty()) drained_();
}

void registry::close() {
  draining_.reset();
  fail_askers([](owner_id) { return true; }, "");
  struct known {
    std::shared_ptr<waiting_line> line;
    std::vector<hold_ptr> holds;
  };
  std::vector<known> all;  // closing a hold may remove its name
  for (auto& e : names_) {
    auto& k = all.emplace_back();
    if (auto* l = e.line()) k.line = l->shared_from_this();
    e.each_hold([&](hold& h) { k.holds.emplace_back(&h); });
  }
  for (const auto& k : all) {
    if (k.line) k.line->fail([](const acquisition&) { return true; }, errc::shutting_down, "");
    for (const auto& h : k.holds) {
      h->close();
      if (h->changing()) changing_.push_back(h);
    }
  }
  for (auto next = names_.begin(); next != names_.end();) (next++)->close();
}

void registry::end_changes() {
  for (const auto& h : std::exchange(changing_, {})) h->forget_changes();
}

// ---- one name

hold* registry::entry::live_hold() {
  const auto live = std::find_if(holds_.begin(), holds_.end(), [](const hold& h) { return !h.ended(); });
  return live == holds_.end() ? nullptr : &*live;
}

hold* registry::entry::hold_of(owner_id who) {
  hold* mine = nullptr;
  for (auto& h : holds_)
    if (h.who == who && (!mine || !h.ended())) mine = &h;
  return mine;
}

bool registry::entry::held_here() const {
  return std::any_of(holds_.begin(), holds_.end(), [](const hold& h) { return !h.ended(); });
}

void registry::entry::join(std::shared_ptr<acquisition> who) {
  auto& around = of_.with_.around;
  if (line_ || !holds_.empty()) share();
  if (!line_) line_ = make_pooled<waiting_line>(around.blocks, around, of_.fields_, *this, keys_);
  line_->join(std::move(who));
}

// If there is no memory to wake the first waiter, it asks by itself within poll_cap.
void registry::entry::wake() noexcept {
  if (const auto line = line_) if_memory([&] { line->wake(); });
}

// ---- turns

void registry::entry::share() {
  const auto& around = of_.with_.around;
  if (sharing_ || !around.settings.turns) return;
  sharing_.reset(new (std::nothrow) sharing(around.alarms, turn(around.now(), keys_->of.polls.first)));
  if (!sharing_) return;  // it goes without turns
  const auto* const h = live_hold();
  sharing_->mine.begin(h ? h->granted_at : around.now(), 0);
}

bool registry::entry::hears_itself() { return sharing_ && sharing_->mine.hear(of_.with_.around.now()); }

nanoseconds registry::entry::found_busy() {
  share();
  return sharing_ ? sharing_->mine.found_busy(of_.with_.around.now()) : nanoseconds::max();
}

time_point registry::entry::rests_until() const { return sharing_ ? sharing_->mine.rests_until() : time_point(); }

const acquisition* registry::entry::heir_of(const hold& h, const legacy& what) {
  const auto now = of_.with_.around.now();
  const auto* const next = what.sound && line_ && sharing_->mine.may_pass(now) ? line_->heir() : nullptr;
  if (!next) return nullptr;
  const auto& asked = next->request.asked;
  const auto drift = of_.with_.around.settings.drift;
  const bool ample = h.valid_until() - now >= 2 * nanoseconds(asked.ttl) / 3;
  // Nor longer than a grant would give: so long others wait for one that is killed.
  const bool short_enough =
      h.valid_until() <= valid_until(now, asked.ttl, drift) && h.on->may_live(now, drift) <= asked.ttl;
  const bool fits = ample && short_enough && asked.min_replicas <= what.replicas;
  // Who wants no renewal wants a TTL that begins now.
  return fits && asked.renew && (!next->keys->of.fenced() || h.next_token().token) ? next : nullptr;
}

bool registry::entry::pass_on(hold& h, const legacy& what) {
  if (!sharing_) return false;
  const auto now = of_.with_.around.now();
  const auto* const heir = heir_of(h, what);
  if (!heir) {
    sharing_->mine.release_begins(now);
    return false;
  }
  const auto request = heir->request;
  std::shared_ptr<lease_record> lease;
  try {
    const auto token = heir->keys->of.fenced() ? h.next_token() : hold::fencing();
    const hold_ptr next(new (*of_.with_.client->blocks)
                            hold(h.on, request.who, request.bound, token, h.passes + 1, now, of_.with_, *this));
    next->coroutine = request.coroutine;
    lease = begin(next, [&] { return next->take_over(request.asked, now); });
  } catch (const std::bad_alloc&) {
    sharing_->mine.release_begins(now);
    return false;
  }
  sharing_->mine.passed();
  if (const auto& around = of_.with_.around; around.settings.observer) {
    auto passed = event_of(event::kind::passed, h, now);
    passed.what.ttl = what.ttl;
    around.report(std::move(passed));
  }
  move_to_hold_of(request, *lease->of);
  line_->inherited(std::move(lease));
  if (request.bound) wake();
  return true;
}

void registry::entry::end_turn(const release_end& how) {
  if (how.told > 0 && !of_.with_.closed()) share();
  if (!sharing_) return;
  const auto now = of_.with_.around.now();
  using echo = turn::echo;
  const bool listens = line_ && line_->listens();
  sharing_->mine.release_ends(now, how.told, !listens ? echo::none : line_->lingers() ? echo::fades : echo::heard);
  if (sharing_->mine.rests_until() > now) rest();
}

// False: there was no memory for its end.
bool registry::entry::rest() noexcept try {
  sharing_->rest.start(sharing_->mine.rests_until(), [this] { rest_ends(); });
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// The entry may be gone afterwards.
void registry::entry::rest_ends() {
  const bool prolonged = sharing_->mine.rests_until() > of_.with_.around.now();  // by a release that was heard
  if (prolonged && rest()) return;
  if (line_ && line_->lingers()) return line_->stop_lingering();
  leave_if_unused();
}

void registry::entry::doubt_hold_here() {
  // After 20 ms most holds are over: the echo of their release has cost nothing.
  if (auto* h = live_hold()) h->doubt(milliseconds(20));
}

bool registry::entry::held_by(owner_id who) {
  const auto* mine = hold_of(who);
  return mine && !mine->ended();
}

void registry::entry::reenter(std::shared_ptr<acquisition> who) {
  auto& mine = *hold_of(who->request.who);
  move_to(mine, std::move(who));
}

std::shared_ptr<lease_record> registry::entry::hold_for(const lock_request& request, const shared_keys& keys,
                                                        const granted_field& what) {
  const auto& with = of_.with_;
  auto& servers = with.around.servers;
  boost::container::small_vector<node_id, 1> nodes{servers.node_of(keys_->lock)};
  while (nodes.size() < servers.primaries()) nodes.push_back(static_cast<node_id>(nodes.size()));
  auto& pool = *with.client->blocks;
  auto c = claim::make(with.client, keys, what.field, nodes, tally::majority(nodes.size()));
  c->begin_without(~what.may_be_at);
  const hold_ptr h(new (pool) hold(std::move(c), request.who, request.bound, {what.token, what.spare_tokens}, 0,
                                   what.now, with, *this));
  h->coroutine = request.coroutine;
  auto lease = begin(h, [&] { return h->grant(request.asked, what.sent, what.now, what.at); });
  if (sharing_) {
    sharing_->mine.begin(what.now, line_ && !line_->empty() ? line_->size() - 1 : 0);
    sharing_->rest.stop();
  }
  move_to_hold_of(request, *h);
  if (request.bound) wake();  // the first may be of the same owner, and re-enter as well
  return lease;
}

template <class Begin>
std::shared_ptr<lease_record> registry::entry::begin(const hold_ptr& h, Begin begin) {
  holds_.insert_after(holds_.previous(holds_.end()), *h);  // most often there is none before it
  try {
    auto lease = begin();
    if (of_.draining_) of_.draining_->add(h->who);
    return lease;
  } catch (...) {
    holds_.erase(holds_.iterator_to(*h));
    h->leave_host();
    throw;
  }
}

void registry::entry::move_to_hold_of(const lock_request& request, hold& h) {
  while (auto same = request.bound && line_ ? line_->extract(request.who) : nullptr) move_to(h, std::move(same));
}

// The hold stands, whatever becomes of those who would re-enter it: nothing is thrown, even where their answer finds no
// memory either.
void registry::entry::move_to(hold& h, std::shared_ptr<acquisition> who) noexcept {
  try {
    return of_.reenter(*this, h, who);
  } catch (const std::bad_alloc&) {
  }
  try {
    if (who->open()) who->answer(without_memory(), failed_at(*keys_));
  } catch (const std::bad_alloc&) {
  }
}

void registry::entry::give_back(const owner_field& field, milliseconds ttl, function<void()> tried, primary_set at) {
  of_.with_.freeing.release_in_background(*this, keys_, field, ttl, std::move(tried), at);
}

void registry::entry::line_empty() {
  line_.reset();
  leave_if_unused();
}

bool registry::entry::may_linger() const { return sharing_ && (held_here() || rests()); }

void registry::entry::end_lingering() {
  if (line_ && line_->lingers()) line_->stop_lingering();
}

void registry::entry::close() {
  line_.reset();
  sharing_.reset();
  while (!holds_.empty()) take_out_first()->leave_host();
  leave_if_unused();
}

void registry::entry::take_apart() {
  while (!holds_.empty()) {
    const auto h = take_out_first();
    h->forget_changes();
    h->leave_host();
  }
}

hold_ptr registry::entry::take_out_first() {
  hold_ptr h(&holds_.front());
  holds_.pop_front();
  return h;
}

void registry::entry::ended(hold& h) {
  of_.hold_is_over(h.who);
  if (h.state() != lease_state::lost) return;
  wake();
  end_lingering();
}

void registry::entry::forget(hold& h) {
  HOLDFAST_ASSERT(h.of_host.is_linked());
  holds_.erase(holds_.iterator_to(h));
  if (of_.with_.closed() && h.changing()) of_.changing_.emplace_back(&h);
  leave_if_unused();
}

void registry::entry::queue(std::shared_ptr<acquisition> who) {
  const bool closed = of_.with_.closed();
  if (!closed && !of_.drains_without(who->request.who)) {
    if (of_.draining_) of_.draining_->waits(who->request.who, keys_->name);
    return join(std::move(who));
  }
  who->answer({errc::shutting_down, closed ? "" : drained_without, nullptr}, failed_at(*keys_));
}

void registry::entry::release_ends(const release_end& how) {
  HOLDFAST_ASSERT(releasing_ > 0);
  if_memory([&] {
    if (how.ends_turn) end_turn(how);
  });
  if (how.may_be_free) wake();
  if_memory([this] {
    if (!held_here() && !rests()) end_lingering();
  });
  --releasing_;
  leave_if_unused();
}

void registry::entry::leave_if_unused() {
  if (!line_ && holds_.empty() && releasing_ == 0 && !rests())
    of_.names_.erase_and_dispose(of_.names_.iterator_to(*this), of_.unmake_entry());
}

}  // namespace holdfast::detail
