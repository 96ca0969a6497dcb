// SPDX-License-Identifier: BSL-1.0
#include "sync/renewal/timing_wheel.hpp"

#include <array>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "sync/claim/claim.hpp"

namespace holdfast::test {
namespace {

using detail::time_point;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

struct entry {
  explicit entry(milliseconds when, int its_number = 0) : put_off_to(when), number(its_number) {}

  time_point when() const noexcept { return at; }
  void settle() noexcept { at = put_off_to; }

  detail::order_hook hook;
  detail::timing_wheel_hook list_hook;
  time_point put_off_to;
  time_point at = put_off_to;
  const int number;
};
struct sooner {
  bool operator()(const entry& a, const entry& b) const noexcept {
    return std::pair(a.at, a.number) < std::pair(b.at, b.number);
  }
};
using of_tree_hooks = detail::timing_wheel<boost::intrusive::mhtraits<entry, detail::order_hook, &entry::hook>, sooner>;
using of_list_hooks =
    detail::timing_wheel<boost::intrusive::mhtraits<entry, detail::timing_wheel_hook, &entry::list_hook>, sooner>;

constexpr auto for_ever = time_point::max();

bool is_in(const of_tree_hooks&, const entry& e) { return e.hook.is_linked(); }
bool is_in(const of_list_hooks&, const entry& e) { return e.list_hook.is_linked(); }

template <class Agenda>
std::vector<const entry*> all_until(Agenda& a, time_point when) {
  std::vector<const entry*> all;
  for (auto* e = a.first_until(when); e; e = a.next_until(*e, when)) all.push_back(e);
  return all;
}
using those = std::vector<const entry*>;

}  // namespace

TEMPLATE_TEST_CASE("an timing_wheel has the soonest first, whichever came first", "", of_tree_hooks, of_list_hooks) {
  entry late(3s), soon(1s), middle(2s);
  TestType a;
  CHECK(a.empty());
  CHECK(a.earliest() == for_ever);
  CHECK(a.first_until(for_ever) == nullptr);
  for (auto* e : {&late, &soon, &middle}) a.insert(*e);
  CHECK(a.size() == 3);
  CHECK(a.earliest() == soon.at);
  CHECK(all_until(a, for_ever) == those{&soon, &middle, &late});
  CHECK(a.earliest() == soon.at);
  for (auto* e : {&late, &soon, &middle}) a.erase(*e);
  CHECK(a.empty());
  CHECK(a.earliest() == for_ever);
}

TEMPLATE_TEST_CASE("an timing_wheel gives what is due until an instant, that instant included, and no more", "",
                   of_tree_hooks, of_list_hooks) {
  entry first(1000ms), second(1001ms), third(1002ms);
  TestType a;
  for (auto* e : {&third, &first, &second}) a.insert(*e);
  CHECK(a.first_until(first.at - 1ns) == nullptr);
  CHECK(all_until(a, first.at) == those{&first});
  CHECK(all_until(a, second.at) == those{&first, &second});
  CHECK(a.next_until(second, third.at - 1ns) == nullptr);
  CHECK(a.next_until(second, third.at) == &third);
}

TEMPLATE_TEST_CASE("what leaves an timing_wheel may leave its instant there, until another is asked for", "",
                   of_tree_hooks, of_list_hooks) {
  entry late(3s), soon(1s);
  TestType a;
  a.insert(late);
  a.insert(soon);
  a.erase(soon);
  CHECK_FALSE(is_in(a, soon));
  CHECK(a.earliest() <= late.at);
  CHECK(a.first_until(late.at - 1ns) == nullptr);
  CHECK(a.earliest() == late.at);
  a.erase(late);
  CHECK(a.earliest() == for_ever);
}

TEMPLATE_TEST_CASE("whatever has left an timing_wheel, it is not asked for that once it was asked for anything", "",
                   of_tree_hooks, of_list_hooks) {
  entry first(1s), second(2s), third(3s), kept(30s);
  TestType a;
  for (auto* e : {&first, &second, &third, &kept}) a.insert(*e);
  for (auto* e : {&first, &second, &third}) a.erase(*e);
  CHECK(a.first_until(first.at) == nullptr);
  CHECK(a.earliest() == kept.at);
}

TEMPLATE_TEST_CASE("what comes to an timing_wheel after the others were put in order has its place, too", "",
                   of_tree_hooks, of_list_hooks) {
  entry first(10ms), second(11ms), third(12ms), zeroth(9ms), last(13ms);
  TestType a;
  a.insert(first);
  a.insert(third);
  CHECK(all_until(a, for_ever).size() == 2);
  a.insert(second);
  a.insert(zeroth);
  CHECK(a.earliest() == zeroth.at);
  a.erase(first);
  CHECK(all_until(a, for_ever) == those{&zeroth, &second, &third});
  a.insert(last);
  CHECK(a.next_until(third, for_ever) == &last);
}

TEMPLATE_TEST_CASE("an timing_wheel may have instants that are hours apart, and in one slot", "", of_tree_hooks,
                   of_list_hooks) {
  entry now(16384ms), in_a_round(2 * 16384ms), tomorrow(16384ms * 5000);  // slots of 16 ms, 1024 of them
  TestType a;
  for (auto* e : {&tomorrow, &in_a_round, &now}) a.insert(*e);
  CHECK(all_until(a, now.at) == those{&now});
  a.erase(now);
  CHECK(a.first_until(in_a_round.at - 1ns) == nullptr);
  CHECK(a.earliest() == in_a_round.at);
  CHECK(all_until(a, for_ever) == those{&in_a_round, &tomorrow});
}

TEMPLATE_TEST_CASE("what was put off while it waited in an timing_wheel has its place by its new instant", "",
                   of_tree_hooks, of_list_hooks) {
  entry put_off(1s), kept(2s);
  TestType a;
  a.insert(put_off);
  a.insert(kept);
  put_off.put_off_to = time_point(3s);
  CHECK(a.first_until(time_point(1s)) == nullptr);
  CHECK(a.earliest() == kept.at);
  CHECK(all_until(a, for_ever) == those{&kept, &put_off});
}

TEMPLATE_TEST_CASE("each of an timing_wheel is visited once, and may leave it then", "", of_tree_hooks, of_list_hooks) {
  entry first(1s), second(2s), third(3s);
  TestType a;
  for (auto* e : {&first, &second, &third}) a.insert(*e);
  CHECK(a.first_until(first.at) == &first);  // in order; the others are not
  std::vector<const entry*> visited;
  a.each([&](entry& e) {
    visited.push_back(&e);
    a.erase(e);
  });
  CHECK(std::set<const entry*>(visited.begin(), visited.end()) == std::set<const entry*>{&first, &second, &third});
  CHECK(visited.size() == 3);
  CHECK(a.empty());
}

TEMPLATE_TEST_CASE("the end of an timing_wheel leaves nothing linked", "", of_tree_hooks, of_list_hooks) {
  entry sorted(1s), in_slot(2s);
  {
    TestType a;
    a.insert(sorted);
    a.insert(in_slot);
    CHECK(a.first_until(sorted.at) == &sorted);
  }
  CHECK_FALSE(sorted.hook.is_linked());
  CHECK_FALSE(in_slot.hook.is_linked());
  CHECK_FALSE(sorted.list_hook.is_linked());
  CHECK_FALSE(in_slot.list_hook.is_linked());
}

TEMPLATE_TEST_CASE("an timing_wheel is a set in order, whatever comes and goes", "", of_tree_hooks, of_list_hooks) {
  std::mt19937 dice(7);
  std::vector<std::unique_ptr<entry>> all;
  const std::array steps{1ms, 7ms, 300ms, 16'384ms};
  for (int i = 0; i < 60; ++i)
    all.push_back(std::make_unique<entry>(static_cast<int>(dice() % 20) * steps[dice() % steps.size()], i));
  TestType a;
  std::set<std::pair<time_point, int>> expected;
  for (int step = 0; step < 20'000; ++step) {
    auto& e = *all[dice() % all.size()];
    const std::pair key(e.at, e.number);
    if (is_in(a, e)) {
      a.erase(e);
      expected.erase(key);
    } else {
      a.insert(e);
      expected.insert(key);
    }
    REQUIRE(a.size() == expected.size());
    if (!expected.empty()) REQUIRE(a.earliest() <= expected.begin()->first);
    if (step % 7 != 0) continue;
    const auto until = all[dice() % all.size()]->at;
    std::vector<std::pair<time_point, int>> found;
    for (const auto* s : all_until(a, until)) found.emplace_back(s->at, s->number);
    const auto end = expected.upper_bound({until, static_cast<int>(all.size())});
    REQUIRE(found == std::vector(expected.begin(), end));
    if (end != expected.end()) REQUIRE(a.earliest() <= end->first);
  }
}

}  // namespace holdfast::test
