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
#include "metrics/pointer_index.hpp"

namespace holdfast::detail {

/// One T for each of a few texts, found without a lock where its place is known. It is made when its text is first
/// asked for; all that find no room share the last one, "other". Any thread.
template <class T, std::size_t Room>
class bounded_series {
 public:
  T& at(std::string_view text) noexcept { return entry_of(text).value; }
  T& at_index(std::size_t index) noexcept { return entries_[index].value; }
  std::size_t index_of(std::string_view text) noexcept {
    return static_cast<std::size_t>(&entry_of(text) - entries_.data());
  }

  /// Calls it with the text, the T and its number, of each that was asked for.
  template <class Visit>
  void each(Visit visit) const {
    const auto used = used_.load(std::memory_order_acquire);
    for (std::size_t n = 0; n < used; ++n) visit(std::string_view(entries_[n].text), entries_[n].value, n);
    if (crowded_.load(std::memory_order_acquire)) visit(other, entries_[Room].value, Room);
  }

 private:
  struct entry {
    std::string text;  // as a label
    T value;
  };

  entry& entry_of(std::string_view text) noexcept {
    auto* const there = pointers_.find(text);
    return there ? *there : find_or_add(text);
  }
  entry& find_or_add(std::string_view text) noexcept {
    const std::lock_guard lock(adding_);
    const auto used = used_.load(std::memory_order_relaxed);
    const auto known = [&](std::string_view text) {
      const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(used);
      const auto found = std::find_if(entries_.begin(), end, [&](const entry& entry) { return entry.text == text; });
      return found != end ? &*found : nullptr;
    };
    if (auto* const there = known(text)) return *there;
    try {
      auto label = label_of(text);
      if (auto* const there = known(label)) return *there;
      if (label != other && used < Room && !crowded_.load(std::memory_order_relaxed)) {
        entries_[used].text = std::move(label);
        used_.store(used + 1, std::memory_order_release);
        pointers_.add(text, entries_[used]);
        return entries_[used];
      }
    } catch (const std::bad_alloc&) {  // from now on all are "other": what has begun there must end there
    }
    crowded_.store(true, std::memory_order_release);
    return entries_[Room];
  }

  pointer_index<entry, Room> pointers_;
  std::array<entry, Room + 1> entries_;
  std::atomic<std::size_t> used_{0};
  std::atomic<bool> crowded_{false};
  std::mutex adding_;
};

}  // namespace holdfast::detail
