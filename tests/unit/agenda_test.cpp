// SPDX-License-Identifier: BSL-1.0
#include "sync/agenda.hpp"

#include <boost/intrusive/set.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "sync/claim.hpp"

namespace holdfast::test {
namespace {

using detail::time_point;
using std::chrono::seconds;

struct entry {
  explicit entry(int at_second, int its_number = 0) : at(seconds(at_second)), number(its_number) {}

  time_point when() const noexcept { return at; }
  friend bool operator<(const entry& a, const entry& b) noexcept {
    return std::pair(a.at, a.number) < std::pair(b.at, b.number);
  }

  detail::order_hook hook;
  const time_point at;
  const int number;
};
using order = boost::intrusive::set<entry, boost::intrusive::member_hook<entry, detail::order_hook, &entry::hook>>;
using agenda = detail::agenda<order>;

void put(agenda& in, entry& what) { in.insert(what, what.at); }
time_point at(int second) { return time_point(seconds(second)); }

}  // namespace

TEST_CASE("an agenda has the soonest first, whichever came first") {
  entry late(3), soon(1), middle(2);
  agenda a;
  CHECK(a.empty());
  CHECK(a.earliest() == time_point::max());
  for (auto* e : {&late, &soon, &middle}) put(a, *e);
  CHECK(a.size() == 3);
  CHECK(a.earliest() == at(1));
  std::vector<const entry*> all;
  for (const auto& e : a.sorted()) all.push_back(&e);
  CHECK(all == std::vector<const entry*>{&soon, &middle, &late});
  CHECK(a.earliest() == at(1));
  for (auto* e : {&late, &soon, &middle}) a.erase(*e);
  CHECK(a.empty());
}

TEST_CASE("a newcomer that leaves an agenda may leave its instant there, until all are in order") {
  entry late(3), soon(1);
  agenda a;
  put(a, late);
  put(a, soon);
  a.erase(soon);
  CHECK_FALSE(soon.hook.is_linked());
  CHECK(a.earliest() <= at(3));
  CHECK(a.sorted().size() == 1);
  CHECK(a.earliest() == at(3));
  a.erase(late);
  CHECK(a.earliest() == time_point::max());
}

TEST_CASE("what comes to an agenda after the others were put in order has its place, too") {
  entry first(1), second(2), third(3), zeroth(0);
  agenda a;
  put(a, first);
  put(a, third);
  CHECK(a.sorted().size() == 2);
  put(a, second);
  put(a, zeroth);
  CHECK(a.earliest() == at(0));
  a.erase(first);
  CHECK(&*a.sorted().begin() == &zeroth);
  a.erase(zeroth);
  CHECK(&*a.sorted().begin() == &second);
  a.erase(second);
  a.erase(third);
}

TEST_CASE("the end of an agenda leaves nothing linked") {
  entry sorted(1), newcomer(2);
  {
    agenda a;
    put(a, sorted);
    a.sorted();
    put(a, newcomer);
  }
  CHECK_FALSE(sorted.hook.is_linked());
  CHECK_FALSE(newcomer.hook.is_linked());
}

TEST_CASE("an agenda is a set in order, whatever comes and goes") {
  std::mt19937 dice(7);
  std::vector<std::unique_ptr<entry>> all;
  for (int i = 0; i < 60; ++i) all.push_back(std::make_unique<entry>(static_cast<int>(dice() % 20), i));
  agenda a;
  std::set<std::pair<time_point, int>> expected;
  for (int step = 0; step < 5'000; ++step) {
    auto& e = *all[dice() % all.size()];
    const std::pair key(e.at, e.number);
    if (e.hook.is_linked()) {
      a.erase(e);
      expected.erase(key);
    } else {
      put(a, e);
      expected.insert(key);
    }
    REQUIRE(a.size() == expected.size());
    if (!expected.empty()) REQUIRE(a.earliest() <= expected.begin()->first);
    if (step % 7 != 0) continue;
    std::set<std::pair<time_point, int>> found;
    for (const auto& s : a.sorted()) found.emplace_hint(found.end(), s.at, s.number);
    REQUIRE(found == expected);
    REQUIRE(a.earliest() == (expected.empty() ? time_point::max() : expected.begin()->first));
  }
  a.sorted().clear();
}

}  // namespace holdfast::test
