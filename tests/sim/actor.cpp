// SPDX-License-Identifier: BSL-1.0
#include "sim/actor.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <utility>

#include "api/arguments.hpp"
#include "support/run_at.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;
using patience = detail::lock_request::wait_mode;

/// "unreachable", as errc spells it.
std::string code_name(const error_code& e) {
  if (e == boost::asio::error::operation_aborted) return "cancelled";
  switch (static_cast<errc>(e.value())) {
    case errc::lost: return "lost";
    case errc::not_held: return "not_held";
    case errc::closed: return "closed";
    case errc::shutting_down: return "shutting_down";
    case errc::corrupt_lock: return "corrupt_lock";
    case errc::unreachable: return "unreachable";
    case errc::unconfirmed: return "unconfirmed";
    case errc::server_refused: return "server_refused";
    case errc::not_primary: return "not_primary";
    case errc::already_held: return "already_held";
    case errc::not_replicated: return "not_replicated";
    case errc::overloaded: return "overloaded";
    case errc::protocol_error: return "protocol_error";
    case errc::quorum_failed: return "quorum_failed";
    default: return e.message();
  }
}

std::string outcome_of(std::string_view verb, const std::optional<detail::failure>& failed, std::string_view success) {
  return std::string(verb) + ": " + (failed ? code_name(failed->code) : std::string(success));
}

std::string text_of(const std::optional<detail::failure>& failed) { return failed ? failed->detail : std::string(); }

/// The text of a failure, or the field of a lease.
std::string text_of(const detail::lock_answer& a) {
  if (a.value) return std::string(std::string_view(a.value->of->field().to_text()));
  return text_of(a.failed);
}

std::string_view success_of(const election_judge::leader& leader) {
  return !leader ? "nobody" : leader->value ? "a candidate" : "another lock's holder";
}

const char* verb_of(patience wait) {
  return wait == patience::forever ? "lock" : wait == patience::once ? "try_lock" : "try_lock_for";
}

}  // namespace

void actor::start() { act_later(); }

// Not while its process is paused: the alarm is the process' own.
void actor::act_later() {
  // Often at once: what matters happens while something is on its way.
  auto delay =
      w_.chance(w_.hurry ? 85 : 40) ? w_.between({}, w_.hurry ? 2ms : 8ms) : w_.between(w_.pace / 8, w_.pace * 3);
  if (finishing_) delay = std::min<nanoseconds>(delay, 1s);
  const auto when = w_.plan.now() + delay;
  test::run_at(client_.process(), when, [self = shared_from_this()] { self->act(); });
}

void actor::act() {
  if (done()) return;
  if (!finishing_) {
    act_at_random();
  } else if (waiting_) {
    cancel();
  } else if (!me_->leases.empty()) {
    give_back(me_->leases.size() - 1);
  }
  act_later();
}

void actor::act_at_random() {
  const auto dice = w_.below(100);
  if (waiting_) {
    if (dice < 12) return cancel();
    if (dice < 20 && !me_->leases.empty()) return give_back(w_.below(me_->leases.size()));
    return;
  }
  if (me_->leases.empty() && dice < 75)
    return dice < 15 ? lock_any() : dice < 30 ? lock_all() : lock(w_.some_name(), false);
  if (dice < 8) return dice < 2 ? lock_any() : dice < 4 ? lock_all() : lock(w_.some_name(), false);
  if (!me_->leases.empty()) {
    const auto which = w_.below(me_->leases.size());
    const auto lease = me_->leases[which];
    if (dice < 26) return lock(lease->of->keys(), true);
    if (dice < 36 && &lease->of->keys()->of == &detail::shared_writer) return downgrade(which);
    if (dice < 50 && &lease->of->keys()->of == &detail::election_lock) return proclaim(lease);
    if (dice < 68) return give_back(which);
    if (dice < 78) return renew(lease);
    if (dice < 84) return feed(lease);
  }
  if (dice < 86 && !me_->given_back.empty()) {
    const auto lease = me_->given_back[w_.below(me_->given_back.size())];
    return w_.chance(50) ? unlock(lease) : renew(lease);
  }
  if (dice < 88 && !w_.quiet) return force_unlock(w_.some_name());
  ask(w_.some_name());
}

lock_options actor::some_options() {
  lock_options o;
  if (w_.quiet) return o;
  if (w_.chance(25)) o.ttl = std::chrono::duration_cast<milliseconds>(w_.between(60ms, client_.settings().ttl));
  if (o.ttl && *o.ttl >= 100ms && w_.chance(25)) o.renew = true;
  const bool renewed = o.renew.value_or(!o.ttl);
  if (renewed && w_.chance(15))
    o.max_hold = std::chrono::duration_cast<milliseconds>(w_.between(1ms, client_.settings().ttl));
  return o;
}

bool actor::has_lease_of(const detail::lock_keys& name) const {
  const auto is_of_name = [&](const auto& lease) { return lease->of->keys()->name == name.name; };
  return std::ranges::any_of(me_->leases, is_of_name) || std::ranges::any_of(me_->downgraded, is_of_name);
}

void actor::lock(const detail::shared_keys& name, bool reenter) {
  if (w_.is_latch(name->name)) return use_latch(name);
  if (w_.is_semaphore(name->name)) return acquire(name);
  if (w_.is_shared(name->name)) return read_or_write(name, reenter);
  if (w_.is_election(name->name)) return reenter || w_.chance(65) ? campaign(name, reenter) : observe(name);
  const bool holds = has_lease_of(*name);
  const bool bound = reenter || holds || w_.chance(70);
  auto request = some_request(bound);
  const auto wait = request.wait;
  // A plain lock among fenced ones: it has no token, and no fenced lock re-enters it.
  const auto& meant = w_.kind_of(name->name);
  const bool fenced = meant.fenced() && !w_.chance(5);
  const auto& of = meant.fenced() && !fenced ? detail::plain_lock : meant;
  const auto keys =
      std::make_shared<const detail::lock_keys>(of, name->name, detail::naming{.prefix = {}, .word = name->word});
  const std::string verb = verb_of(wait);
  begin(verb, name->name);
  const auto call = wait == patience::once ? w_.judge.begin_try(client_, name->name, verb + ' ' + name->name)
                                           : w_.judge.begin_wait(client_, {name->name}, verb + ' ' + name->name);
  ask_for_lock(keys, std::move(request), call, holds, fenced);
}

// Each call takes new permits, also for an owner that has some.
void actor::acquire(const detail::shared_keys& name) {
  auto request = some_request(w_.chance(70));
  const auto total = static_cast<const detail::permit_keys&>(*name).total;
  if (w_.chance(30)) request.amount = static_cast<std::uint8_t>(1 + w_.below(total));
  const auto text = std::string(verb_of(request.wait)) + ' ' + std::to_string(request.amount) + " of " + name->name;
  begin(verb_of(request.wait), name->name);
  const auto call = request.wait == patience::once
                        ? w_.judge.begin_try(client_, name->name, text)
                        : w_.judge.begin_wait_for_permits(client_, name->name, request.amount, text);
  if (request.amount > 1) w_.met.hit("lock: several permits");
  ask_for_lock(name, std::move(request), call, false, false);
}

// An owner that reads and asks to write is refused.
void actor::read_or_write(const detail::shared_keys& name, bool reenter) {
  const bool holds = has_lease_of(*name);
  auto request = some_request(reenter || holds || w_.chance(70));
  const bool writes = w_.chance(40);
  const auto keys =
      std::make_shared<const detail::lock_keys>(writes ? detail::shared_writer : detail::shared_reader, name->name,
                                                detail::naming{.prefix = {}, .word = name->word});
  const std::string verb = verb_of(request.wait);
  begin(verb, name->name);
  const auto text = verb + (writes ? " to write " : " to read ") + name->name;
  const auto call = request.wait == patience::once ? w_.judge.begin_try(client_, name->name, text)
                                                   : w_.judge.begin_wait_for_shared(client_, name->name, writes, text);
  w_.met.hit(writes ? "lock: to write" : "lock: to read");
  ask_for_lock(keys, std::move(request), call, holds, false);
}

// An owner that leads is refused.
void actor::campaign(const detail::shared_keys& name, bool reenter) {
  const bool holds = has_lease_of(*name);
  auto request = some_request(reenter || holds || w_.chance(70));
  const auto keys = std::make_shared<const detail::election_keys>(*name, w_.new_value());
  const std::string verb = verb_of(request.wait);
  begin(verb, name->name);
  const auto text = verb + ' ' + name->name + " as " + keys->value;
  const auto call = request.wait == patience::once ? w_.judge.begin_try(client_, name->name, text)
                                                   : w_.judge.begin_wait(client_, {name->name}, text);
  ask_for_lock(keys, std::move(request), call, holds, true);
}

void actor::ask_for_lock(const detail::shared_keys& keys, detail::lock_request request, std::uint64_t call, bool holds,
                         bool fenced) {
  const bool bound = request.bound;
  waiting_ = true;
  if (bound && me_->waiting++ > 0) w_.met.hit("lock: beside another of its owner");
  const auto answered = std::make_shared<bool>(false);
  auto place = client_.locks().lock(
      keys, std::move(request),
      [self = shared_from_this(), call, keys, bound, holds, fenced, answered](const detail::lock_answer& a) {
        *answered = true;
        if (bound) --self->me_->waiting;
        if (redis::error_of(a.failed) == errc::lost)
          self->w_.judge.lost_to_caller(self->client_, *keys, self->may_have_lease_of(*keys));
        if (a.value && &keys->of == &detail::election_lock && a.value->of->token())
          self->w_.judge.elections().elected(keys->lock, *a.value->of->token(),
                                             static_cast<const detail::election_keys&>(*keys).value);
        self->on_lock_answer(call, a, holds, fenced);
      });
  if (!*answered) place_ = std::move(place);
}

detail::lock_request actor::some_request(bool bound) {
  const auto dice = w_.below(10);
  const auto wait = dice < 6 ? patience::forever : dice < 8 ? patience::once : patience::until_deadline;
  detail::lock_request request{.owner = bound ? me_->who : owner(),
                               .bound = bound,
                               .wait = wait,
                               .asked = detail::resolve_terms(client_.settings(), some_options()),
                               .note = detail::shared_text::copy_of(client_.settings().notes ? "why" : "")};
  if (wait == patience::until_deadline) request.deadline = w_.plan.now() + w_.between(1ms, client_.settings().ttl * 2);
  return request;
}

void actor::lock_any() {
  const auto& of = w_.some_name()->of;
  if (of.voted || !of.acquire_any.make) return lock(w_.some_name(), false);
  std::vector<detail::shared_keys> all;
  for (const auto& n : w_.names)
    if (&n->of == &of && (all.empty() || w_.chance(80))) all.push_back(n);
  auto request = some_request(w_.chance(70));
  const auto verb = std::string(verb_of(request.wait)) + "_any";
  std::vector<std::string> names;
  std::string which;
  for (const auto& n : all) which += ' ' + names.emplace_back(n->name);
  begin(verb, which);
  const auto what = verb + which;
  const auto call = request.wait == patience::once ? w_.judge.begin(client_, what)
                                                   : w_.judge.begin_wait(client_, std::move(names), what);
  waiting_ = true;
  const auto answered = std::make_shared<bool>(false);
  auto place = client_.locks().lock_any(
      std::move(all), std::move(request),
      [self = shared_from_this(), call, fenced = of.fenced(), answered](const detail::lock_answer& a) {
        *answered = true;
        self->on_any_answer(call, a, fenced);
      });
  if (!*answered) place_ = std::move(place);
}

void actor::on_any_answer(std::uint64_t call, const detail::lock_answer& a, bool fenced) {
  w_.judge.answered(call);
  waiting_ = false;
  place_.reset();
  const auto outcome = outcome_of("lock_any", a.failed, a.value ? "granted" : "busy");
  w_.met.hit(outcome);
  note(outcome, text_of(a));
  if (!a.value) return;
  w_.judge.granted_any(client_, a.value, fenced);
  me_->leases.push_back(a.value);
}

void actor::lock_all() {
  const auto& one = *w_.some_name();
  const auto& of = one.of;
  if (of.voted || !of.acquire_all.make) return lock(w_.some_name(), false);
  // Of several slots multi_lock takes one after the other.
  const auto fits = [&](const detail::lock_keys& n) {
    return &n.of == &of && client_.locks().group_of(n) == client_.locks().group_of(one);
  };
  std::vector<detail::shared_keys> all;
  for (const auto& n : w_.names)
    if (fits(*n) && (all.empty() || w_.chance(50))) all.push_back(n);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->lock < b->lock; });
  const bool bound = w_.chance(70);
  auto request = some_request(bound);
  const auto verb = std::string(verb_of(request.wait)) + "_all";
  std::vector<std::string> names;
  std::string which;
  for (const auto& n : all) which += ' ' + names.emplace_back(n->name);
  begin(verb, which);
  const auto what = verb + which;
  const auto call = request.wait == patience::once ? w_.judge.begin(client_, what)
                                                   : w_.judge.begin_wait_for_all(client_, names, what);
  waiting_ = true;
  if (bound) {
    ++me_->waiting;
    ++me_->wants_all;
  }
  const auto answered = std::make_shared<bool>(false);
  auto place = client_.locks().lock_all(
      all, {}, std::move(request),
      [self = shared_from_this(), call, all, bound, fenced = of.fenced(), answered](const detail::multi_answer& a) {
        *answered = true;
        if (bound) {
          --self->me_->waiting;
          --self->me_->wants_all;
        }
        const auto has = [&](const auto& n) { return self->may_have_lease_of(*n); };
        if (redis::error_of(a.failed) == errc::lost)
          self->w_.judge.lost_to_caller(self->client_, *all.front(), std::any_of(all.begin(), all.end(), has));
        self->on_all_answer(call, a, all.size(), fenced);
      });
  if (!*answered) place_ = std::move(place);
}

void actor::on_all_answer(std::uint64_t call, const detail::multi_answer& a, std::size_t asked, bool fenced) {
  w_.judge.answered(call);
  waiting_ = false;
  place_.reset();
  const auto outcome = outcome_of("lock_all", a.failed, a.value.leases.empty() ? "busy" : "granted");
  w_.met.hit(outcome);
  note(outcome, text_of(a.failed));
  if (a.value.leases.empty()) return;
  w_.judge.granted_all(client_, a.value.leases, asked, fenced);
  for (const auto& lease : a.value.leases) me_->leases.push_back(lease);
}

void actor::on_lock_answer(std::uint64_t call, const detail::lock_answer& a, bool reenter, bool fenced) {
  w_.judge.answered(call);
  waiting_ = false;
  place_.reset();
  const auto outcome =
      a.value && reenter ? "lock: re-entered" : outcome_of("lock", a.failed, a.value ? "granted" : "busy");
  w_.met.hit(outcome);
  note(outcome, text_of(a));
  if (!a.value) return;
  w_.judge.granted(client_, a.value, fenced);
  me_->leases.push_back(a.value);
}

void actor::cancel() {
  if (!place_) return;
  begin("cancel");
  const auto keep = place_;
  keep->cancel();
}

// The write lease is nobody's until the answer. As `lease` it would be in the hands of the caller.
void actor::downgrade(std::size_t which) {
  const auto write = me_->leases[which];
  me_->leases.erase(me_->leases.begin() + static_cast<std::ptrdiff_t>(which));
  me_->downgraded.push_back(write);
  const auto& of = *write->of->keys();
  begin("downgrade", write->of->field().to_text());
  const auto reader = std::make_shared<const detail::lock_keys>(detail::shared_reader, of.name,
                                                                detail::naming{.prefix = {}, .word = of.word});
  const auto call = w_.judge.begin(client_, "downgrade " + of.name);
  w_.judge.begin_downgrade(write);
  waiting_ = true;
  const auto answered = std::make_shared<bool>(false);
  auto place = client_.locks().downgrade(
      write, reader, [self = shared_from_this(), call, write, answered](const detail::lock_answer& a) {
        *answered = true;
        self->on_downgrade_answer(call, write, a);
      });
  if (!*answered) place_ = std::move(place);
}

void actor::on_downgrade_answer(std::uint64_t call, const record_ptr& write, const detail::lock_answer& a) {
  w_.judge.answered(call);
  waiting_ = false;
  place_.reset();
  const auto outcome = outcome_of("downgrade", a.failed, "reads");
  w_.met.hit(outcome);
  note(outcome, text_of(a));
  w_.judge.end_downgrade(write, a.value != nullptr);
  std::erase(me_->downgraded, write);
  if (!a.value) return me_->leases.push_back(write);
  w_.judge.granted(client_, a.value, false);
  me_->given_back.push_back(write);
  me_->leases.push_back(a.value);
}

void actor::give_back(std::size_t which) {
  const auto lease = me_->leases[which];
  me_->leases.erase(me_->leases.begin() + static_cast<std::ptrdiff_t>(which));
  if (w_.chance(25)) return drop(lease);
  unlock(lease);
  me_->given_back.push_back(lease);
}

void actor::unlock(const record_ptr& lease) {
  begin("unlock", lease->of->field().to_text());
  const auto call = w_.judge.begin(client_, "unlock " + lease->of->keys()->name);
  w_.judge.released(lease);
  const bool first = !lease->released;
  client_.locks().unlock(lease,
                         [self = shared_from_this(), call, lease, first](const std::optional<detail::failure>& failed) {
                           self->w_.judge.answered(call);
                           if (first)
                             self->w_.judge.unlocked(self->client_, *lease->of->keys(), redis::error_of(failed));
                           const auto outcome = outcome_of("unlock", failed, "released");
                           self->w_.met.hit(outcome);
                           self->note(outcome, text_of(failed));
                         });
}

void actor::drop(const record_ptr& lease) {
  begin("drop", lease->of->field().to_text());
  w_.judge.released(lease);
  if (lease->try_release()) client_.locks().drop(lease);
}

void actor::renew(const record_ptr& lease) {
  const auto ttl = w_.chance(50) ? milliseconds(0)
                                 : std::chrono::duration_cast<milliseconds>(w_.between(10ms, client_.settings().ttl));
  begin("renew", lease->of->field().to_text());
  w_.judge.begin_renewal(lease, ttl);
  const auto call = w_.judge.begin(client_, "renew " + lease->of->keys()->name);
  client_.locks().renew(lease, ttl, [self = shared_from_this(), call](const std::optional<detail::failure>& failed) {
    self->w_.judge.answered(call);
    const auto outcome = outcome_of("renew", failed, "renewed");
    self->w_.met.hit(outcome);
    self->note(outcome, text_of(failed));
  });
}

// As lease::feed() does it.
void actor::feed(const record_ptr& lease) {
  if (!lease->asked.limited()) return;
  begin("feed", lease->of->field().to_text());
  if (lease->feed()) client_.locks().fed(lease);
}

void actor::set_permits(const detail::shared_keys& name) {
  begin("set_permits", name->name);
  const auto call = w_.judge.begin(client_, "set_permits " + name->name);
  const auto total = static_cast<const detail::permit_keys&>(*name).total;
  client_.locks().set_permits(name, total,
                              [self = shared_from_this(), call](const std::optional<detail::failure>& failed) {
                                self->w_.judge.answered(call);
                                const auto outcome = outcome_of("set_permits", failed, "set");
                                self->w_.met.hit(outcome);
                                self->note(outcome, text_of(failed));
                              });
}

void actor::force_unlock(const detail::shared_keys& name) {
  if (w_.is_latch(name->name)) return count_down(name);
  if (w_.is_semaphore(name->name) && w_.chance(50)) return set_permits(name);
  begin("force_unlock", name->name);
  const auto call = w_.judge.begin(client_, "force_unlock " + name->name);
  client_.locks().force_unlock(name, [self = shared_from_this(), call](const detail::answer<unsigned>& answer) {
    self->w_.judge.answered(call);
    const auto outcome = outcome_of("force_unlock", answer.failed, "answered");
    self->w_.met.hit(outcome);
    self->note(outcome);
  });
}

// One name has many rounds: the latch is set anew when it is open.
void actor::use_latch(const detail::shared_keys& name) {
  const auto dice = w_.below(10);
  if (dice < 3) return count_down(name);
  if (dice < 6) return set_latch(name);
  wait_for_latch(name);
}

void actor::set_latch(const detail::shared_keys& name) {
  begin("try_set", name->name);
  const auto call = w_.judge.begin(client_, "try_set " + name->name);
  const auto field = client_.locks().new_field();
  const auto answered = [self = shared_from_this(), call, name,
                         mark = latch_judge::mark_of(*name, field)](const detail::answer<bool>& answer) {
    if (!answer.failed) self->w_.judge.latches().set(call, name->lock, mark, answer.value);
    self->w_.judge.answered(call);
    const auto outcome = outcome_of("try_set", answer.failed, answer.value ? "set" : "was set");
    self->w_.met.hit(outcome);
    self->note(outcome, text_of(answer.failed));
  };
  constexpr std::uint64_t most = 6;
  client_.locks().latches().try_set(name, static_cast<std::uint32_t>(1 + w_.below(most)), field, answered);
}

void actor::count_down(const detail::shared_keys& name) {
  begin("count_down", name->name);
  const auto call = w_.judge.begin(client_, "count_down " + name->name);
  const auto field = client_.locks().new_field();
  const auto answered = [self = shared_from_this(), call,
                         mark = latch_judge::mark_of(*name, field)](const std::optional<detail::failure>& failed) {
    if (!failed) self->w_.judge.latches().counted_down(call, mark);
    self->w_.judge.answered(call);
    const auto outcome = outcome_of("count_down", failed, "counted");
    self->w_.met.hit(outcome);
    self->note(outcome, text_of(failed));
  };
  client_.locks().latches().count_down(name, w_.chance(70) ? 1 : 2, field, answered);
}

void actor::read_count(const detail::shared_keys& name) {
  begin("count", name->name);
  const auto call = w_.judge.begin(client_, "count " + name->name);
  const auto answered = [self = shared_from_this(), call, name](const detail::answer<std::uint32_t>& answer) {
    if (!answer.failed) self->w_.judge.latches().count_read(call, name->lock, answer.value);
    self->w_.judge.answered(call);
    self->w_.met.hit(outcome_of("count", answer.failed, "answered"));
  };
  client_.locks().latches().count(name, answered);
}

void actor::wait_for_latch(const detail::shared_keys& name) {
  const bool limited = w_.chance(40);
  const auto deadline = limited ? w_.plan.now() + w_.between(1ms, client_.settings().ttl * 2) : time_point::max();
  const std::string verb = limited ? "wait_for" : "wait";
  begin(verb, name->name);
  const auto call = w_.judge.begin_wait_for_latch(client_, name->lock, verb + ' ' + name->name);
  waiting_ = true;
  const auto answered = std::make_shared<bool>(false);
  auto place = client_.locks().latches().wait(
      name, deadline, [self = shared_from_this(), call, name, answered](const detail::answer<bool>& answer) {
        *answered = true;
        if (!answer.failed && answer.value) self->w_.judge.latches().let_in(call, name->lock);
        self->w_.judge.answered(call);
        self->waiting_ = false;
        self->place_.reset();
        const auto outcome = outcome_of("wait", answer.failed, answer.value ? "open" : "closed");
        self->w_.met.hit(outcome);
        self->note(outcome, text_of(answer.failed));
      });
  if (!*answered) place_ = std::move(place);
}

void actor::proclaim(const record_ptr& leadership) {
  const auto& name = *leadership->of->keys();
  const auto term = leadership->of->token().value_or(0);
  auto keys = std::make_shared<const detail::election_keys>(name, w_.new_value());
  begin("proclaim", name.name);
  const auto call = w_.judge.begin(client_, "proclaim " + keys->value + " for " + name.name);
  w_.judge.elections().begin_proclaim(name.lock, term, keys->value);
  const auto answered = [self = shared_from_this(), call, keys, term](const std::optional<detail::failure>& failed) {
    if (!failed) self->w_.judge.elections().proclaimed(call, keys->lock, term, keys->value);
    self->w_.judge.answered(call);
    const auto outcome = outcome_of("proclaim", failed, "proclaimed");
    self->w_.met.hit(outcome);
    self->note(outcome, text_of(failed));
  };
  client_.locks().elections().proclaim(leadership, keys, answered);
}

void actor::see_leader(const detail::shared_keys& name) {
  begin("leader", name->name);
  const auto call = w_.judge.begin(client_, "leader of " + name->name);
  client_.locks().ask().leader(
      name, [self = shared_from_this(), call, name](const detail::answer<election_judge::leader>& answer) {
        if (!answer.failed) self->w_.judge.elections().told(call, name->lock, answer.value);
        self->w_.judge.answered(call);
        self->w_.met.hit(outcome_of("leader", answer.failed, success_of(answer.value)));
      });
}

void actor::observe(const detail::shared_keys& name) {
  begin("next", name->name);
  const auto& known = leaders_[name->name];
  const auto call = w_.judge.begin_observe(client_, name->lock, known, "next leader of " + name->name);
  waiting_ = true;
  const auto answered = std::make_shared<bool>(false);
  auto place = client_.locks().elections().next(
      name, known, [self = shared_from_this(), call, name, answered](detail::answer<election_judge::leader>&& answer) {
        *answered = true;
        if (!answer.failed) {
          self->w_.judge.elections().told(call, name->lock, answer.value);
          self->leaders_[name->name] = answer.value;
        }
        self->w_.judge.answered(call);
        self->waiting_ = false;
        self->place_.reset();
        const auto outcome = outcome_of("next", answer.failed, success_of(answer.value));
        self->w_.met.hit(outcome);
        self->note(outcome, text_of(answer.failed));
      });
  if (!*answered) place_ = std::move(place);
}

void actor::ask(const detail::shared_keys& name) {
  if (w_.is_latch(name->name)) return read_count(name);
  if (w_.is_election(name->name) && w_.chance(50)) return see_leader(name);
  begin("ask", name->name);
  const auto call = w_.judge.begin(client_, "a question about " + name->name);
  const auto answered = [self = shared_from_this(), call](const auto& answer) {
    self->w_.judge.answered(call);
    self->w_.met.hit(outcome_of("query", answer.failed, "answered"));
  };
  switch (w_.below(4)) {
    case 0: return client_.locks().ask().is_locked(name, answered);
    case 1: return client_.locks().hold_count(name, me_->who, answered);
    case 2:
      return name->of.fenced()         ? client_.locks().ask().last_token(name, answered)
             : name->of.semaphore.make ? client_.locks().ask().semaphore(name, answered)
                                       : client_.locks().ask().is_locked(name, answered);
    default: return client_.locks().ask().remaining_ttl(name, answered);
  }
}

}  // namespace holdfast::sim
