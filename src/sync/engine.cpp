// SPDX-License-Identifier: BSL-1.0
#include "sync/engine.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/cancelled.hpp"
#include "sync/reentry.hpp"

namespace holdfast::detail {
namespace {

constexpr auto* by_force = "Redis answered that its key is gone or another's, after force_unlock() by this client";

constexpr auto* unanswered_before = "Redis did not answer what came before it in time";

}  // namespace

/// A listener of a lease's end, for those who may cancel it.
class engine::end_watch final : public cancellable {
 public:
  using place = std::list<lease_record::end_listener>::iterator;
  end_watch(std::weak_ptr<lease_record> of, place where) : of_(std::move(of)), where_(where) {}

  void cancel() override {
    const auto record = of_.lock();
    if (!record || record->end_listeners.empty()) return;  // all are told at once, and each cancels at most once
    const auto listener = std::move(*where_);
    record->end_listeners.erase(where_);
    listener(cancelled());
  }

 private:
  std::weak_ptr<lease_record> of_;
  place where_;
};

engine::engine(surroundings around, std::weak_ptr<core> home, owner_fields fields)
    : around_(around), home_(std::move(home)), closed_(std::make_shared<std::atomic<bool>>(false)),
      fields_(std::move(fields)), releases_(around_, [this](const std::string& name) { wake(name); }),
      patience_(around_), watchdog_(around_, [this](claim& c, error_code reason) { lose(*c.holder(), reason); }),
      grace_(around.alarms) {
  around_.servers.on_link_change([this](node_id node, bool up) { watchdog_.link_changed(node, up); });
}

// Nobody is answered here. What refers to itself, through a timer, a queue or its caller, is taken apart.
engine::~engine() {
  closed_->store(true, std::memory_order_release);
  for (auto* r : std::exchange(reentries_, {})) r->forget_caller();
  for (const auto& [name, e] : names_) forget_changes(e.holds);
  forget_changes(changing_);
}

cancellable_ptr engine::lock(const shared_keys& keys, lock_request request, lock_handler done) {
  if (closed()) {
    done({errc::closed, {}, nullptr});
    return nullptr;
  }
  const auto place = names_.lower_bound(keys->name);
  const bool known = place != names_.end() && place->first == keys->name;
  if (auto h = known ? place->second.hold_of(request.who) : nullptr)
    return reenter(std::move(h), std::move(request), std::move(done), around_.now());
  if (drains_without(request.who)) {
    done({errc::closed, drained_without, nullptr});
    return nullptr;
  }
  if (draining_) draining_->waits(request.who, keys->name);
  auto& e = (known ? place : names_.try_emplace(place, keys->name, *this, keys))->second;
  if (!e.line) e.line = std::make_shared<waiting_line>(around_, e, keys);
  const auto line = e.line;  // a copy: join() may empty the line
  tell_if_waiting_for_ourselves(e, request);
  return line->join(std::move(request), std::move(done));
}

void engine::unlock(const std::shared_ptr<lease_record>& record, done_handler done) {
  if (!record->try_release()) return done(errc::not_held, {});
  give_up_lease(record, std::move(done));
}

void engine::drop(const std::shared_ptr<lease_record>& record) {
  const auto& h = *record->of;
  const bool ends_it = !h.ended() && !closed() && h.leases.size() == 1 && !h.changes.busy();
  if (record->dropped_at_once && ends_it) around_.report(event::kind::dropped_at_once, h);
  give_up_lease(record, {});
}

void engine::renew(const std::shared_ptr<lease_record>& record, milliseconds ttl, done_handler done) {
  const auto h = record->of;
  if (record->released.load(std::memory_order_acquire)) return done(errc::not_held, {});
  if (closed()) return done(errc::closed, {});
  if (!h->ended() && !h->exclusive()) lose(*h, errc::lost);
  if (h->ended()) return done(h->end_reason(), h->end_detail());
  if (ttl == milliseconds::zero()) ttl = record->asked.ttl;
  done = until_closed(std::move(done));
  auto send = [this, h, ttl](nanoseconds left, topology::handler then) {
    const renewal one{h->keys()->lock, h->field(), ttl_to_send(*h, ttl)};
    around_.run(scripts::renew({&one, 1}), {.timeout = left, .rank = urgency::obligation}, std::move(then));
  };
  auto answered = [this, record, h, ttl, done = std::move(done)](const outcome& o) {
    const auto said = o.error ? answer<std::vector<bool>>{} : read_renew(o.reply, 1);
    if (h->state() == lease_state::released) return done(errc::not_held, {});
    if (!h->ended() && !h->exclusive()) lose(*h, errc::lost);
    if (!h->ended() && !o.error && !said.error && !said.value[0]) lose(*h, errc::lost);
    const bool confirmed = !o.error && !said.error;
    if (!h->ended() && confirmed && !confirm(*h, o.sent, ttl)) lose(*h, errc::lost);
    if (h->ended()) return done(h->end_reason(), h->end_detail());
    if (o.error) return done(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail);
    if (said.error) return done(said.error->code, said.error->text);
    if (!record->released.load(std::memory_order_acquire)) watchdog_.guard(*h->on, o.sent);
    done({}, {});
  };
  ask_twice(command_budget(around_.settings, h->ttl()), std::move(send), std::move(answered));
}

// Also when that lease has ended since: feed() has taken back the pause of all leases of the hold.
void engine::fed(const std::shared_ptr<lease_record>& record) {
  watchdog_.confirm_soon(*record->of->on, nanoseconds::zero());
}

cancellable_ptr engine::when_ended(const std::shared_ptr<lease_record>& record, lease_record::end_listener listener) {
  error_code ended;
  if (record->released.load(std::memory_order_acquire)) {
    ended = errc::not_held;
  } else if (closed()) {
    ended = errc::closed;
  } else if (record->of->ended()) {
    ended = record->of->end_reason();
  }
  if (ended) {
    listener(ended);
    return nullptr;
  }
  const auto place = record->end_listeners.insert(record->end_listeners.end(), std::move(listener));
  return std::make_shared<end_watch>(record, place);
}

void engine::close(nanoseconds grace, function<void()> done) {
  when_closed_.push_back(std::move(done));
  if (!std::exchange(closing_, true)) {
    closed_->store(true, std::memory_order_release);
    draining_.reset();
    grace_.stop();
    for (auto& [name, e] : std::exchange(names_, {})) {
      if (e.line) e.line->fail_all(errc::closed, {});
      for (const auto& h : e.holds) {
        lose(*h, errc::closed);
        if (h->changes.busy()) changing_.push_back(h);
      }
    }
    while (!reentries_.empty()) reentries_.front()->close();
    end_probes();
  }
  const auto end = around_.now() + grace;
  if (!grace_.due() || end < *grace_.due())
    grace_.start(end, [this] {
      releases_.abandon();
      answer_at_close();
    });
  releases_.when_idle([this] { answer_at_close(); });
}

void engine::abandon() {
  close(nanoseconds::zero(), [] {});
  releases_.abandon();
  answer_at_close();
}

void engine::drain(nanoseconds grace, function<void()> done) {
  if (closing_) return close(around_.settings.command_timeout, std::move(done));
  when_closed_.push_back(std::move(done));
  if (!draining_) {
    draining_.emplace();
    for (const auto& [name, e] : names_)
      for (const auto& h : e.holds)
        if (!h->ended()) draining_->add(h->who);
    close_waiters_without_hold();
  }
  if (draining_) drain_until(draining_->empty() ? around_.now() : saturating_add(around_.now(), grace));
}

void engine::close_waiters_without_hold() {
  std::vector<std::shared_ptr<waiting_line>> lines;  // a line that becomes empty leaves names_
  for (const auto& [name, e] : names_)
    if (e.line) lines.push_back(e.line);
  for (const auto& line : lines) {
    const auto all = line->waiters();
    for (auto w = all.rbegin(); w != all.rend() && draining_; ++w) {  // the first last, or the others would try in vain
      if (draining_->contains((*w)->request.who))
        draining_->waits((*w)->request.who, line->name());
      else
        line->leave(*w, errc::closed, drained_without);
    }
  }
}

void engine::hold_is_over(owner_id who) {
  if (!draining_) return;
  for (const auto& name : draining_->remove(who)) {
    const auto found = names_.find(name);
    const auto line = found == names_.end() ? nullptr : found->second.line;
    if (line) line->fail_all_of(who, errc::closed, "it is being drained, and its owner holds no more");
  }
  if (draining_ && draining_->empty()) drain_until(around_.now());
}

// Always by the timer: the caller that ends the last hold is in the midst of doing so.
void engine::drain_until(time_point end) {
  if (!grace_.due() || end < *grace_.due())
    grace_.start(end, [this] { close(around_.settings.command_timeout, [] {}); });
}

void engine::answer_at_close() {
  grace_.stop();
  while (!unanswered_.empty()) {
    const auto answer = std::move(unanswered_.front());
    unanswered_.pop_front();
    answer();
  }
  forget_changes(std::exchange(changing_, {}));
  for (auto& then : std::exchange(when_closed_, {})) then();
}

hold* engine::entry::live_hold() const {
  for (const auto& h : holds)
    if (!h->ended()) return h.get();
  return nullptr;
}

std::shared_ptr<hold> engine::entry::hold_of(owner_id who) const {
  const auto mine = std::find_if(holds.begin(), holds.end(), [&](const auto& h) { return h->who == who; });
  return mine == holds.end() ? nullptr : *mine;
}

hold* engine::live_hold(std::string_view name) {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second.live_hold();
}

std::shared_ptr<hold> engine::hold_of(std::string_view name, owner_id who) {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second.hold_of(who);
}

void engine::tell_if_waiting_for_ourselves(const entry& e, const lock_request& request) {
  const auto* h = e.live_hold();
  if (h && !h->bound && !request.bound && request.wait != lock_request::patience::once)
    around_.report({.what = event::kind::waiting_for_ourselves, .name = e.keys->name});
}

void engine::entry::doubt_hold_here() {
  // By then most holds are over, and their echo has cost nothing.
  if (auto* h = live_hold()) registry.watchdog_.confirm_soon(*h->on, milliseconds(20));
}

std::shared_ptr<lease_record> engine::entry::granted(waiter& w, std::optional<std::uint64_t> token) {
  auto& e = registry;
  const node_id node = e.around_.servers.node_of(keys->lock);
  auto c = std::make_shared<claim>(e.around_.time, e.closed_, keys, w.field, std::span(&node, 1), 1);
  auto h = std::make_shared<hold>(std::move(c), w.request.who, w.request.bound);
  h->token = token;
  h->granted_at = e.around_.now();
  if (e.draining_) e.draining_->add(h->who);
  holds.push_back(h);
  auto record = e.add_lease(*h, w.request.asked, w.sent);
  // A re-entry may be refused at once, and its handler may end all this.
  const auto kept = line;
  while (auto same = w.done && w.request.bound ? kept->extract(w.request.who) : nullptr)
    same->moved_to = e.reenter(h, same->request, std::exchange(same->done, {}), same->since);
  if (!w.done && record->try_release()) e.drop(record);
  return record;
}

void engine::entry::give_back(const owner_field& field, milliseconds ttl, function<void()> tried) {
  registry.releases_.release_in_background(keys, field, ttl, std::move(tried));
}

void engine::entry::line_empty() {
  line.reset();
  if (holds.empty()) registry.names_.erase(keys->name);
}

bool engine::confirm(hold& h, time_point sent, milliseconds ttl) {
  return h.on->confirm(h.on->sole_share(), valid_until(sent, ttl, around_.settings.drift));
}

key_ttl engine::ttl_to_send(hold& h, milliseconds wanted) {
  return h.on->sole_share().ttl_to_send(wanted, around_.now(), around_.settings.drift);
}

std::shared_ptr<lease_record> engine::add_lease(hold& h, const terms& asked, time_point sent) {
  auto record = std::make_shared<lease_record>(h.shared_from_this(), asked, around_.now(), home_);
  h.leases.push_back(record.get());
  confirm(h, sent, asked.ttl);
  watchdog_.guard(*h.on, sent);
  watch_link();
  return record;
}

cancellable_ptr engine::reenter(std::shared_ptr<hold> h, lock_request request, lock_handler done, time_point since) {
  auto r = std::make_shared<reentry>(*this, std::move(h), std::move(request), std::move(done), since);
  r->begin();
  return r;
}

done_handler engine::until(const shared_keys& keys, time_point deadline, error_code late, done_handler done) {
  struct caller : std::enable_shared_from_this<caller> {
    caller(surroundings& a, unlock_patience& p, shared_keys k, error_code l, done_handler d)
        : around(a), patience(p), keys(std::move(k)), since(a.now()), late(l), done(std::move(d)), alarm(a.alarms) {}
    void wait(time_point when) {
      alarm.start(when, [id = weak_from_this()] {
        if (const auto still = id.lock()) still->give_up();
      });
    }
    void give_up() {
      // The command before it waits in the queue of a connection that is alive: that is no silence.
      if (around.servers.answering(keys->lock)) return wait(around.now() + around.settings.command_timeout);
      patience.ran_out(keys->lock, since);
      std::exchange(done, {})(late, unanswered_before);
    }
    surroundings& around;
    unlock_patience& patience;
    const shared_keys keys;
    const time_point since;
    error_code late;
    done_handler done;
    timer alarm;
  };
  const auto c = std::make_shared<caller>(around_, patience_, keys, late, std::move(done));
  c->wait(deadline);
  return [c](error_code error, std::string detail) {
    c->alarm.stop();
    if (c->done) std::exchange(c->done, {})(error, std::move(detail));
  };
}

void engine::give_up_lease(const std::shared_ptr<lease_record>& record, done_handler done) {
  const auto h = record->of;
  const auto ttl = h->ttl();
  const bool wanted = !done.empty(), behind = wanted && h->changes.busy();
  const auto nobody = [](error_code, const std::string&) {};
  if (!wanted) done = nobody;
  const bool in_time = h->exclusive();
  const bool found_over = !in_time && !h->ended() && !closed();
  if (found_over) end_by_loss(*h, errc::lost);
  const auto place = std::find(h->leases.begin(), h->leases.end(), record.get());
  HOLDFAST_ASSERT(place != h->leases.end());
  h->leases.erase(place);
  if (h->leases.empty()) watchdog_.forget(*h->on);  // disarmed before anything is sent
  record->tell_end(errc::not_held);
  if (closed()) return done(errc::closed, {});
  if (h->ended()) {
    if (h->leases.empty()) forget(*h);
    if (found_over) tell_reentries(*h);  // whoever waits with no lease left has lost nothing
    return done(h->end_reason(), h->end_detail());
  }
  const bool last = h->leases.empty();
  const auto budget = command_budget(around_.settings, ttl);
  const auto now = around_.now(), answer_by = patience_.answer_by(h->keys()->lock, budget);
  // A command before it may take its own time; a count that is not confirmed is no error.
  const auto late = last ? make_error_code(errc::unconfirmed) : error_code();
  const bool bounded = behind || (wanted && !last && answer_by < now + budget);
  if (bounded && answer_by <= now) {
    send_unlock(h, last, {ttl, now, answer_by, nobody});
    return done(late, unanswered_before);
  }
  if (!last || h->changes.busy()) done = until_closed(std::move(done));
  if (bounded) done = until(h->keys(), answer_by, late, std::move(done));
  send_unlock(h, last, {ttl, now, answer_by, std::move(done)});
}

void engine::send_unlock(const std::shared_ptr<hold>& h, bool last, hold::last_unlock u) {
  if (!last) return h->changes.add([this, h, done = std::move(u.done)] { take_from_count(h, done); });
  if (!h->changes.busy()) return h->changes.add([&] { free_hold(h, std::move(u)); });
  h->last_unlocks.push_back(std::move(u));
  h->changes.add([this, h] { free_or_lower(h); });
}

void engine::take_from_count(const std::shared_ptr<hold>& h, done_handler done) {
  if (h->ended()) {
    if (h->leases.empty()) forget(*h);
    // A release that came before it was queued as the last: all is well.
    done(h->state() == lease_state::released ? error_code() : h->end_reason(), h->end_detail());
    return changed(h);
  }
  lower_count(h, [this, h, done = std::move(done)](error_code error) {
    done(error, h->end_detail());
    changed(h);
  });
}

void engine::free_or_lower(const std::shared_ptr<hold>& h) {
  if (h->last_unlocks.empty()) return changed(h);  // the release under way answers it
  auto u = std::move(h->last_unlocks.front());
  h->last_unlocks.pop_front();
  if (h->ended() || !h->leases.empty()) return take_from_count(h, std::move(u.done));
  free_hold(h, std::move(u));
}

// The caller's own count is what counts, so an answer that does not come is no error: the next change carries the
// absolute count anyway.
void engine::lower_count(const std::shared_ptr<hold>& h, function<void(error_code)> done) {
  auto send = [this, h](nanoseconds left, topology::handler then) {
    if (h->leases.empty()) return then({errc::unconfirmed, {}});  // the last unlock is queued, which frees
    const auto count = static_cast<unsigned>(h->leases.size());
    const auto ttl = ttl_to_send(*h, h->ttl());
    around_.run(scripts::release(*h->keys(), h->field(), count, ttl), {.timeout = left, .rank = urgency::obligation},
                std::move(then));
  };
  const auto called = around_.now();
  const auto budget = command_budget(around_.settings, h->ttl());
  auto answered = [this, h, called, budget, done = std::move(done)](const outcome& o) {
    if (o.error && around_.now() >= called + budget) patience_.ran_out(h->keys()->lock, called);
    const auto said = o.error ? answer<release_answer>{} : read_release(o.reply);
    if (said.error && said.error->code == errc::corrupt_lock) lose(*h, errc::corrupt_lock);
    if (!o.error && !said.error && said.value == release_answer::not_yours) lose(*h, errc::lost);
    done(h->ended() ? h->end_reason() : error_code{});
  };
  ask_twice(budget, std::move(send), std::move(answered));
}

void engine::free_hold(const std::shared_ptr<hold>& h, hold::last_unlock u) {
  HOLDFAST_ASSERT(h->leases.empty() && h->changes.busy() && h->granted_at != time_point());
  const auto valid = h->valid_until();
  h->end(lease_state::released, errc::not_held);
  watchdog_.forget(*h->on);
  forget(*h);
  auto others = std::exchange(h->last_unlocks, {});
  for (const auto& other : others) {
    u.ttl = std::max(u.ttl, other.ttl);
    u.answer_by = std::max(u.answer_by, other.answer_by);
  }
  const auto now = around_.now();
  auto answered = [this, h, now, called = u.called, answer_by = u.answer_by, ttl = u.ttl, done = std::move(u.done),
                   others = std::move(others)](error_code error, std::string detail) {
    if (error == errc::unconfirmed && around_.now() >= answer_by) patience_.ran_out(h->keys()->lock, called);
    if (error == errc::lost && h->forced) detail = by_force;
    if (around_.settings.observer) report_release(*h, now, ttl, error, detail);
    done(error, detail);
    for (const auto& other : others) other.done(error, detail);
  };
  const auto may_live = std::max(u.ttl, h->on->may_live(around_.settings.drift));
  releases_.release(h->keys(), h->field(), may_live, valid, u.answer_by, std::move(answered));
  hold_is_over(h->who);
  changed(h);
}

void engine::report_release(const hold& h, time_point called, milliseconds ttl, error_code error,
                            std::string_view detail) const {
  auto e = event_of(!error                ? event::kind::released
                    : error == errc::lost ? event::kind::lost
                                          : event::kind::release_failed,
                    h, called);
  e.reason = error;
  e.detail = detail;
  e.ttl = ttl;
  around_.report(e);
}

void engine::changed(const std::shared_ptr<hold>& h) {
  const auto keep = h;
  keep->changes.ended();
}

void engine::lose(hold& h, error_code reason) {
  if (h.ended()) return;
  const auto keep = h.shared_from_this();
  end_by_loss(h, reason);
  tell_reentries(h);
}

void engine::tell_reentries(hold& h) {
  if (closing_) return;  // close() has an answer of its own for them
  while (!h.reentries.empty()) h.reentries.front()->hold_lost();
}

void engine::end_by_loss(hold& h, error_code reason) {
  if (closed()) reason = errc::closed;
  const bool expired = around_.now() >= h.valid_until();
  const auto ttl = std::max(h.leases.empty() ? around_.settings.ttl : h.ttl(), h.on->may_live(around_.settings.drift));
  h.end(lease_state::lost, reason, text_of_loss(h, reason));
  watchdog_.forget(*h.on);
  watch_link();
  around_.report(reason == errc::closed ? event::kind::closed : event::kind::lost, h, reason, h.end_detail());
  const auto leases = h.leases;
  for (auto* l : leases) l->tell_end(reason);
  // Redis keeps an expired key a little longer than we trust it, or for long if it was renewed without our hearing of
  // it.
  if (expired || closed()) releases_.release_in_background(h.keys(), h.field(), ttl);
  if (h.leases.empty()) forget(h);
  hold_is_over(h.who);
  wake(h.keys()->name);
}

// The end of the validity comes first: it may have passed long before Redis answered. The text is empty where there is
// no memory for it: the loss itself must be told.
std::string engine::text_of_loss(const hold& h, error_code reason) const noexcept try {
  if (reason == errc::closed) return "the client was closed";
  if (reason == errc::corrupt_lock) return "found while it was held";
  if (around_.now() < h.valid_until()) return h.forced ? by_force : not_ours;
  std::string text = h.cause_of_loss();
  const bool wanted = !h.renewal_paused();
  if (wanted && !around_.servers.answering(h.keys()->lock))
    text.append(": ").append(around_.servers.trouble(h.keys()->lock).detail);
  return text;
} catch (const std::bad_alloc&) {
  return {};
}

void engine::forget(const hold& h) {
  watch_link();
  const auto found = names_.find(h.keys()->name);
  if (found == names_.end()) return;
  auto& holds = found->second.holds;
  const auto place = std::find_if(holds.begin(), holds.end(), [&](const auto& other) { return other.get() == &h; });
  if (place != holds.end()) holds.erase(place);
  if (found->second.holds.empty() && !found->second.line) names_.erase(found);
}

void engine::wake(std::string_view name) {
  const auto found = names_.find(name);
  if (found == names_.end() || !found->second.line) return;
  std::shared_ptr(found->second.line)->wake();
}

void engine::watch_link() { around_.servers.keep_watch(!watchdog_.idle()); }

}  // namespace holdfast::detail
