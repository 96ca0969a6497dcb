// SPDX-License-Identifier: BSL-1.0
#include "base/lease_clock.hpp"

#include <sched.h>

#include <chrono>
#include <fstream>
#include <optional>

#include "support/catch.hpp"
#include "support/fork.hpp"
#include "support/skip.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

/// Whether `question` is true in a process for which the machine has slept for `slept` more: its CLOCK_BOOTTIME is
/// ahead by so much, its CLOCK_MONOTONIC is not. Nothing where the kernel does not let us have such a process.
template <class Question>
std::optional<bool> after_sleep(std::chrono::seconds slept, Question question) {
  bool possible = in_child([] { return ::unshare(CLONE_NEWTIME) == 0; });
  if (!possible) return std::nullopt;
  return in_child([&] {
    if (::unshare(CLONE_NEWTIME) != 0) return false;
    std::ofstream offsets("/proc/self/timens_offsets");
    if (!(offsets << "boottime " << slept.count() << " 0" << std::flush)) return false;
    return in_child(question);  // only children of the process are in its new time
  });
}

}  // namespace

TEST_CASE("the lease clock runs while the machine sleeps") {
  const auto before = detail::lease_clock::now();
  const auto counted = after_sleep(1000s, [&] { return detail::lease_clock::now() - before >= 1000s; });
  if (!counted) skip("this kernel, or this user, has no time namespaces");
  CHECK(*counted);
}

TEST_CASE("saturating_add stops at the end of time") {
  using detail::time_point;
  CHECK(detail::saturating_add(time_point::max() - 1s, 2s) == time_point::max());
  CHECK(detail::saturating_add(time_point(), 2s) == time_point(2s));
}
