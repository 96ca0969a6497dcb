// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "metrics/label.hpp"

namespace holdfast::detail {

/// One T for each of a few texts, found without a lock. It is made when its text is first asked for; all that find no
/// room share the last one, "other". Any thread.
///
/// The texts are constants: one that stands where a known one stands, with the same size, is taken for that. Every
/// other one is compared.
template <class T, std::size_t Room>
class slots {
 public:
  T& at(std::string_view text) noexcept { return at_index(index_of(text)); }
  T& at_index(std::size_t n) noexcept { return entries_[n].value; }
  std::size_t index_of(std::string_view text) noexcept {
    const auto n = seen(text);
    return n != unseen ? n : find_or_add(text);
  }
  static constexpr std::size_t unseen = Room + 1;
  /// Quickly, or not at all: unseen.
  std::size_t seen(std::string_view text) const noexcept {
    const auto used = used_.load(std::memory_order_acquire);
    for (std::size_t n = 0; n < used; ++n)
      if (places_[n].data == text.data() && places_[n].size == text.size()) return n;
    return unseen;
  }

  /// Calls it with the text, the T and its number, of each that was asked for.
  template <class Visit>
  void each(Visit visit) const {
    const auto used = used_.load(std::memory_order_acquire);
    for (std::size_t n = 0; n < used; ++n) visit(std::string_view(entries_[n].text), entries_[n].value, n);
    if (crowded_.load(std::memory_order_acquire)) visit(other, entries_[Room].value, Room);
  }

 private:
  struct place {
    const char* data = nullptr;
    std::size_t size = 0;
  };
  struct entry {
    std::string text;  // as a label
    T value;
  };

  std::size_t find_or_add(std::string_view text) noexcept {
    const std::lock_guard lock(adding_);
    const auto used = used_.load(std::memory_order_relaxed);
    const auto has = [&](std::string_view what) {
      const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(used);
      return static_cast<std::size_t>(
          std::find_if(entries_.begin(), end, [&](const entry& e) { return e.text == what; }) - entries_.begin());
    };
    if (const auto n = has(text); n < used) return n;
    try {
      auto label = label_of(text);
      if (const auto n = has(label); n < used) return n;
      if (label != other && used < Room && !crowded_.load(std::memory_order_relaxed)) {
        places_[used] = {text.data(), text.size()};
        entries_[used].text = std::move(label);
        used_.store(used + 1, std::memory_order_release);
        return used;
      }
    } catch (const std::bad_alloc&) {  // from now on all are "other": what has begun there must end there
    }
    crowded_.store(true, std::memory_order_release);
    return Room;
  }

  std::array<place, Room> places_;  // beside entries_, where they are looked through quickly
  std::array<entry, Room + 1> entries_;
  std::atomic<std::size_t> used_{0};
  std::atomic<bool> crowded_{false};
  std::mutex adding_;
};

}  // namespace holdfast::detail
