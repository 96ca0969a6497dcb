// SPDX-License-Identifier: BSL-1.0
// The kinds of lock that any_of and multi_lock take.
#include <holdfast/any_of.hpp>
#include <holdfast/multi_lock.hpp>

#include <string>
#include <vector>

#include <holdfast/error.hpp>

#include "api/core.hpp"
#include "support/catch.hpp"

using namespace holdfast;
using detail::kind;

namespace {

std::vector<mutex> two_of(const kind& of) {
  const auto named = [&](const char* name) { return detail::access::make_mutex<mutex>(nullptr, of, name, {}); };
  return {named("a"), named("b")};
}

/// The words of the refusal. Empty: there was none.
template <class Several>
std::string refusal_of(const kind& of) {
  try {
    const Several made(two_of(of));
    return {};
  } catch (const error& refused) {
    CHECK(refused.code() == errc::invalid_config);
    return refused.what();
  }
}

}  // namespace

TEST_CASE("any_of and multi_lock take locks of each kind whose row has the step") {
  for (const auto* of : {&detail::plain_lock, &detail::fenced_lock, &detail::simple_lock}) {
    CHECK(refusal_of<any_of>(*of).empty());
    CHECK(refusal_of<multi_lock>(*of).empty());
  }
}

TEST_CASE("any_of and multi_lock refuse red_locks") {
  for (const auto* of : {&detail::red_plain_lock, &detail::red_simple_lock}) {
    CHECK(refusal_of<any_of>(*of) ==
          "invalid configuration: "
          "any of red_locks");
    CHECK(refusal_of<multi_lock>(*of) ==
          "invalid configuration: "
          "all of red_locks");
  }
}

TEST_CASE("a kind without one of the two steps is refused by the one that needs it") {
  auto one_at_a_time = detail::plain_lock;
  one_at_a_time.name = "turnstile";
  SECTION("any_of") {
    one_at_a_time.acquire_any = {};
    CHECK(refusal_of<any_of>(one_at_a_time) ==
          "invalid configuration: "
          "any of turnstiles");
    CHECK(refusal_of<multi_lock>(one_at_a_time).empty());
  }
  SECTION("multi_lock") {
    one_at_a_time.acquire_all = {};
    CHECK(refusal_of<any_of>(one_at_a_time).empty());
    CHECK(refusal_of<multi_lock>(one_at_a_time) ==
          "invalid configuration: "
          "all of turnstiles");
  }
}
