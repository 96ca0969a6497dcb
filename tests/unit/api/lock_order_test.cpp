// SPDX-License-Identifier: BSL-1.0
#include "api/lock_order.hpp"

#include <deque>
#include <optional>
#include <string_view>

#include <holdfast/error.hpp>

#include "protocol/permits/permit_lock.hpp"
#include "protocol/shared/shared_lock.hpp"
#include "support/catch.hpp"

using namespace holdfast;

namespace {

struct a_client {
  const std::shared_ptr<int> life = std::make_shared<int>();
  std::weak_ptr<detail::core> home() const { return std::shared_ptr<detail::core>(life, nullptr); }
};

/// What a call wants, in the order in which it was given.
struct call_fixture {
  void want(const a_client& of, std::string_view name, std::string run, std::uint32_t slot = 0,
            const detail::kind& kind = detail::plain_lock) {
    wanted.push_back({of.home(), std::make_shared<const detail::lock_keys>(kind, name)});
    all.push_back({&wanted.back(), all.size(), std::move(run), slot});
  }
  /// "a b | c": a group between two bars.
  std::string order() const {
    std::string text;
    for (const auto& g : detail::groups_of(all)) {
      text += text.empty() ? "" : " |";
      for (const auto& k : g.keys) (text += text.empty() ? "" : " ") += k->name;
    }
    return text;
  }
  std::optional<error_code> refusal() const {
    try {
      order();
    } catch (const error& e) {
      return e.code();
    }
    return std::nullopt;
  }

  std::deque<detail::wanted_lock> wanted;
  std::vector<detail::placed_lock> all;
  const a_client one, other;
};

}  // namespace

TEST_CASE_METHOD(call_fixture, "the locks of one server are one group, by their keys") {
  for (const auto* name : {"c", "a", "b"}) want(one, name, {});
  CHECK(order() == "a b c");
  CHECK(detail::groups_of(all).front().places == std::vector<std::size_t>{1, 2, 0});
}

TEST_CASE_METHOD(call_fixture, "the locks of several servers are ordered by the servers' runs") {
  want(one, "a", "run2");
  want(other, "z", "run1");
  CHECK(order() == "z | a");
}

TEST_CASE_METHOD(call_fixture, "keys that move are ordered by their slots, each slot by itself") {
  want(one, "a", {}, 7);
  want(one, "b", {}, 3);
  want(one, "c", {}, 7);
  CHECK(order() == "b | a c");
  CHECK(detail::groups_of(all).front().slot == 3);
}

TEST_CASE_METHOD(call_fixture, "two kinds of one slot are two groups, and the slot comes first") {
  want(one, "a", {}, 7);
  want(one, "b", {}, 7, detail::simple_lock);
  want(one, "c", {}, 8, detail::simple_lock);
  want(one, "d", {}, 9);
  CHECK(order() == "b | a | c | d");
}

TEST_CASE_METHOD(call_fixture, "permits are groups of one, behind the other locks of their slot") {
  want(one, "a", {}, 7, detail::permit_lock);
  want(one, "b", {}, 7, detail::permit_lock);
  want(one, "c", {}, 7);
  want(one, "d", {}, 7);
  want(one, "e", {}, 8, detail::simple_lock);
  CHECK(order() == "c d | a | b | e");
}

TEST_CASE_METHOD(call_fixture, "the order of a cluster's locks is the same beside another server's") {
  want(one, "a", {}, 7);
  want(one, "b", {}, 3);
  want(other, "x", "run1");
  CHECK(order() == "b | a | x");
}

TEST_CASE_METHOD(call_fixture, "one lock that is wanted by two clients of one server counts once") {
  want(one, "a", "run1");
  want(other, "a", "run1");
  CHECK(order() == "a");
}

TEST_CASE_METHOD(call_fixture, "one name of two servers that nobody can tell apart is refused") {
  SECTION("because they do not say which run they are") {
    want(one, "a", {});
    want(other, "a", {});
  }
  SECTION("because keys move between them") {
    want(one, "a", {}, 7);
    want(other, "a", {}, 7);
  }
  CHECK(refusal() == errc::invalid_config);
}

TEST_CASE_METHOD(call_fixture, "one fenced lock that is wanted of a client with turns and of one without is one") {
  want(one, "a", "run1", 0, detail::fenced_lock_in_turns);
  want(other, "a", "run1", 0, detail::fenced_lock);
  CHECK(order() == "a");
}

TEST_CASE_METHOD(call_fixture, "one lock that is wanted with a fencing token and without is refused") {
  want(one, "a", "run1");
  want(other, "a", "run1", 0, detail::fenced_lock);
  CHECK(refusal() == errc::invalid_config);
}

TEST_CASE_METHOD(call_fixture, "a shared lock that is wanted on both sides is refused") {
  want(one, "a", "run1", 0, detail::shared_reader);
  want(other, "a", "run1", 0, detail::shared_writer);
  CHECK(refusal() == errc::invalid_config);
}

TEST_CASE_METHOD(call_fixture, "the sides of shared locks are groups of one, ordered by their names alone") {
  want(one, "m", {});
  want(one, "c", {}, 0, detail::shared_reader);
  want(one, "a", {}, 0, detail::shared_writer);
  want(one, "b", {}, 0, detail::shared_reader);
  CHECK(order() == "m | a | b | c");
}
