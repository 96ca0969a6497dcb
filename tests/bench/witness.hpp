// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "bench/meter.hpp"
#include "support/fd.hpp"

namespace holdfast::bench {

/// What all processes see of the lock: whether two ever hold at once, how long it takes from one to the next, for how
/// long a process keeps it, and how often one is overtaken.
class witness {
 public:
  explicit witness(int processes)
      : processes_(static_cast<std::size_t>(processes)), memory_(::memfd_create("witness", MFD_CLOEXEC)) {
    if (!memory_ || ::ftruncate(memory_.get(), sizeof(seen)) != 0) fail("a memfd");
    seen_ = ::mmap(nullptr, sizeof(seen), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    if (seen_ == MAP_FAILED) fail("mmap");
    new (seen_) seen;
  }
  witness(const witness&) = delete;
  witness& operator=(const witness&) = delete;
  ~witness() { ::munmap(seen_, sizeof(seen)); }

  /// For another program: it begins with how many are inside, and how often one came who was not alone.
  std::string path() const {
    static_assert(offsetof(seen, inside) == 0 && offsetof(seen, overlaps) == sizeof(std::int64_t));
    static_assert(std::atomic<std::int64_t>::is_always_lock_free);
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(memory_.get());
  }

  /// By one who has asked for it then.
  void enter(int process, clock::time_point asked) {
    auto& s = all();
    if (s.inside++ > 0) ++s.overlaps;
    const auto now = clock::now();
    const bool waited = s.process != nobody && asked < s.left;
    if (waited) (process == s.process ? s.within : s.across).add(now - s.left);
    if (process == s.process) return;
    s.process = process;
    s.since = now;
    const auto mine = static_cast<std::size_t>(process);
    for (std::size_t other = 0; other < processes_; ++other)
      s.most_turns = std::max(s.most_turns, ++s.since_turn_of[other][mine]);
    s.since_turn_of[mine] = {};
  }
  void leave() {
    auto& s = all();
    s.left = clock::now();
    s.longest_burst = std::max(s.longest_burst, s.left - s.since);
    --s.inside;
  }
  bool overlaps() { return all().overlaps > 0; }
  /// That one process has had between two of another.
  int most_turns() { return all().most_turns; }
  double longest_burst() { return std::chrono::duration<double>(all().longest_burst).count(); }
  /// From one who leaves to the next, who waits already: of another process, of the same. In microseconds.
  double hand_over_p50() { return all().across.p50(); }
  double own_hand_over_p50() { return all().within.p50(); }

 private:
  static constexpr int nobody = -1;
  static constexpr std::size_t most_processes = 8;

  struct hand_overs {
    void add(clock::duration one) {
      if (count < took.size()) took[count++] = one;
    }
    double p50() const {
      std::vector<double> us;
      for (std::size_t n = 0; n < count; ++n) us.push_back(std::chrono::duration<double, std::micro>(took[n]).count());
      return us.empty() ? 0 : median(std::move(us));
    }

    std::size_t count = 0;
    std::array<clock::duration, 1U << 16U> took{};
  };
  struct seen {
    std::atomic<std::int64_t> inside{0}, overlaps{0};
    // The holder changes these; a JVM does not.
    int process = nobody;  // that had it last
    clock::time_point since{}, left{};
    clock::duration longest_burst{};
    std::array<std::array<int, most_processes>, most_processes> since_turn_of{};  // of each: turns of each other
    int most_turns = 0;
    hand_overs across, within;
  };
  seen& all() { return *static_cast<seen*>(seen_); }
  [[noreturn]] static void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

  const std::size_t processes_;
  const test::unique_fd memory_;
  void* seen_ = nullptr;
};

}  // namespace holdfast::bench
