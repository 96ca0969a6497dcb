// SPDX-License-Identifier: BSL-1.0
// The kinds of lock that any_of and multi_lock take.
#include <holdfast/any_of.hpp>
#include <holdfast/multi_lock.hpp>

#include <string>
#include <vector>

#include <holdfast/error.hpp>

#include "api/core.hpp"
#include "protocol/permits/permit_lock.hpp"
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

TEST_CASE("any_of and multi_lock take locks of each kind whose row has both steps") {
  for (const auto* of : {&detail::plain_lock, &detail::fenced_lock, &detail::simple_lock}) {
    CHECK(refusal_of<any_of>(*of).empty());
    CHECK(refusal_of<multi_lock>(*of).empty());
  }
}

TEST_CASE("any_of and multi_lock refuse red_locks") {
  for (const auto* of : {&detail::red_plain_lock, &detail::red_simple_lock}) {
    CHECK(refusal_of<any_of>(*of) ==
          "invalid configuration: "
          "any_of takes no red_lock");
    CHECK(refusal_of<multi_lock>(*of) ==
          "invalid configuration: "
          "multi_lock takes no red_lock");
  }
}

TEST_CASE("a permit is refused by any_of, and taken by multi_lock") {
  CHECK(refusal_of<any_of>(detail::permit_lock) ==
        "invalid configuration: "
        "any_of takes no expirable_semaphore");
  CHECK(refusal_of<multi_lock>(detail::permit_lock).empty());
}
