// SPDX-License-Identifier: BSL-1.0
#include "sync/line/queue_place.hpp"

#include <algorithm>
#include <chrono>

#include "support/catch.hpp"
#include "support/seeded_random.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::queue_place;
using detail::standing;
using heed = queue_place::heed;
using message = queue_place::message;

namespace {

queue_place at(std::uint8_t rank) {
  queue_place place;
  place.sends(true);
  place.busy(rank);
  return place;
}

}  // namespace

TEST_CASE("a client that does not wait, or does not listen yet, asks for no place") {
  queue_place place;
  CHECK(place.sends(false) == standing::none);
  CHECK_FALSE(place.stands());
}

TEST_CASE("a client counts as standing from the moment when it asks for a place, answered or not") {
  queue_place place;
  CHECK(place.sends(true) == standing::last);
  CHECK(place.stands());
  CHECK(place.sends(false) == standing::none);
  CHECK(place.stands());
}

TEST_CASE("a client stands no more after its grant, and after a release that takes it out") {
  const bool granted = GENERATE(true, false);
  auto place = at(3);
  place.called();
  granted ? place.granted() : place.leaves();
  CHECK_FALSE(place.stands());
  CHECK(place.sends(true) == standing::last);
  CHECK(place.heard(message::write_ended, true) == heed::later);  // of no rank
}

TEST_CASE("a called client asks once for the front, also after an attempt that was under way") {
  auto place = at(2);
  place.called();
  place.busy(1);
  CHECK(place.sends(true) == standing::front);
  CHECK(place.sends(true) == standing::last);
}

TEST_CASE("a call outlives an attempt that asks for no place") {
  queue_place place;
  place.called();
  CHECK(place.sends(false) == standing::none);
  CHECK(place.sends(true) == standing::front);
}

TEST_CASE("a reader asks after each message") {
  const auto what = GENERATE(message::read_ended, message::write_ended);
  CHECK(at(5).heard(what, false) == heed::now);
}

TEST_CASE("a client that does not stand yet asks after each message") {
  const auto what = GENERATE(message::read_ended, message::write_ended);
  CHECK(queue_place().heard(what, true) == heed::now);
}

TEST_CASE("the first writer asks after the last reader, and later after a write") {
  CHECK(at(0).heard(message::read_ended, true) == heed::now);
  CHECK(at(0).heard(message::write_ended, true) == heed::later);
}

TEST_CASE("a writer behind others waits until it is called") {
  const auto what = GENERATE(message::read_ended, message::write_ended);
  CHECK(at(1).heard(what, true) == heed::never);
}

TEST_CASE("a writer of unknown rank counts as the first") {
  auto place = at(4);
  place.busy(std::nullopt);
  CHECK(place.heard(message::read_ended, true) == heed::now);
}

TEST_CASE("when another client is called, each reader and the writer that is next now ask later") {
  CHECK(at(5).heard(message::other_called, false) == heed::later);
  auto place = at(2);
  CHECK(place.heard(message::other_called, true) == heed::never);
  CHECK(place.heard(message::other_called, true) == heed::later);
  CHECK(place.heard(message::write_ended, true) == heed::later);
}

TEST_CASE("dead clients that leave the queue before the called one count as well") {
  auto place = at(5);
  CHECK(place.heard({message::other_called, 3}, true) == heed::never);
  CHECK(place.heard({message::other_called, 2}, true) == heed::later);
  CHECK(place.heard({message::other_called, 8}, true) == heed::later);
}

TEST_CASE("after an own release a client without a place asks, and one that stands is called") {
  const std::uint64_t others = GENERATE(0, 2);
  CHECK(queue_place().released(others) == heed::now);
  CHECK(at(0).released(others) == heed::never);
}

TEST_CASE("after a write that put the client there again it asks at once if nobody else waits, and else later") {
  auto place = at(7);
  place.granted();
  place.stands_again();
  CHECK(place.stands());
  SECTION("alone") { CHECK(place.released(0) == heed::now); }
  SECTION("behind others") { CHECK(place.released(1) == heed::later); }
  CHECK(place.released(0) == heed::never);  // of another release
}

TEST_CASE("a called client has ten round trips to come, 20 to 200 ms, and the pause is one and a half to two of it") {
  fixed_random least;
  seeded_random any{1};
  queue_place place;
  const auto check = [&](std::chrono::nanoseconds round_trip, std::chrono::milliseconds reserve) {
    place.took(round_trip);
    CHECK(place.reserve() == reserve);
    CHECK(place.pause(least) == reserve * 3 / 2);
    auto longest = std::chrono::nanoseconds::zero();
    for (int i = 0; i < 1000; ++i) longest = std::max(longest, place.pause(any));
    CHECK(longest <= 2 * reserve);
    CHECK(longest > reserve * 19 / 10);
  };
  CHECK(place.reserve() == 20ms);
  check(100us, 20ms);
  check(2ms, 20ms);
  check(3ms, 30ms);
  check(1min, 200ms);
  check(1ms, 20ms);
}
