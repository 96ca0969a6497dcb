// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace holdfast::fuzz {

/// Ends the process, as libFuzzer wants it, when a property does not hold.
inline void require(bool holds, const char* property) {
  if (holds) return;
  std::cerr << "violated: " << property << std::endl;
  std::abort();
}

/// What goes to a person or a log.
inline bool printable(std::string_view text) {
  constexpr std::string_view cut = "…";
  if (text.ends_with(cut)) text.remove_suffix(cut.size());
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

/// The bytes of one run, from front to back.
class input {
 public:
  input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  /// 0 at the end.
  std::uint8_t byte() {
    const auto taken = take(1);
    return taken.empty() ? 0 : static_cast<std::uint8_t>(taken.front());
  }
  /// Fewer at the end.
  std::string_view take(std::size_t size) {
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  /// Up to the next line feed, which is dropped, or the end.
  std::string_view line() {
    const auto taken = take(std::min(rest_.find('\n'), rest_.size()));
    take(1);
    return taken;
  }

 private:
  std::string_view rest_;
};

}  // namespace holdfast::fuzz

/// What each target defines: one run.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
