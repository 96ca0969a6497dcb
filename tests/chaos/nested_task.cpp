// SPDX-License-Identifier: BSL-1.0
#include "chaos/nested_task.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <stdexcept>
#include <utility>

#include "chaos/pause.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
using std::chrono::steady_clock;

constexpr unsigned deepest = 4;

/// Thrown by a body or a branch, and met again above it.
struct on_purpose : std::runtime_error {
  on_purpose() : std::runtime_error("on purpose") {}
};

std::string names_of(const section& s) {
  std::string all;
  for (const auto& l : s.locks) all += l.text + ' ';
  return all;
}

std::vector<const lease*> each(const lease& l) { return {&l}; }
std::vector<const lease*> each(const multi_lease& l) {
  std::vector<const lease*> all;
  for (std::size_t n = 0; n < l.size(); ++n) all.push_back(&l[n]);
  return all;
}

bool is_breakable(const std::string& name) { return name.find(".x") != name.npos; }

/// The leases that are at their place meanwhile, and so can be asked.
class seen_leases {
 public:
  seen_leases(call_book& book, std::vector<const lease*> of) : book_(book), of_(std::move(of)) {
    std::erase_if(of_, [](const lease* l) { return is_breakable(l->name()); });
    for (const auto* l : of_) book_.enter(*l);
  }
  seen_leases(const seen_leases&) = delete;
  seen_leases& operator=(const seen_leases&) = delete;
  ~seen_leases() {
    for (const auto* l : of_) book_.leave(*l);
  }
  void look() const {
    for (const auto* l : of_) book_.check_alone(*l);
  }

 private:
  call_book& book_;
  std::vector<const lease*> of_;
};

}  // namespace

asio::awaitable<void> nested_task::run(std::function<bool()> stopping) {
  stopping_ = std::move(stopping);
  while (!stopping_()) {
    try {
      co_await do_section({});
    } catch (const on_purpose&) {
    } catch (const boost::system::system_error& e) {
      book_.violation("a section that nobody cancels ends with " + e.code().message());
    }
    co_await pause(dice_.around(4ms));
  }
}

asio::awaitable<void> nested_task::do_section(scene s) {
  const auto kind = dice_.below(100);
  if (kind < 36) return do_one(std::move(s));
  if (kind < 50) return do_any(std::move(s));
  if (kind < 74) return do_all(std::move(s));
  if (kind < 94) return do_body(std::move(s));
  if (kind < 97) return do_break(std::move(s));
  return do_question(std::move(s));
}

asio::awaitable<void> nested_task::do_one(scene s) {
  const auto how = draw(s, draw_locks(1, true), section::choice::one);
  const auto who = draw_whose();
  auto got = co_await take(locks_of(how, who).front(), s, how, who);
  if (got) co_await work_and_release(std::move(*got), s, how, who);
}

asio::awaitable<void> nested_task::do_any(scene s) {
  auto locks = draw_locks(3, true);
  if (locks.front().text.starts_with("r.")) locks = {names_of_chaos().a[0], names_of_chaos().a[1]};
  const auto how = draw(s, std::move(locks), section::choice::any);
  const auto who = draw_whose();
  auto got = co_await take(any_of(locks_of(how, who)), s, how, who);
  if (got) co_await work_and_release(std::move(*got), s, how, who);
}

asio::awaitable<void> nested_task::do_all(scene s) {
  const auto how = draw(s, draw_locks(4, false), section::choice::all);
  const auto who = draw_whose();
  auto got = co_await take(multi_lock(locks_of(how, who)), s, how, who);
  if (got) co_await work_and_release(std::move(*got), s, how, who);
}

asio::awaitable<void> nested_task::do_body(scene s) {
  const auto kind = dice_.below(3);
  const auto who = draw_whose();
  if (kind == 0) {
    const auto how = draw(s, draw_locks(1, true), section::choice::one);
    co_await do_body_of(locks_of(how, who).front(), std::move(s), how, who);
  } else if (kind == 1) {
    auto locks = draw_locks(3, true);
    if (locks.front().text.starts_with("r.")) locks = {names_of_chaos().a[0], names_of_chaos().a[2]};
    const auto how = draw(s, std::move(locks), section::choice::any);
    co_await do_body_of(any_of(locks_of(how, who)), std::move(s), how, who);
  } else {
    const auto how = draw(s, draw_locks(4, false), section::choice::all);
    co_await do_body_of(multi_lock(locks_of(how, who)), std::move(s), how, who);
  }
}

asio::awaitable<void> nested_task::do_break(scene s) {
  const auto& all = names_of_chaos().breakable;
  const auto lock = all[dice_.below(all.size())];
  auto m = lock_of(lock, whose::given, self_);
  // Nothing says how long it may take; twice a command is what its two copies take.
  auto t = terms(s, "force_unlock of " + lock.text + ' ', 2 * nested_command_timeout);
  co_await booked_call(book_, std::move(t), m.force_unlock());
  section how;
  how.locks = {lock};
  how.how = section::wait_mode::bounded;
  how.wait = dice_.between(0ms, 200ms);
  how.ttl = nested_ttl;
  auto got = co_await take(std::move(m), s, how, whose::given);
  if (got) co_await work_and_release(std::move(*got), s, how, whose::given);
}

asio::awaitable<void> nested_task::do_question(const scene& s) {
  const auto lock = draw_locks(1, true).front();
  auto m = lock_of(lock, whose::given, self_);
  auto t = terms(s, "holder of " + lock.text + ' ', 2 * nested_command_timeout);
  co_await booked_call(book_, std::move(t), m.holder());
}

// Over the names that are wanted most the tasks meet.
std::vector<lock_name> nested_task::draw_locks(std::size_t most, bool of_one_kind) {
  const auto& names = names_of_chaos();
  std::vector<lock_name> from = names.a;
  const auto which = dice_.below(10);
  if (which >= 4 && which < 6) from = names.b;
  if (which == 6 && of_one_kind) from = names.red;
  if (which >= 6 && !of_one_kind) from.insert(from.end(), names.b.begin(), names.b.end());
  std::vector<lock_name> got;
  const auto wanted = 1 + (most > 1 ? 1 + dice_.below(most - 1) : 0);
  while (!from.empty() && got.size() < wanted) {
    const auto n = dice_.below(from.size());
    got.push_back(from[n]);
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(n));
    if (of_one_kind) std::erase_if(from, [&](const lock_name& l) { return l.by != got.front().by; });
  }
  return got;
}

section nested_task::draw(const scene& s, std::vector<lock_name> locks, section::choice of) {
  section how;
  how.of = of;
  // Every second call locks again a lock that the task holds.
  if (of == section::choice::one && !s.held.empty() && dice_.per_mille(500))
    locks = {s.held[dice_.below(s.held.size())]};
  if (of == section::choice::all && !s.held.empty() && dice_.per_mille(400)) {
    const auto& again = s.held[dice_.below(s.held.size())];
    std::erase_if(locks, [&](const lock_name& l) { return l.text == again.text; });
    if (!again.text.starts_with("r.")) locks.push_back(again);  // a multi_lock has no red_lock
    if (locks.empty()) locks.push_back(names_of_chaos().a[0]);
  }
  how.locks = std::move(locks);
  if (s.held.empty() ? dice_.per_mille(400) : false) {
    how.how = section::wait_mode::forever;
  } else if (dice_.per_mille(300)) {
    how.how = section::wait_mode::once;
  } else {
    how.how = section::wait_mode::bounded;
    how.wait = dice_.per_mille(100)   ? 0ms
               : dice_.per_mille(150) ? dice_.between(400ms, 1200ms)
                                      : dice_.between(1ms, 400ms);
  }
  if (dice_.per_mille(200))  // most often while its command is under way
    how.cancel = dice_.per_mille(600) ? 0ms : dice_.per_mille(500) ? dice_.between(1ms, 2ms) : dice_.between(3ms, 80ms);
  how.ttl = nested_ttl;
  if (dice_.per_mille(350)) {
    how.renewed = dice_.per_mille(400);
    how.ttl = how.renewed ? dice_.between(900ms, nested_ttl) : dice_.between(200ms, nested_ttl);
  }
  return how;
}

nested_task::whose nested_task::draw_whose() {
  const auto n = dice_.below(10);
  return n < 5 ? whose::bound : n < 9 ? whose::given : whose::stranger;
}

client& nested_task::client_of(const lock_name& lock) const {
  return lock.text.starts_with("a.") ? *redis_.of_a : lock.text.starts_with("b.") ? *redis_.of_b : *redis_.of_red;
}

mutex nested_task::lock_of(const lock_name& lock, whose who, const owner& stranger) const {
  const auto& redis = client_of(lock);
  if (who != whose::bound) return mutex_of(redis, lock, who == whose::given ? self_ : stranger);
  switch (lock.by) {
    case lock_name::kind::fenced: return redis.fenced_mutex(lock.text);
    case lock_name::kind::simple: return redis.simple_mutex(lock.text);
    case lock_name::kind::plain: return redis.mutex(lock.text);
    case lock_name::kind::red: return redis.red_lock(lock.text);
    case lock_name::kind::red_simple: return redis.red_lock(lock.text, reentrancy::not_reentrant);
    case lock_name::kind::reader: return redis.shared_mutex(lock.text).reader();
    case lock_name::kind::writer: return redis.shared_mutex(lock.text).writer();
    case lock_name::kind::fair: return redis.fair_mutex(lock.text);
    case lock_name::kind::permits: break;
  }
  return redis.expirable_semaphore(lock.text, permits_in_all).as_mutex();
}

std::vector<mutex> nested_task::locks_of(const section& how, whose who) const {
  const owner stranger;
  std::vector<mutex> all;
  for (const auto& l : how.locks) all.push_back(lock_of(l, who, stranger));
  return all;
}

call_terms nested_task::terms(const scene& s, std::string what, std::optional<milliseconds> limit) const {
  call_terms t;
  t.task = number_;
  t.what = std::string(2 * s.depth, ' ') + std::move(what);
  t.limit = limit;
  t.scope = s.cancels;
  return t;
}

call_terms nested_task::terms_of_ask(const scene& s, const section& how, whose who, std::string verb) const {
  using choice = section::choice;
  using wait_mode = section::wait_mode;
  const auto command = std::min(nested_command_timeout, how.ttl / 5);
  const auto once = how.of == choice::all ? command * static_cast<int>(how.locks.size()) : command;
  std::string text = std::move(verb);
  text += how.how == wait_mode::forever ? " lock"
          : how.how == wait_mode::once  ? " try_lock"
                                        : " try_lock_for " + std::to_string(how.wait.count());
  text += how.of == choice::any ? " any of " : how.of == choice::all ? " all of " : " of ";
  text += names_of(how);
  text += who == whose::bound ? "bound" : who == whose::given ? "given" : "stranger";
  text += ", ttl " + std::to_string(how.ttl.count()) + (how.renewed ? " renewed" : "");
  if (how.cancel) text += ", cancelled after " + std::to_string(how.cancel->count());
  const bool asks_once = how.how == wait_mode::once || (how.how == wait_mode::bounded && how.wait == 0ms);
  auto t = terms(s, std::move(text),
                 how.how == wait_mode::forever ? std::nullopt : std::optional(asks_once ? once : how.wait));
  t.throws_retry = how.how != wait_mode::forever;
  t.outlives_cancel = how.cancel.has_value();  // only a cancellation of its own ends it
  t.not_before_limit = !asks_once && how.how == wait_mode::bounded;
  return t;
}

template <class Lock>
asio::awaitable<std::optional<lease_of<Lock>>> nested_task::take(Lock m, const scene& s, const section& how,
                                                                 whose who) {
  booked entry(book_, terms_of_ask(s, how, who, ""));
  std::optional<call_instant> cancelled;
  auto cancelling = [&cancelled] { cancelled = steady_clock::now(); };
  auto got = co_await ask(std::move(m), how, cancelling);
  std::string answer = "busy";
  if (got && *got) {
    answer = "granted";
    for (const auto* l : each(**got)) answer += ' ' + l->name() + ' ' + l->id();
  }
  entry.end(got ? error_code() : got.error(), answer, cancelled);
  if (!got) co_return std::nullopt;
  co_return std::move(*got);
}

template <class Held>
asio::awaitable<void> nested_task::work_and_release(Held l, const scene& s, const section& how, whose who) {
  auto inner = s;
  if (who != whose::stranger && how.of != section::choice::any)
    inner.held.insert(inner.held.end(), how.locks.begin(), how.locks.end());
  if (inner.held.empty()) inner.held.push_back(how.locks.front());  // it holds something
  co_await work(l, inner);
  co_await release(std::move(l), s);
}

template <class Lock>
asio::awaitable<void> nested_task::do_body_of(Lock m, scene s, section how, whose who) {
  using Held = lease_of<Lock>;
  how.cancel.reset();
  auto inner = s;
  inner.held.insert(inner.held.end(), how.locks.begin(), how.locks.end());
  const auto lost = std::make_shared<cancel_scope>();
  lost->outer = s.cancels;
  lost->by_loss = true;
  inner.cancels = lost;
  const bool throws = dice_.per_mille(100);
  std::optional<booked> acquiring(std::in_place, book_, terms_of_ask(s, how, who, "with_lock"));
  std::optional<booked> releasing;
  auto body = [&](Held& l) -> asio::awaitable<void> {
    acquiring->end({}, "granted");
    // It ends at the latest a command after the body has.
    auto end = terms(s, "end of with_lock of " + names_of(how), nested_command_timeout);
    end.outlives_cancel = true;  // a body that returns all the same is unlocked first
    struct at_end {
      std::optional<booked>& entry;
      call_book& book;
      call_terms t;
      ~at_end() { entry.emplace(book, std::move(t)); }
    } then{releasing, book_, std::move(end)};
    co_await work(l, inner);
    if (throws) throw on_purpose();
  };
  error_code failed;
  try {
    if (how.how == section::wait_mode::forever)
      co_await with_lock(std::move(m), body, terms_of(how));
    else
      co_await try_with_lock_for(std::move(m), how.how == section::wait_mode::once ? 0ms : how.wait, body,
                                 terms_of(how));
  } catch (const on_purpose&) {
  } catch (const boost::system::system_error& e) {
    failed = e.code();
  }
  if (releasing)
    releasing->end(failed);
  else
    acquiring->end(failed, "busy");
}

template <class Held>
asio::awaitable<void> nested_task::work(Held& l, scene s) {
  ++s.depth;
  for (auto acts = 1 + dice_.below(4); acts-- > 0 && !stopping_();) {
    {
      const seen_leases inside(book_, each(l));
      const auto act = dice_.below(100);
      if (act < 20) {
        co_await pause(dice_.per_mille(60) ? dice_.between(100ms, 700ms) : dice_.around(5ms));
      } else if (act < 68) {
        if (s.depth < deepest) co_await do_section(s);
      } else if (act < 86) {
        if (s.depth < deepest) co_await branches(s);
      } else if (act < 95) {
        const auto ttl = dice_.per_mille(500) ? 0ms : dice_.between(500ms, nested_ttl);
        auto t = terms(s, "renew " + std::to_string(ttl.count()) + " of " + each(l).front()->name() + ' ',
                       nested_command_timeout);
        t.throws_not_held = true;  // by another branch
        co_await booked_call(book_, std::move(t), l.renew(ttl));
      } else {
        l.feed();
      }
      inside.look();
    }
    if (dice_.per_mille(100)) {
      Held elsewhere = std::move(l);
      co_await pause(dice_.around(1ms));
      l = std::move(elsewhere);
    }
  }
}

asio::awaitable<void> nested_task::branch(scene s, std::optional<milliseconds> throws_after,
                                          std::shared_ptr<cancel_scope> all) {
  s.cancels = all;
  if (!throws_after) co_return co_await do_section(std::move(s));
  co_await pause(*throws_after);
  all->cancelled = steady_clock::now();
  book_.note(number_, "a branch throws");
  throw on_purpose();
}

asio::awaitable<void> nested_task::branches(const scene& s) {
  const auto all = std::make_shared<cancel_scope>();
  all->outer = s.cancels;
  std::optional<milliseconds> throws;
  if (dice_.per_mille(350)) throws = dice_.between(0ms, 60ms);
  try {
    if (dice_.per_mille(500))
      co_await (branch(s, {}, all) && branch(s, throws, all));
    else
      co_await (branch(s, {}, all) && branch(s, {}, all) && branch(s, throws, all));
  } catch (const on_purpose&) {
  } catch (const asio::multiple_exceptions&) {  // and those that it has cancelled
  }
}

template <class Held>
asio::awaitable<void> nested_task::release(Held l, const scene& s) {
  const auto how = dice_.below(100);
  if (how < 12) co_return;  // dropped
  if (how < 18) {
    auto first = std::make_shared<Held>(std::move(l));
    auto again = [this, first, &s] { return unlock(*first, s, true); };
    try {
      co_await (again() && again());
    } catch (const asio::multiple_exceptions&) {  // cancelled: the next co_await says so
    }
    co_return;
  }
  if (how < 24) {  // moved on while it is unlocked
    auto op = l.unlock();
    const Held elsewhere = std::move(l);
    co_await booked_call(book_,
                         terms(s, "unlock, moved, of " + each(elsewhere).front()->name() + ' ', nested_command_timeout),
                         std::move(op));
    co_return;
  }
  co_await unlock(l, s, how < 30);
}

template <class Held>
asio::awaitable<void> nested_task::unlock(Held& l, const scene& s, bool again) {
  std::string names;
  std::vector<std::string> ids;
  for (const auto* each_of : each(l)) {
    names += each_of->name() + ' ' + each_of->id() + ' ';
    ids.push_back(each_of->id());
  }
  auto t = terms(s, "unlock of " + names, nested_command_timeout);
  t.throws_not_held = again;
  t.throws_retry = false;
  const auto done = co_await booked_call(book_, std::move(t), l.unlock());
  for (const auto& id : ids) book_.released(id, done.has_value());
  if (l.held()) book_.violation("held after its unlock: " + names, names);
  if (!again) co_return;
  auto second = terms(s, "second unlock of " + names, 0ms);
  second.throws_not_held = true;
  const auto twice = co_await booked_call(book_, std::move(second), l.unlock());
  if (twice) book_.violation("an unlock after the unlock succeeds: " + names, names);
}

}  // namespace holdfast::chaos
