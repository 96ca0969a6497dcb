// SPDX-License-Identifier: BSL-1.0
#include <holdfast/latch.hpp>

#include <limits>
#include <optional>
#include <utility>

#include <holdfast/client.hpp>

#include "api/lock_call.hpp"
#include "protocol/latch/countdown_latch.hpp"

namespace holdfast {
namespace {

using detail::answer;
using detail::caller;
using detail::core;
using detail::engine;
using detail::failure;
using detail::on_lock;
using detail::shared_keys;
using detail::time_point;

/// `T`: void, or bool: whether the latch was open in time.
template <class T>
asio::awaitable<T> wait_until_open(const std::weak_ptr<core>& where, shared_keys keys,
                                   std::optional<milliseconds> limit) {
  return on_lock<T>(
      where, std::move(keys),
      [limit](engine& engine, const shared_keys& keys, const std::shared_ptr<caller<T>>& to, const auto&) {
        if (limit) detail::check_wait(*limit);
        const auto deadline = limit ? detail::saturating_add(engine.now(), *limit) : time_point::max();
        auto answered = [to](answer<bool>&& open) {
          if constexpr (std::is_void_v<T>)
            to->answer(open.failed);
          else
            to->answer(open.failed, open.value);
        };
        if (auto place = engine.latches().wait(keys, deadline, std::move(answered))) to->cancels(std::move(place));
      });
}

/// A copy of the latch: the caller's own may end before the count is answered.
asio::awaitable<void> count_down_and_wait(latch of, std::uint32_t n) {
  co_await of.count_down(n);
  co_await of.wait();
}

}  // namespace

latch::latch(std::weak_ptr<core> core, shared_keys keys) : core_(std::move(core)), keys_(std::move(keys)) {}

asio::awaitable<bool> latch::try_set(std::uint32_t count) const {
  return on_lock<bool>(
      core_, keys_,
      [count](engine& engine, const shared_keys& keys, const std::shared_ptr<caller<bool>>& to, const auto&) {
        detail::check_number("a count", count, detail::most_counted);
        engine.latches().try_set(keys, count, engine.new_field(),
                                 [to](answer<bool>&& set) { to->answer(set.failed, set.value); });
      });
}

asio::awaitable<void> latch::count_down(std::uint32_t n) const {
  return on_lock<void>(
      core_, keys_, [n](engine& engine, const shared_keys& keys, const std::shared_ptr<caller<void>>& to, const auto&) {
        detail::check_number("a count-down", n, std::numeric_limits<std::uint32_t>::max());
        engine.latches().count_down(keys, n, engine.new_field(),
                                    [to](const std::optional<failure>& failed) { to->answer(failed); });
      });
}

asio::awaitable<std::uint32_t> latch::count() const {
  return on_lock<std::uint32_t>(
      core_, keys_,
      [](engine& engine, const shared_keys& keys, const std::shared_ptr<caller<std::uint32_t>>& to, const auto&) {
        engine.latches().count(keys, [to](answer<std::uint32_t>&& left) { to->answer(left.failed, left.value); });
      });
}

asio::awaitable<bool> latch::try_wait() const {
  return on_lock<bool>(
      core_, keys_, [](engine& engine, const shared_keys& keys, const std::shared_ptr<caller<bool>>& to, const auto&) {
        engine.latches().count(keys, [to](answer<std::uint32_t>&& left) { to->answer(left.failed, left.value == 0); });
      });
}

asio::awaitable<void> latch::wait() const { return wait_until_open<void>(core_, keys_, std::nullopt); }

asio::awaitable<bool> latch::wait_for(milliseconds wait) const {
  return wait == milliseconds::zero() ? try_wait() : wait_until_open<bool>(core_, keys_, wait);
}

asio::awaitable<void> latch::arrive_and_wait(std::uint32_t n) const { return count_down_and_wait(*this, n); }

const std::string& latch::name() const noexcept {
  static const std::string none;
  return keys_ ? keys_->name : none;
}

latch client::latch(std::string_view name) const { return detail::access::make_latch(core_, name); }

}  // namespace holdfast
