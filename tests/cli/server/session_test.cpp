// SPDX-License-Identifier: BSL-1.0
#include "cli/server/session.hpp"

#include "support/catch.hpp"

using namespace std::chrono_literals;
using holdfast::cli::work_in;

TEST_CASE("the work for an answer is its time beyond the fastest, and a standstill is no work") {
  CHECK(work_in(250us, 250us) == 0us);
  CHECK(work_in(3ms, 250us) == 2'750us);
  CHECK(work_in(1'900ms, 250us) == 100ms);
}
