// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <list>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/function.hpp"
#include "redis/failure.hpp"

namespace holdfast::detail {

/// Calls whose answer may never come, because the connection is closed first. close() answers them.
class open_calls {
 public:
  /// Returns a handler that calls `done` once. If it was not called before close(), close() calls `done` with `ended`.
  /// `Answer`: a failure or a value, or a failure or nothing.
  template <class Answer>
  function<void(Answer)> until_closed(errc ended, function<void(Answer)> done) {
    const auto kept = std::make_shared<decltype(done)>(std::move(done));
    const auto place = ends_.insert(ends_.end(), [kept, ended] {
      std::exchange(*kept, {})(std::remove_cvref_t<Answer>{redis::failure{ended, {}}});
    });
    return [this, kept, place](Answer answer) {
      if (!*kept) return;  // close() came first
      ends_.erase(place);
      std::exchange(*kept, {})(std::forward<Answer>(answer));
    };
  }
  void close() {
    for (const auto& end : std::exchange(ends_, {})) end();
  }

 private:
  std::list<function<void()>> ends_;
};

}  // namespace holdfast::detail
