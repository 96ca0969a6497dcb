// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace holdfast::test {

/// How one direction of all connections is slowed down; nothing by default.
struct pacing {
  std::chrono::milliseconds delay{0};
  std::size_t split = 0;             // 0: not split
  std::size_t bytes_per_second = 0;  // 0: not throttled
  bool held = false;
  bool swallowed = false;
};

/// One direction of one connection of a proxy: what was read and is not written yet.
class proxy_stream {
 public:
  using clock = std::chrono::steady_clock;

  struct progress {
    std::uint64_t sent = 0, pieces = 0;
    bool blocked = false;  // the socket takes no more: wait for POLLOUT
    bool ended = false;    // a cut was reached, the source has ended and all is written, or the socket is broken
    std::optional<clock::time_point> again{};  // nothing to do before
  };

  void push(std::string bytes, clock::time_point due, bool then_cut = false) {
    pieces_.push_back({std::move(bytes), due, then_cut});
  }
  void end() { ended_ = true; }
  /// Writes what is due.
  progress write_to(int fd, clock::time_point now, const pacing& pace);

  /// What is pushed from now on waits for release(); what was pushed before does not.
  void held_from_here() {
    if (!free_) free_ = pieces_.size();
  }
  void release() { free_.reset(); }

  bool dropped = false;  // by a rule
  bool lost_bytes = false;

 private:
  struct piece {
    std::string bytes;
    clock::time_point due;
    bool then_cut;
  };
  std::size_t allowance(int fd, clock::time_point now, const pacing& pace, progress& result);

  std::deque<piece> pieces_;
  std::optional<std::size_t> free_;  // so many pieces may go
  clock::time_point throttled_until_{};
  bool ended_ = false;
};

}  // namespace holdfast::test
