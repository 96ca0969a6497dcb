// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "api/arguments.hpp"
#include "api/on_strand.hpp"

/// The common part of all lock() calls, for each kind of lock object.
namespace holdfast::detail {

/// A call of lock(), try_lock() or try_lock_for(), as its caller made it.
///
/// Decision: the arguments stay as they are until the call is on the strand. The limit counts from there, and there the
/// client's config completes the options. A caller gets a wrong argument as an exception of its co_await.
///
/// Decision: the options are taken apart, and their flags stand together: each waiter has this object twice. There may
/// be a hundred thousand waiters. The note is copied here, because the awaitable may start when its text is gone.
class lock_call {
 public:
  /// `given`: the owner given to the mutex. `limit`: empty for lock(); 0 for one attempt. `amount`: of permits.
  lock_call(const std::optional<owner>& given, const lock_options& options, std::optional<milliseconds> limit = {},
            std::uint8_t amount = 1)
      : locker_(given), ttl_(options.ttl.value_or(milliseconds::zero())),
        max_hold_(options.max_hold.value_or(milliseconds::zero())), limit_(limit.value_or(milliseconds::zero())),
        note_(shared_text::copy_of(options.note)), min_replicas_(options.min_replicas.value_or(0)),
        has_ttl_(options.ttl), has_max_hold_(options.max_hold), has_min_replicas_(options.min_replicas),
        renew_(options.renew), wait_(!limit                           ? wait_mode::forever
                                     : *limit == milliseconds::zero() ? wait_mode::once
                                                                      : wait_mode::until_deadline),
        amount_(amount) {}

  bool forever() const noexcept { return wait_ == wait_mode::forever; }
  bool once() const noexcept { return wait_ == wait_mode::once; }
  bool renewed() const noexcept { return renew_.value_or(!has_ttl_); }
  const std::optional<owner>& locker() const noexcept { return locker_; }

  /// Throws error: invalid_wait, invalid_ttl, invalid_name.
  lock_request request(const engine& locks, const calling_coroutine& by) const {
    check_wait(limit_);
    check_note(text_of(note_));
    const auto& settings = locks.settings();
    const lock_options options{.ttl = if_given(has_ttl_, ttl_),
                               .renew = renew_,
                               .max_hold = if_given(has_max_hold_, max_hold_),
                               .min_replicas = if_given(has_min_replicas_, min_replicas_)};
    const auto bound = locker_ ? locker_ : by.bound;
    lock_request request{.owner = bound.value_or(owner{}),
                         .bound = bound.has_value(),
                         .wait = wait_,
                         .amount = amount_,
                         .asked = resolve_terms(settings, options),
                         .coroutine = by.coroutine};
    if (settings.notes) request.note = note_;
    if (wait_ == wait_mode::until_deadline) request.deadline = saturating_add(locks.now(), limit_);
    return request;
  }

 private:
  using wait_mode = lock_request::wait_mode;

  template <class T>
  static std::optional<T> if_given(bool given, T value) noexcept {
    return given ? std::optional(value) : std::nullopt;
  }

  std::optional<owner> locker_;
  milliseconds ttl_, max_hold_, limit_;
  shared_text_ptr note_;
  unsigned min_replicas_;
  bool has_ttl_, has_max_hold_, has_min_replicas_;
  std::optional<bool> renew_;
  wait_mode wait_;
  std::uint8_t amount_;
};
static_assert(sizeof(lock_call) <= 8 * sizeof(void*), "each waiter has it twice");

/// The answer of a lock that was moved from: closed.
template <class T>
asio::awaitable<T> without_client() {
  return on_strand<T>(nullptr, [](engine&, const std::shared_ptr<caller<T>>&, const calling_coroutine&) {});
}

/// `verb(engine&, keys, caller, by)` on the strand, for one lock.
template <class T, class Verb>
asio::awaitable<T> on_lock(const std::weak_ptr<core>& where, shared_keys keys, Verb verb) {
  return on_strand<T>(
      where.lock(),
      [keys = std::move(keys), verb = std::move(verb)](engine& locks, const std::shared_ptr<caller<T>>& to,
                                                       const calling_coroutine& by) {
        check_lock(locks, *keys);
        to->concerns(keys);
        verb(locks, keys, to, by);
      },
      refused_by(where));
}

/// `T`: lease or optional<lease>.
template <class T>
lock_handler lease_to(std::shared_ptr<caller<T>> to) {
  return [to = std::move(to)](lock_answer answer) {
    if (answer.failed) return to->answer(answer.failed);
    if constexpr (std::is_same_v<T, lease>) {
      to->answer({}, access::make_lease(std::move(answer.value)));
    } else {
      to->answer({}, answer.value ? T(access::make_lease(std::move(answer.value))) : T());
    }
  };
}

/// Begins the call on the strand.
template <class T>
void begin_lock(engine& locks, const shared_keys& keys, const lock_call& call, const std::shared_ptr<caller<T>>& to,
                const calling_coroutine& by) {
  if (auto place = locks.lock(keys, call.request(locks, by), lease_to(to))) to->cancels(std::move(place));
}

}  // namespace holdfast::detail
