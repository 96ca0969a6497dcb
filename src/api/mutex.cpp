// SPDX-License-Identifier: BSL-1.0
#include <holdfast/fenced_mutex.hpp>

#include <utility>

#include "api/lock_call.hpp"

namespace holdfast {
namespace {

using detail::caller;
using detail::calling_coroutine;
using detail::core;
using detail::engine;
using detail::lock_call;
using detail::shared_keys;

/// `T`: lease or optional<lease>.
template <class T>
asio::awaitable<T> acquire(const std::weak_ptr<core>& where, shared_keys keys, lock_call request) {
  return detail::on_lock<T>(where, std::move(keys),
                            [request = std::move(request)](
                                engine& locks, const shared_keys& keys, const std::shared_ptr<caller<T>>& to,
                                const calling_coroutine& by) { detail::begin_lock(locks, keys, request, to, by); });
}

/// A question to the engine: `verb(engine&, keys, handler)`.
template <class T, class Verb>
asio::awaitable<T> ask(const std::weak_ptr<core>& where, shared_keys keys, Verb verb) {
  return detail::on_lock<T>(
      where, std::move(keys),
      [verb](engine& engine, const shared_keys& keys, const std::shared_ptr<caller<T>>& to, const auto&) {
        verb(engine, keys,
             [to = to](detail::answer<T>&& answer) { to->answer(answer.failed, std::move(answer.value)); });
      });
}

}  // namespace

mutex::mutex(std::weak_ptr<core> core, shared_keys keys, std::optional<holdfast::owner> owner)
    : core_(std::move(core)), keys_(std::move(keys)), owner_(owner) {}

fenced_mutex::fenced_mutex(std::weak_ptr<core> core, shared_keys keys, std::optional<holdfast::owner> owner)
    : mutex(std::move(core), std::move(keys), owner) {}

asio::awaitable<lease> mutex::lock(lock_options options) const {
  return acquire<lease>(core_, keys_, {owner_, options});
}

asio::awaitable<std::optional<lease>> mutex::try_lock(lock_options options) const {
  return acquire<std::optional<lease>>(core_, keys_, {owner_, options, milliseconds::zero()});
}

asio::awaitable<std::optional<lease>> mutex::try_lock_for(milliseconds wait, lock_options options) const {
  return acquire<std::optional<lease>>(core_, keys_, {owner_, options, wait});
}

asio::awaitable<bool> mutex::force_unlock() const {
  return ask<bool>(core_, keys_, [](engine& engine, const shared_keys& keys, auto done) {
    engine.force_unlock(keys, [done = std::move(done)](detail::answer<unsigned>&& broken) {
      done({std::move(broken.failed), broken.value > 0});
    });
  });
}

asio::awaitable<bool> mutex::is_locked() const {
  return ask<bool>(core_, keys_, [](engine& engine, const shared_keys& keys, auto done) {
    engine.ask().is_locked(keys, std::move(done));
  });
}

asio::awaitable<unsigned> mutex::hold_count(holdfast::owner owner) const {
  return ask<unsigned>(core_, keys_, [owner](engine& engine, const shared_keys& keys, auto done) {
    engine.hold_count(keys, owner, std::move(done));
  });
}

asio::awaitable<bool> mutex::held_by(holdfast::owner owner) const {
  return ask<bool>(core_, keys_, [owner](engine& engine, const shared_keys& keys, auto done) {
    engine.hold_count(keys, owner, [done = std::move(done)](detail::answer<unsigned>&& count) {
      done({std::move(count.failed), count.value > 0});
    });
  });
}

asio::awaitable<std::optional<lock_holder>> mutex::holder() const {
  return ask<std::optional<lock_holder>>(core_, keys_, [](engine& engine, const shared_keys& keys, auto done) {
    engine.ask().holder(keys, std::move(done));
  });
}

asio::awaitable<std::optional<milliseconds>> mutex::remaining_ttl() const {
  return ask<std::optional<milliseconds>>(core_, keys_, [](engine& engine, const shared_keys& keys, auto done) {
    engine.ask().remaining_ttl(keys, std::move(done));
  });
}

asio::awaitable<std::optional<std::uint64_t>> fenced_mutex::last_token() const {
  return ask<std::optional<std::uint64_t>>(core_, keys_, [](engine& engine, const shared_keys& keys, auto done) {
    engine.ask().last_token(keys, std::move(done));
  });
}

const std::string& mutex::name() const noexcept {
  static const std::string none;
  return keys_ ? keys_->name : none;
}

}  // namespace holdfast
