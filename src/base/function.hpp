// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace holdfast::detail {

template <class Signature, std::size_t Words = 4>
class function;

/// A callback that is moved and never copied (std::move_only_function is C++23's). Up to `Words` words, a shared_ptr
/// among them, need no memory: every step of a lock passes one.
template <class R, class... Args, std::size_t Words>
class function<R(Args...), Words> {
 public:
  function() noexcept = default;
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, function> && std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
  function(F&& action) {
    using stored = std::decay_t<F>;
    if constexpr (fits<stored>) {
      new (&place_) stored(std::forward<F>(action));
      does_ = &of<stored>::in_place;
    } else {
      new (&place_) stored*(new stored(std::forward<F>(action)));
      does_ = &of<stored>::elsewhere;
    }
  }
  function(function&& other) noexcept { take(other); }
  function& operator=(function&& other) noexcept {
    if (this != &other) {
      const function dropped(std::move(*this));  // destroyed last: what it captured may come back to us
      take(other);
    }
    return *this;
  }
  ~function() {
    if (does_) does_->destroy(&place_);
  }

  explicit operator bool() const noexcept { return does_ != nullptr; }
  R operator()(Args... args) const { return does_->call(&place_, std::forward<Args>(args)...); }

 private:
  struct actions {
    R (*call)(void*, Args&&...);
    void (*move)(void* from, void* to) noexcept;  // and destroys
    void (*destroy)(void*) noexcept;
  };
  template <class F>
  static constexpr bool fits =
      sizeof(F) <= Words * sizeof(void*) && alignof(F) <= alignof(void*) && std::is_nothrow_move_constructible_v<F>;
  template <class F>
  struct of {
    static F& here(void* object) noexcept { return *std::launder(static_cast<F*>(object)); }
    static F*& there(void* object) noexcept { return *std::launder(static_cast<F**>(object)); }
    static constexpr actions in_place{[](void* object, Args&&... args) -> R {
                                        return static_cast<R>(std::invoke(here(object), std::forward<Args>(args)...));
                                      },
                                      [](void* from, void* to) noexcept {
                                        new (to) F(std::move(here(from)));
                                        here(from).~F();
                                      },
                                      [](void* object) noexcept { here(object).~F(); }};
    static constexpr actions elsewhere{
        [](void* object, Args&&... args) -> R {
          return static_cast<R>(std::invoke(*there(object), std::forward<Args>(args)...));
        },
        [](void* from, void* to) noexcept { new (to) F*(there(from)); },
        [](void* object) noexcept { delete there(object); }};
  };

  void take(function& other) noexcept {
    does_ = std::exchange(other.does_, nullptr);
    if (does_) does_->move(&other.place_, &place_);
  }

  alignas(void*) mutable std::byte place_[Words * sizeof(void*)];
  const actions* does_ = nullptr;
};

}  // namespace holdfast::detail
