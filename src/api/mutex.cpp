// SPDX-License-Identifier: BSL-1.0
#include <holdfast/fenced_mutex.hpp>

#include <utility>

#include "api/arguments.hpp"
#include "api/operation.hpp"

namespace holdfast {
namespace {

using detail::caller;
using detail::core;
using detail::engine;
using detail::lock_answer;
using detail::lock_request;
using detail::shared_keys;

/// How a mutex is locked, whichever way.
struct lock_call {
  shared_keys keys;
  std::optional<owner> who;
  lock_options options;
};

/// What all three ways to lock have in common; `T` is lease or optional<lease>.
template <class T>
asio::awaitable<T> acquire(std::weak_ptr<core> where, lock_call how, lock_request::patience wait, milliseconds limit) {
  return detail::on_strand<T>(
      std::move(where), [how = std::move(how), wait, limit](engine& locks, const std::shared_ptr<caller<T>>& to,
                                                            const std::optional<owner>& carried) {
        detail::check_name(how.keys->name);
        detail::check_wait(limit);
        to->concerns(how.keys);
        const auto bound = how.who ? how.who : carried;
        lock_request request{bound.value_or(owner{}), bound.has_value(),
                             detail::resolve_terms(locks.settings(), how.options), wait};
        if (wait == lock_request::patience::until_deadline)
          request.deadline = detail::saturating_add(locks.now(), limit);
        auto place = locks.lock(how.keys, std::move(request), [to](lock_answer a) {
          if (a.error) return to->answer(a.error, a.detail);
          if constexpr (std::is_same_v<T, lease>) {
            to->answer({}, {}, detail::access::make_lease(std::move(a.record)));
          } else {
            to->answer({}, {}, a.record ? T(detail::access::make_lease(std::move(a.record))) : T());
          }
        });
        if (place) to->cancels(std::move(place));
      });
}

/// A question to the engine: `verb(engine&, keys, handler)`.
template <class T, class Verb>
asio::awaitable<T> ask(std::weak_ptr<core> where, shared_keys keys, Verb verb) {
  return detail::on_strand<T>(
      std::move(where), [keys = std::move(keys), verb](engine& e, const std::shared_ptr<caller<T>>& to, const auto&) {
        detail::check_name(keys->name);
        to->concerns(keys);
        verb(e, keys, [to](error_code failed, const std::string& detail, T value) {
          to->answer(failed, detail, std::move(value));
        });
      });
}

}  // namespace

mutex::mutex(std::weak_ptr<core> c, shared_keys keys, std::optional<holdfast::owner> who)
    : core_(std::move(c)), keys_(std::move(keys)), owner_(who) {}

fenced_mutex::fenced_mutex(std::weak_ptr<core> c, shared_keys keys, std::optional<holdfast::owner> who)
    : mutex(std::move(c), std::move(keys), who) {}

asio::awaitable<lease> mutex::lock(lock_options options) const {
  return acquire<lease>(core_, {keys_, owner_, options}, lock_request::patience::forever, {});
}

asio::awaitable<std::optional<lease>> mutex::try_lock(lock_options options) const {
  return acquire<std::optional<lease>>(core_, {keys_, owner_, options}, lock_request::patience::once, {});
}

asio::awaitable<std::optional<lease>> mutex::try_lock_for(milliseconds wait, lock_options options) const {
  const auto patience =
      wait == milliseconds::zero() ? lock_request::patience::once : lock_request::patience::until_deadline;
  return acquire<std::optional<lease>>(core_, {keys_, owner_, options}, patience, wait);
}

asio::awaitable<bool> mutex::force_unlock() const {
  return ask<bool>(core_, keys_,
                   [](engine& e, const shared_keys& n, auto done) { e.force_unlock(n, std::move(done)); });
}

asio::awaitable<bool> mutex::is_locked() const {
  return ask<bool>(core_, keys_,
                   [](engine& e, const shared_keys& n, auto done) { e.ask().is_locked(n, std::move(done)); });
}

asio::awaitable<unsigned> mutex::hold_count(holdfast::owner who) const {
  return ask<unsigned>(core_, keys_,
                       [who](engine& e, const shared_keys& n, auto done) { e.hold_count(n, who, std::move(done)); });
}

asio::awaitable<bool> mutex::held_by(holdfast::owner who) const {
  return ask<bool>(core_, keys_, [who](engine& e, const shared_keys& n, auto done) {
    e.hold_count(n, who, [done = std::move(done)](error_code error, const std::string& detail, unsigned count) {
      done(error, detail, count > 0);
    });
  });
}

asio::awaitable<std::optional<lock_holder>> mutex::holder() const {
  return ask<std::optional<lock_holder>>(
      core_, keys_, [](engine& e, const shared_keys& n, auto done) { e.ask().holder(n, std::move(done)); });
}

asio::awaitable<std::optional<milliseconds>> mutex::remaining_ttl() const {
  return ask<std::optional<milliseconds>>(
      core_, keys_, [](engine& e, const shared_keys& n, auto done) { e.ask().remaining_ttl(n, std::move(done)); });
}

asio::awaitable<std::optional<std::uint64_t>> fenced_mutex::last_token() const {
  return ask<std::optional<std::uint64_t>>(
      core_, keys_, [](engine& e, const shared_keys& n, auto done) { e.ask().last_token(n, std::move(done)); });
}

const std::string& mutex::name() const noexcept {
  static const std::string none;
  return keys_ ? keys_->name : none;
}

}  // namespace holdfast
