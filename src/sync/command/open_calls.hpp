// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <list>
#include <memory>
#include <string>
#include <utility>

#include <holdfast/error.hpp>

#include "base/function.hpp"

namespace holdfast::detail {

/// Calls whose answer may never come, because the connection is closed first. close() answers them.
class open_calls {
 public:
  /// Returns a handler that calls `done` once. If it was not called before close(), close() calls `done` with `ended`.
  template <class... T>
  function<void(error_code, const std::string&, T...)> until_closed(
      errc ended, function<void(error_code, const std::string&, T...)> done) {
    const auto kept = std::make_shared<decltype(done)>(std::move(done));
    const auto place = ends_.insert(ends_.end(), [kept, ended] { std::exchange(*kept, {})(ended, {}, T{}...); });
    return [this, kept, place](error_code error, const std::string& detail, T... value) {
      if (!*kept) return;  // close() came first
      ends_.erase(place);
      std::exchange(*kept, {})(error, detail, std::move(value)...);
    };
  }
  void close() {
    for (const auto& end : std::exchange(ends_, {})) end();
  }

 private:
  std::list<function<void()>> ends_;
};

}  // namespace holdfast::detail
