// SPDX-License-Identifier: BSL-1.0
// The places of one client in the queue of a lock: which of them a command shows, and when one is needed.
#include "sync/line/places.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "support/catch.hpp"
#include "support/seeded_random.hpp"

using namespace holdfast;
using namespace holdfast::test;
using detail::places;

namespace {

using numbers = std::vector<int>;

struct queue {
  places of;
  std::set<std::uint8_t> subscribed;

  void join(int waiters = 1) {
    while (waiters-- > 0) of.joined();
    subscribe();
  }
  /// Each place that a waiter has, once.
  void subscribe() {
    for (const auto place : of.wanted())
      if (subscribed.insert(place).second) of.listens(place);
  }
  template <class List>
  static numbers numbers_of(const List& all) {
    return {all.begin(), all.end()};
  }
  numbers wanted() const { return numbers_of(of.wanted()); }
  numbers shows(bool attempting = false) {
    REQUIRE(of.wants_to_show(attempting));
    const auto shown = of.show(attempting);
    return numbers_of(shown.all());
  }
  /// Shows all places, and has the answer.
  numbers settle() {
    auto all = shows();
    of.shown();
    CHECK_FALSE(of.wants_to_show(false));
    return all;
  }
};

}  // namespace

TEST_CASE_METHOD(queue, "the places of a line stand in the order of its waiters") {
  CHECK_FALSE(of.wants_to_show(false));
  join(3);
  CHECK(settle() == numbers{0, 1, 2});
  CHECK(of.standing() == 3);
  join();
  CHECK(settle() == numbers{0, 1, 2, 3});
}

TEST_CASE_METHOD(queue, "a place is shown when it listens, and the places behind it come later") {
  of.joined();
  of.joined();
  of.listens(1);
  CHECK_FALSE(of.wants_to_show(false));
  of.listens(0);
  CHECK(shows() == numbers{0, 1});
}

TEST_CASE_METHOD(queue, "a place that is subscribed again is shown again") {
  join(2);
  settle();
  of.listens(1);
  CHECK(settle() == numbers{0, 1});
}

TEST_CASE_METHOD(queue, "one command is under way, and the latest wish is sent next") {
  join();
  CHECK(shows() == numbers{0});
  join(2);
  CHECK_FALSE(of.wants_to_show(false));
  of.left(1);
  of.shown();
  CHECK(settle() == numbers{0, 2});
}

TEST_CASE_METHOD(queue, "the place of a waiter that leaves goes with it, and its number is free after the answer") {
  join(3);
  settle();
  of.left(1);
  CHECK(wanted() == numbers{0, 2});
  join();
  CHECK(wanted() == numbers{0, 2, 3});
  CHECK(settle() == numbers{0, 2, 3});
  join();
  CHECK(wanted() == numbers{0, 2, 3, 1});
}

TEST_CASE_METHOD(queue, "a place that leaves while it is shown is taken out by the next command") {
  join(2);
  CHECK(shows() == numbers{0, 1});
  of.left(1);
  of.shown();
  CHECK(settle() == numbers{0});
}

TEST_CASE_METHOD(queue, "sixteen waiters have places, and the next one gets the first that is free") {
  join(18);
  CHECK(wanted().size() == 16);
  settle();
  of.taken(0);
  of.left(0);
  CHECK(wanted().back() == 0);
  subscribe();
  const auto all = settle();
  CHECK(all.size() == 16);
  CHECK(all.front() == 1);
  CHECK(all.back() == 0);
  of.left(16);
  CHECK_FALSE(of.wants_to_show(false));
}

TEST_CASE_METHOD(queue, "nothing is shown while the place of the first waiter may be taken by its attempt") {
  join(2);
  settle();
  join();
  CHECK_FALSE(of.wants_to_show(true));
  CHECK(settle() == numbers{0, 1, 2});
}

TEST_CASE_METHOD(queue, "a first waiter whose place was taken is not shown, and the others are") {
  join(3);
  settle();
  of.taken(0);
  of.show_all();
  CHECK(shows(true) == numbers{1, 2});
  of.shown();
  // Its grant counts for nothing, for lack of replicas.
  CHECK(settle() == numbers{0, 1, 2});
}

TEST_CASE_METHOD(queue, "a grant for another place of the client is the first waiter's") {
  join(3);
  settle();
  of.taken(1);
  CHECK(wanted() == numbers{1, 0, 2});
  of.left(0);
  CHECK(wanted() == numbers{0, 2});
  CHECK_FALSE(of.wants_to_show(false));
}

TEST_CASE_METHOD(queue, "a grant that names no place lets the next command show the places again") {
  join(2);
  settle();
  of.taken({});
  of.left(0);
  CHECK(settle() == numbers{1});
}

TEST_CASE_METHOD(queue, "a command without an answer is sent again, and its places may stand") {
  join(2);
  shows();
  of.not_shown(true);
  CHECK(of.may_stand());
  CHECK(of.standing() == 0);
  of.left(1);
  CHECK(settle() == numbers{0});
}

TEST_CASE_METHOD(queue, "a command that has not run has changed nothing") {
  join();
  shows();
  of.not_shown(false);
  CHECK_FALSE(of.may_stand());
  CHECK(shows() == numbers{0});
}

TEST_CASE_METHOD(queue, "a call tells that the place stands") {
  join();
  settle();
  of.taken(0);
  of.left(0);
  CHECK_FALSE(of.may_stand());
  of.called(0);
  CHECK(of.may_stand());
  CHECK(shows().empty());
  of.shown();
  CHECK_FALSE(of.may_stand());
}

TEST_CASE_METHOD(queue, "nothing is shown while all places leave by a release") {
  join(2);
  settle();
  of.left(0);
  of.left(0);
  of.leave();
  join();
  CHECK_FALSE(of.wants_to_show(false));
  CHECK(wanted() == numbers{2});
  SECTION("it has its answer") {
    of.released(false);
    CHECK(settle() == numbers{2});
  }
  SECTION("it is refused") {
    of.released(true);
    CHECK(of.may_stand());
    CHECK(settle() == numbers{2});
  }
}

TEST_CASE("after any events the places settle to those of the waiters, in their order") {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    seeded_random random(seed);
    queue line;
    std::vector<int> server;  // in its order
    std::size_t waiting = 0;
    std::vector<int> shown;
    const auto run = [&] {  // the server executes a command
      std::vector<int> next;
      for (const int place : server)
        if (std::find(shown.begin(), shown.end(), place) != shown.end()) next.push_back(place);
      for (const int place : shown)
        if (std::find(next.begin(), next.end(), place) == next.end()) next.push_back(place);
      server = next;
    };
    const auto answer = [&] {
      run();
      line.of.shown();
    };
    for (int step = 0; step < 60; ++step) {
      switch (random.next() % 6) {
        case 0:
        case 1:
          line.join();
          ++waiting;
          break;
        case 2:
          if (waiting > 0) line.of.left(random.next() % waiting--);
          break;
        case 3:  // a grant for the first place of the client
          if (waiting > 0 && !server.empty()) {
            line.of.taken(static_cast<std::uint8_t>(server.front()));
            server.erase(server.begin());
            line.of.left(0);
            --waiting;
          }
          break;
        case 4:
          if (line.of.shows()) {
            if (random.next() % 4 > 0) {
              answer();
            } else {
              if (random.next() % 2 == 0) run();
              line.of.not_shown(true);
            }
          }
          break;
        default:
          if (line.of.wants_to_show(false)) shown = line.shows();
      }
    }
    if (line.of.shows()) answer();
    line.subscribe();
    while (line.of.wants_to_show(false)) {
      shown = line.shows();
      answer();
      line.subscribe();
    }
    INFO("seed " << seed);
    auto wanted = line.wanted();
    CHECK(wanted.size() == std::min<std::size_t>(waiting, places::most));
    std::sort(wanted.begin(), wanted.end());
    std::sort(server.begin(), server.end());
    CHECK(server == wanted);
  }
}
