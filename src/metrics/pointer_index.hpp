// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string_view>

namespace holdfast::detail {

/// Finds the T of a text by where the text stands: at once, or not at all. Any thread.
///
/// The texts are constants: one that begins where a known one begins is taken for that.
template <class T, std::size_t Room>
class pointer_index {
 public:
  /// Null: no text is known to stand there.
  T* find(std::string_view text) const noexcept {
    for (const auto* probe = places_.data();; ++probe) {
      auto* const value = probe->value.load(std::memory_order_acquire);
      if (!value || probe->begin == text.data()) return value;
    }
  }
  /// The first text of a T has a place, as long as there is room: find() returns null for all others.
  void add(std::string_view text, T& value) noexcept {
    if (has(value)) return;
    const std::lock_guard lock(adding_);
    if (has(value) || used_ == Room) return;
    auto& probe = places_[used_++];
    probe.begin = text.data();
    probe.value.store(&value, std::memory_order_release);
  }

 private:
  bool has(const T& value) const noexcept {
    return std::any_of(places_.begin(), places_.end(),
                       [&](const place& place) { return place.value.load(std::memory_order_acquire) == &value; });
  }

  struct place {
    std::atomic<T*> value{nullptr};
    const char* begin = nullptr;
  };

  std::array<place, Room + 1> places_;  // the last one stays empty
  std::size_t used_ = 0;
  std::mutex adding_;
};

}  // namespace holdfast::detail
