// SPDX-License-Identifier: BSL-1.0
#include "cli/server/patience.hpp"

#include "support/catch.hpp"

using namespace std::chrono_literals;
using holdfast::cli::patience;

TEST_CASE("a silent server is waited for as long as the limit says") {
  patience left(2s);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(!left.is_over());
    CHECK(left.next() == 200ms);
    left.waited(200ms, 200ms);
  }
  CHECK(left.is_over());
}

TEST_CASE("a wait that ends somewhat late counts, and so does one that ends early") {
  patience left(2s);
  left.waited(200ms, 399ms);
  left.waited(200ms, 1ms);
  for (int i = 0; i < 8; ++i) left.waited(200ms, 200ms);
  CHECK(left.is_over());
}

TEST_CASE("a standstill of the process does not count, however long it was") {
  patience left(2s);
  for (int i = 0; i < 9; ++i) left.waited(200ms, 200ms);
  left.waited(200ms, 1h);
  CHECK(!left.is_over());
  CHECK(left.next() == 200ms);
}

TEST_CASE("the fourth standstill counts: the caller does not wait for a machine that is always too slow") {
  patience left(2s);
  for (int i = 0; i < 3; ++i) left.waited(200ms, 5s);
  CHECK(!left.is_over());
  left.waited(200ms, 5s);
  CHECK(left.is_over());
}

TEST_CASE("a short limit is one wait") {
  patience left(10ms);
  CHECK(left.next() == 10ms);
  left.waited(10ms, 11ms);
  CHECK(left.is_over());
}
