// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/change_queue.hpp"

#include <memory>
#include <string>

#include "support/catch.hpp"

using holdfast::detail::change_queue;

namespace {

struct fixture {
  change_queue changes;
  std::string began;
  auto begin(char name) {
    return [this, name] { began += name; };
  }
};

}  // namespace

TEST_CASE_METHOD(fixture, "a change begins when the one before it has ended") {
  CHECK_FALSE(changes.busy());
  for (const char name : {'a', 'b', 'c'}) changes.add(begin(name));
  CHECK(began == "a");
  changes.ended();
  CHECK(began == "ab");
  changes.ended();
  CHECK(began == "abc");
  CHECK(changes.busy());
  changes.ended();
  CHECK_FALSE(changes.busy());
  changes.add(begin('d'));
  CHECK(began == "abcd");
}

TEST_CASE_METHOD(fixture, "changes that end at once do not pile up on the stack") {
  constexpr int many = 100'000;
  int ran = 0;
  changes.add(begin('a'));
  for (int i = 0; i < many; ++i)
    changes.add([&] {
      ++ran;
      changes.ended();
    });
  changes.ended();
  CHECK(ran == many);
  CHECK_FALSE(changes.busy());
}

TEST_CASE_METHOD(fixture, "a change may add another in the midst of its end") {
  changes.add(begin('a'));
  changes.add([&] {
    began += 'b';
    changes.add(begin('d'));
    changes.ended();
  });
  changes.add(begin('c'));
  changes.ended();
  CHECK(began == "abc");
  changes.ended();
  CHECK(began == "abcd");
}

TEST_CASE_METHOD(fixture, "what waits and is forgotten never begins, and is destroyed") {
  const auto kept = std::make_shared<int>();
  changes.add(begin('a'));
  changes.add([this, kept] { began += 'b'; });
  changes.forget();
  CHECK(kept.use_count() == 1);
  changes.ended();
  CHECK(began == "a");
  CHECK_FALSE(changes.busy());
}
