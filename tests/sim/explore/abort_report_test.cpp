// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/abort_report.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "sim/explore/plan.hpp"
#include "sim/explore/worlds.hpp"
#include "support/catch.hpp"
#include "support/fork.hpp"

using namespace holdfast::sim::explore;

namespace {

/// Takes the last option each time, and aborts at a later choice or goes no further.
class last_options final : public chooser {
 public:
  explicit last_options(bool aborts) : aborts_(aborts) {}

  std::optional<std::size_t> choose(const std::vector<option>& options, std::optional<std::uint64_t>) override {
    if (taken.size() == 4) {
      if (aborts_) std::abort();
      return std::nullopt;
    }
    return taken.emplace_back(options.size() - 1);
  }

  plan taken;

 private:
  bool aborts_;
};

/// All that the child prints until it ends.
template <class Deed>
std::string printed_by_child(Deed deed) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  holdfast::test::forked child([&] {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(ends[1], STDOUT_FILENO);
    deed();
    return true;
  });
  ::close(ends[1]);
  std::string text;
  char part[256];
  for (ssize_t size; (size = ::read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(size));
  ::close(ends[0]);
  CHECK_FALSE(child.went_well());
  return text;
}

}  // namespace

TEST_CASE("a process that aborts prints the world and the plan of the path that it lives") {
  const auto& of = all_worlds().front();
  last_options goes(false);
  live(of, goes);
  REQUIRE(goes.taken.back() != 0);
  const auto text = printed_by_child([&] {
    report_aborts();
    last_options ends(true);
    live_reported(of, ends);
  });
  const auto at = text.rfind(' ');
  REQUIRE(at != text.npos);
  CHECK(text.substr(0, at) ==
        "  VIOLATION the process ended itself\n  replay: holdfast_explore --replay " + std::string(of.name));
  CHECK(plan_of(text.substr(at + 1, text.size() - at - 2)) == goes.taken);
}

TEST_CASE("a process that aborts after a path prints nothing of it") {
  const auto text = printed_by_child([&] {
    report_aborts();
    last_options goes(false);
    live_reported(all_worlds().front(), goes);
    std::abort();
  });
  CHECK(text.empty());
}
