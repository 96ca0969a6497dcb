// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "support/fd.hpp"

namespace holdfast::chaos {

/// Nanoseconds of CLOCK_BOOTTIME: one clock for every process of the machine.
using instant = std::int64_t;
instant now() noexcept;

/// What one process saw, one JSON object a line. Each line is one write(2): what stands in the file survives SIGKILL.
/// One thread.
class history {
 public:
  /// A line in the making, written at the end of its scope. Keys and texts are plain ASCII without quotes.
  class line {
   public:
    line(const line&) = delete;
    line& operator=(const line&) = delete;
    ~line();

    line& add(std::string_view key, std::string_view text);
    line& add(std::string_view key, const char* text) { return add(key, std::string_view(text)); }
    line& add(std::string_view key, bool flag) { return add_raw(key, flag ? "true" : "false"); }
    template <std::integral T>
    line& add(std::string_view key, T number) {
      return add_raw(key, std::to_string(number));
    }

   private:
    friend class history;
    line(int file, std::string_view event);
    line& add_raw(std::string_view key, std::string_view value);

    int file_;
    std::string text_;
  };

  explicit history(const std::string& path);

  line write(std::string_view event) { return {file_.get(), event}; }

 private:
  test::unique_fd file_;
};

}  // namespace holdfast::chaos
