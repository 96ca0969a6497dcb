// SPDX-License-Identifier: BSL-1.0
#include "sync/release/answered_releases.hpp"

#include <string>

#include "protocol/kind.hpp"
#include "support/catch.hpp"
#include "support/no_memory.hpp"
#include "support/skip.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::time_point;

namespace {

struct fixture {
  const detail::uuid client{0, 0};
  const detail::shared_keys keys = std::make_shared<const detail::lock_keys>(detail::plain_lock, "a");
  detail::answered_releases under_test;
  std::uint64_t last = 0;

  void note(detail::lease_clock::duration at, std::uint64_t server = 1) {
    under_test.note({keys, {client, ++last}, server, time_point(at), time_point(at + 30s), 0});
  }
  /// The numbers of the fields that are taken.
  template <class Which>
  std::string take(Which which) {
    std::string taken;
    under_test.take(which, [&](detail::answered_releases::entry&& e) {
      const std::string text(e.field.to_text());
      taken += (taken.empty() ? "" : " ") + text.substr(text.find(':') + 1);
    });
    return taken;
  }
  std::string take_all() {
    return take([](const auto&) { return true; });
  }
};

}  // namespace

TEST_CASE_METHOD(fixture, "answered releases are taken once, oldest first") {
  for (int n = 0; n < 20; ++n) note(0s);
  CHECK(under_test.size() == 20);
  CHECK(take_all() == "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
  CHECK(take_all().empty());
}

TEST_CASE_METHOD(fixture, "answered releases that are not asked for are kept in their order") {
  for (const std::uint64_t server : {1, 2, 1, 2, 1}) note(0s, server);
  CHECK(take([](const auto& e) { return e.server == 2; }) == "2 4");
  note(0s);
  CHECK(take_all() == "1 3 5 6");
}

TEST_CASE_METHOD(fixture, "an answered release is kept until one that is more than ten seconds younger comes") {
  note(0s);
  note(10s);
  CHECK(under_test.size() == 2);
  note(10s + 1ns);
  CHECK(take_all() == "2 3");
}

TEST_CASE_METHOD(fixture, "of more than 4096 answered releases the oldest are dropped") {
  for (int n = 0; n < 5000; ++n) note(0s);
  CHECK(under_test.size() == 4096);
  CHECK(take_all().starts_with("905 906 "));
}

TEST_CASE_METHOD(fixture, "an answered release keeps its keys no longer than it is kept itself") {
  note(0s);
  note(0s);
  CHECK(keys.use_count() == 3);
  take_all();
  CHECK(keys.use_count() == 1);
}

TEST_CASE_METHOD(fixture, "without memory the oldest answered release gives way, or there is none") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  {
    const failing_allocations now(0);
    note(0s);
  }
  CHECK(under_test.size() == 0);
  for (int n = 0; n < 16; ++n) note(0s);
  {
    const failing_allocations now(0);
    note(0s);
  }
  CHECK(under_test.size() == 16);
  CHECK(take_all().starts_with("3 4 "));
}
