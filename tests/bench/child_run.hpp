// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "bench/scenario.hpp"
#include "support/fd.hpp"
#include "support/fork.hpp"

namespace holdfast::bench {

template <class Result>
using teller = std::function<void(const Result&)>;

/// A piece of work in a process of its own, so that it can hang or crash and has memory and CPU time for itself. Killed
/// with this object.
template <class Result>
class child_run {
  static_assert(std::is_trivially_copyable_v<Result>);

 public:
  /// The child calls `work(tell)`, which calls `tell(result)` once; what it does afterwards, destructors too, is not
  /// waited for.
  template <class Work>
  explicit child_run(Work work)
      : child_([&] {
          work(teller<Result>([this](const Result& r) {
            if (::write(in_.get(), &r, sizeof r) != sizeof r) std::abort();
          }));
          return true;
        }) {
    in_.reset();  // the child's end of it is the last one
  }

  /// Throws not_finished if the child ended without a result, or has none at the deadline.
  Result result_until(std::chrono::steady_clock::time_point deadline) {
    Result r;
    if (!test::wait_ready(out_.get(), POLLIN, deadline)) throw not_finished("no result in time");
    if (::read(out_.get(), &r, sizeof r) != sizeof r) throw not_finished("a process ended without a result");
    return r;
  }

 private:
  test::unique_fd out_, in_ = make_pipe(out_);
  test::forked child_;

  static test::unique_fd make_pipe(test::unique_fd& out) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
    out = test::unique_fd(ends[0]);
    return test::unique_fd(ends[1]);
  }
};

}  // namespace holdfast::bench
