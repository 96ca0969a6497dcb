// SPDX-License-Identifier: BSL-1.0
#include <holdfast/mutex.hpp>

#include <utility>

#include "sync/operation.hpp"

namespace holdfast {
namespace {

using detail::caller;
using detail::core;
using detail::lock_answer;
using detail::lock_request;
using shared_name = std::shared_ptr<const std::string>;

/// What all three ways to lock have in common; `T` is lease or optional<lease>.
template <class T>
asio::awaitable<T> acquire(std::weak_ptr<core> where, shared_name name, std::optional<owner> who, lock_options options,
                           lock_request::patience wait, milliseconds limit) {
  return detail::on_strand<T>(
      std::move(where), [name = std::move(name), who, options, wait, limit](core& c, const std::shared_ptr<caller<T>>& to,
                                                                            const asio::any_io_executor& home) {
        detail::check_name(*name);
        detail::check_wait(limit);
        auto& locks = c.locks();
        const auto bound = who ? who : owner::of(home);
        lock_request request{bound.value_or(owner{}), bound.has_value(), detail::resolve_terms(locks.settings(), options), wait};
        if (wait == lock_request::patience::until_deadline) request.deadline = detail::saturating_add(locks.now(), limit);
        auto answered = [to, name](lock_answer a) {
          if (a.error) return to->answer_about(*name, a.error, a.detail);
          if constexpr (std::is_same_v<T, lease>) {
            to->answer({}, {}, detail::access::make_lease(std::move(a.record)));
          } else {
            to->answer({}, {}, a.record ? T(detail::access::make_lease(std::move(a.record))) : T());
          }
        };
        auto place = locks.lock(*name, std::move(request), std::move(answered));
        if (place) to->cancels(std::move(place));
      });
}

/// A question to the engine: `verb(engine&, name, handler)`.
template <class T, class Verb>
asio::awaitable<T> ask(std::weak_ptr<core> where, shared_name name, Verb verb) {
  return detail::on_strand<T>(std::move(where), [name = std::move(name), verb](core& c, const std::shared_ptr<caller<T>>& to, const auto&) {
    detail::check_name(*name);
    verb(c.locks(), *name, [to, name](error_code e, const std::string& detail, T value) {
      to->answer_about(*name, e, detail, std::move(value));
    });
  });
}

}  // namespace

mutex::mutex(std::weak_ptr<detail::core> c, std::string_view name, std::optional<holdfast::owner> who)
    : core_(std::move(c)), name_(std::make_shared<const std::string>(name)), owner_(who) {}

asio::awaitable<lease> mutex::lock(lock_options options) const {
  return acquire<lease>(core_, name_, owner_, options, lock_request::patience::forever, {});
}

asio::awaitable<std::optional<lease>> mutex::try_lock(lock_options options) const {
  return acquire<std::optional<lease>>(core_, name_, owner_, options, lock_request::patience::once, {});
}

asio::awaitable<std::optional<lease>> mutex::try_lock_for(milliseconds wait, lock_options options) const {
  const auto patience = wait == milliseconds::zero() ? lock_request::patience::once : lock_request::patience::until_deadline;
  return acquire<std::optional<lease>>(core_, name_, owner_, options, patience, wait);
}

asio::awaitable<bool> mutex::force_unlock() const {
  return ask<bool>(core_, name_, [](detail::engine& e, const std::string& n, auto done) { e.force_unlock(n, std::move(done)); });
}

asio::awaitable<bool> mutex::is_locked() const {
  return ask<bool>(core_, name_, [](detail::engine& e, const std::string& n, auto done) { e.is_locked(n, std::move(done)); });
}

asio::awaitable<unsigned> mutex::hold_count(holdfast::owner who) const {
  return ask<unsigned>(core_, name_,
                       [who](detail::engine& e, const std::string& n, auto done) { e.hold_count(n, who, std::move(done)); });
}

asio::awaitable<bool> mutex::held_by(holdfast::owner who) const {
  return ask<bool>(core_, name_, [who](detail::engine& e, const std::string& n, auto done) {
    e.hold_count(n, who, [done = std::move(done)](error_code error, const std::string& detail, unsigned count) {
      done(error, detail, count > 0);
    });
  });
}

asio::awaitable<std::optional<milliseconds>> mutex::remaining_ttl() const {
  return ask<std::optional<milliseconds>>(
      core_, name_, [](detail::engine& e, const std::string& n, auto done) { e.remaining_ttl(n, std::move(done)); });
}

const std::string& mutex::name() const noexcept { return *name_; }

}  // namespace holdfast
