// SPDX-License-Identifier: BSL-1.0
#include "topology/sentinel/sentinel_resolver.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace holdfast;
using namespace holdfast::detail;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

redis::address server(char name) { return {std::string(1, name), 6379, {}}; }
redis::address seat(int n) { return {"s" + std::to_string(n), 26379, {}}; }

/// Three sentinels, or as many, and a clock of its own.
struct council {
  explicit council(int size = 3, bool strict = false, reach_by reach = {})
      : resolver("orders", seats(size), strict, std::move(reach)) {
    resolver.start(now);
  }
  static std::vector<redis::address> seats(int size) {
    std::vector<redis::address> all;
    for (int n = 0; n < size; ++n) all.push_back(seat(n));
    return all;
  }

  void say(sentinel_resolver::sentinel_id who, char where, std::optional<std::uint64_t> epoch) {
    resolver.replied(who, {.word = sentinel_word{server(where), epoch}, .why = {}, .down_after = {}}, now);
  }
  void all_say(char where, std::optional<std::uint64_t> epoch) {
    for (const auto& s : resolver.known()) say(s.id, where, epoch);
  }
  void refuse(sentinel_resolver::sentinel_id who, errc code, const std::string& detail) {
    resolver.replied(who, {.word = {}, .why = {code, detail}, .down_after = {}}, now);
  }
  void fail(sentinel_resolver::sentinel_id who) { resolver.failed(who, {errc::unreachable, "refused"}, now); }
  void pass(lease_clock::duration by) {
    now += by;
    resolver.look(now);
  }
  char target() const { return resolver.target() ? resolver.target()->host[0] : '-'; }
  std::vector<sentinel_resolver::sentinel_id> asked() {
    std::vector<sentinel_resolver::sentinel_id> ids;
    for (const auto& q : resolver.take_due(now)) ids.push_back(q.whom);
    return ids;
  }
  std::size_t size() const { return resolver.known().size(); }

  time_point now = time_point{} + 1h;
  sentinel_resolver resolver;
};
using ids = std::vector<sentinel_resolver::sentinel_id>;

}  // namespace

// The primary.

TEST_CASE("before the first word there is no primary") {
  council c;
  CHECK(c.target() == '-');
  CHECK_FALSE(c.resolver.open(c.now));
  CHECK_FALSE(c.resolver.trusted(c.now));
}

TEST_CASE("one sentinel with a newer epoch wins over two with an older one") {
  council c;
  c.all_say('A', 0);
  CHECK(c.target() == 'A');
  c.say(2, 'B', 1);
  CHECK(c.target() == 'B');
  c.say(0, 'A', 0);
  CHECK(c.target() == 'B');
}

TEST_CASE("an older epoch is never followed, also when whoever told the newest is gone") {
  council c;
  c.all_say('A', 0);
  c.say(2, 'B', 1);
  for (int s = 0; s < 9; ++s) {
    c.pass(1s);
    c.fail(2);
    c.say(0, 'A', 0);
    c.say(1, 'A', 0);
    CHECK(c.target() == 'B');
  }
}

TEST_CASE("an older epoch that all known sentinels agree on for ten seconds is followed") {
  council c;
  c.all_say('B', 9);
  for (int s = 0; s <= 10; ++s) {
    CHECK(c.target() == 'B');
    c.pass(1s);
    c.all_say('A', 2);
  }
  CHECK(c.target() == 'A');
  c.say(1, 'C', 3);
  CHECK(c.target() == 'C');
}

TEST_CASE("one that has never spoken does not hinder the agreement on an older epoch, but half of them are too few") {
  const int size = GENERATE(4, 6);
  council c(size);
  c.say(0, 'A', 7);
  c.fail(3);
  for (int seconds = 0; seconds < 12; ++seconds) {
    for (const auto who : {0u, 1u, 2u}) c.say(who, 'B', 0);
    c.pass(1s);
  }
  CHECK(c.target() == (size == 4 ? 'B' : 'A'));
}

TEST_CASE("an agreement on an older epoch begins anew when one is silent or of another mind") {
  council c;
  c.all_say('B', 9);
  const bool silent = GENERATE(false, true);
  for (int s = 0; s < 25; ++s) {
    c.pass(1s);
    c.say(0, 'A', 2);
    c.say(1, 'A', 2);
    if (s % 8 != 7 && !silent) c.say(2, 'A', 2);
    if (s % 8 == 7) c.say(2, 'B', 9);
    CHECK(c.target() == 'B');
  }
}

TEST_CASE("of one epoch's addresses the one in use stays, and of new ones that of most is taken") {
  council c;
  c.say(0, 'A', 4);
  c.say(1, 'B', 4);
  c.say(2, 'B', 4);
  CHECK(c.target() == 'A');  // two were enough to begin with
  council d;
  d.resolver.replied(0, {.word = sentinel_word{server('C'), 4}, .why = {}, .down_after = {}}, d.now);
  CHECK(d.target() == 'C');
  CHECK_FALSE(d.resolver.ready());
  d.say(1, 'A', 5);
  d.pass(1s);
  d.say(2, 'B', 5);
  CHECK(d.target() == 'A');
}

TEST_CASE("without epochs more than half of the known sentinels change the address") {
  council c;
  c.all_say('A', std::nullopt);
  CHECK(c.target() == 'A');
  c.say(0, 'B', std::nullopt);
  CHECK(c.target() == 'A');
  c.pass(4s);
  c.say(0, 'B', std::nullopt);
  CHECK(c.target() == 'A');  // the others are silent, and one of three is no majority
  c.say(1, 'B', std::nullopt);
  CHECK(c.target() == 'B');
}

TEST_CASE("where some withhold the epoch the newest is followed, unless more than half without say otherwise") {
  council c;
  c.say(0, 'A', 3);
  c.say(1, 'A', std::nullopt);
  CHECK(c.target() == 'A');
  c.say(0, 'B', 4);
  CHECK(c.target() == 'B');
  c.say(1, 'C', std::nullopt);
  CHECK(c.target() == 'B');
  c.say(2, 'C', std::nullopt);
  CHECK(c.target() == 'C');
}

TEST_CASE("a word counts for three seconds, and the last address stays") {
  council c;
  c.all_say('A', 1);
  c.pass(3s);
  CHECK(c.resolver.trusted(c.now));
  c.pass(1ns);
  CHECK_FALSE(c.resolver.trusted(c.now));
  CHECK(c.target() == 'A');
  CHECK(c.resolver.open(c.now));
}

TEST_CASE("a server that is no primary is left alone for 200 ms, and no older one is taken instead") {
  council c;
  c.all_say('A', 1);
  c.say(0, 'B', 2);
  c.resolver.refused(server('B'), c.now);
  CHECK(c.target() == 'B');
  CHECK_FALSE(c.resolver.open(c.now));
  CHECK(c.resolver.next_look(c.now) == c.now + 200ms);
  c.pass(199ms);
  CHECK_FALSE(c.resolver.open(c.now));
  c.pass(1ms);
  CHECK(c.resolver.open(c.now));
}

TEST_CASE("a newer word is followed at once while an older address is shunned") {
  council c;
  c.all_say('A', 1);
  c.resolver.refused(server('A'), c.now);
  c.say(0, 'B', 2);
  CHECK(c.resolver.open(c.now));
  CHECK(c.target() == 'B');
}

TEST_CASE("an address that is no primary, though the sentinels name it, is told as such") {
  council c;
  c.all_say('A', 1);
  c.resolver.refused(server('A'), c.now);
  CHECK(c.resolver.trouble(c.now).code == errc::unreachable);
  CHECK_THAT(c.resolver.trouble(c.now).detail, contains_text("redis://A:6379: no primary at present"));
}

TEST_CASE("a strict client has no way to the primary without fresh words of more than half") {
  council c(3, true);
  c.say(0, 'A', 1);
  c.pass(500ms);
  CHECK(c.resolver.ready());
  CHECK_FALSE(c.resolver.open(c.now));
  c.say(1, 'A', 1);
  CHECK(c.resolver.open(c.now));
  c.pass(3s + 1ns);
  CHECK_FALSE(c.resolver.open(c.now));
  CHECK(c.target() == 'A');
}

TEST_CASE("two of four are no majority") {
  council c(4, true);
  c.say(0, 'A', 1);
  c.say(1, 'A', 1);
  CHECK_FALSE(c.resolver.trusted(c.now));
  c.say(2, 'A', 1);
  CHECK(c.resolver.trusted(c.now));
}

TEST_CASE("the address that is told is translated where it enters, and so is a sentinel's") {
  council c(1, false, [](const redis::address& told) {
    return told == server('A') ? redis::address{"nat", 16379, {}} : redis::address{"of " + told.host, 1, {}};
  });
  c.say(0, 'A', 1);
  CHECK(c.resolver.target() == redis::address{"nat", 16379, {}});
  c.resolver.listed({{"r1", seat(1)}}, c.now);
  CHECK(c.resolver.known()[0].at == seat(0));  // as it was given
  CHECK(c.resolver.known()[1].at.host == "of s1");
}

// The first round.

TEST_CASE("nobody is sent anywhere by the first of three answers, which may be a stale one") {
  council c;
  c.say(0, 'A', 0);
  CHECK_FALSE(c.resolver.ready());
  SECTION("another one makes a majority") {
    c.say(1, 'B', 1);
    CHECK(c.resolver.ready());
    CHECK(c.target() == 'B');
  }
  SECTION("or the others cannot be reached") {
    c.resolver.down(1, {errc::unreachable, "refused"}, c.now);
    CHECK_FALSE(c.resolver.ready());
    c.fail(2);
    CHECK(c.resolver.open(c.now));
  }
  SECTION("or a quarter of a second is over") {
    CHECK(c.resolver.next_look(c.now) == c.now + 250ms);
    c.pass(250ms);
    CHECK(c.resolver.open(c.now));
  }
}

TEST_CASE("after a pause the sentinels are heard first") {
  council c;
  c.all_say('A', 0);
  c.resolver.stop();
  CHECK_FALSE(c.resolver.next_look(c.now));
  c.now += 1h;
  c.resolver.start(c.now);
  CHECK_FALSE(c.resolver.ready());
  CHECK(c.asked() == ids{0, 1, 2});
  c.say(0, 'B', 1);
  c.say(1, 'B', 1);
  CHECK(c.resolver.open(c.now));
  CHECK(c.target() == 'B');
}

TEST_CASE("after a pause without an answer the last primary is used, but not by a strict client") {
  const bool strict = GENERATE(false, true);
  council c(3, strict);
  c.all_say('A', 0);
  c.resolver.stop();
  c.now += 1h;
  c.resolver.start(c.now);
  for (int n = 0; n < 3; ++n) c.fail(static_cast<sentinel_resolver::sentinel_id>(n));
  CHECK(c.resolver.ready());
  CHECK(c.resolver.open(c.now) != strict);
}

TEST_CASE("a pause no longer than that between two questions is none") {
  council c;
  c.all_say('A', 0);
  c.resolver.stop();
  c.now += 1s;
  c.resolver.start(c.now);
  CHECK(c.resolver.ready());
}

// Questions.

TEST_CASE("a sentinel is asked at once, after news, and each second") {
  council c;
  CHECK(c.asked() == ids{0, 1, 2});
  CHECK(c.asked().empty());
  c.all_say('A', 0);
  CHECK(c.asked().empty());
  c.resolver.ask_soon(1, c.now);
  CHECK(c.asked() == ids{1});
  c.say(1, 'A', 0);
  CHECK(c.asked().empty());
  c.pass(1s);
  CHECK(c.asked() == ids{0, 1, 2});
  c.resolver.listed({{"r9", seat(9)}}, c.now);
  CHECK(c.asked() == ids{3});
}

TEST_CASE("news during a question lead to another one, since its answer may be older") {
  council c;
  CHECK(c.asked() == ids{0, 1, 2});
  c.resolver.ask_soon(1, c.now);
  CHECK(c.asked().empty());
  c.say(1, 'A', 0);
  CHECK(c.asked() == ids{1});
}

TEST_CASE("a sentinel that does not answer is asked no faster than the others, and never twice at once") {
  council c(1);
  std::size_t questions = 0;
  for (int ms = 0; ms < 10'000; ms += 10) {
    c.pass(10ms);
    questions += c.asked().size();
    if (ms % 50 == 0) c.fail(0);
  }
  CHECK(questions == 10);
}

TEST_CASE("nobody is asked while nobody needs the primary") {
  council c;
  c.resolver.stop();
  c.pass(10s);
  c.resolver.ask_all_soon(c.now);
  CHECK(c.asked().empty());
}

TEST_CASE("the others are asked for with the first and with each tenth question") {
  council c(1);
  std::string kinds;
  for (int n = 0; n < 12; ++n) {
    c.pass(1s);
    for (const auto& q : c.resolver.take_due(c.now)) kinds += q.for_others ? 'L' : 'q';
    c.say(0, 'A', 0);
  }
  CHECK(kinds == "LqqqqqqqqqLq");
}

// Which sentinels there are.

TEST_CASE("sentinels are learnt by their run ids, and one that has moved is another one") {
  council c(1);
  c.resolver.listed({{"r1", seat(1)}, {"r2", seat(2)}, {"r1", seat(1)}}, c.now);
  CHECK(c.size() == 3);
  c.resolver.listed({{"r1", seat(7)}}, c.now);
  REQUIRE(c.size() == 3);
  CHECK(c.resolver.known()[1].at == seat(2));
  CHECK(c.resolver.known()[2].at == seat(7));
  CHECK(c.resolver.known()[2].id == 3);
}

TEST_CASE("one that was given and has moved is followed to its new address, and counts there alone") {
  council c;
  c.all_say('A', 1);
  for (const auto who : {0u, 1u, 2u}) c.resolver.identified(who, "run" + std::to_string(who));
  const std::vector<listed_sentinel> moved{{"run0", seat(10)}, {"run1", seat(11)}};
  c.resolver.listed(moved, c.now);
  CHECK(c.size() == 3);  // they speak: known by another address
  c.pass(4s);
  c.say(2, 'A', 1);
  c.fail(0);
  c.fail(1);
  c.resolver.listed(moved, c.now);
  REQUIRE(c.size() == 5);
  CHECK_FALSE(c.resolver.trusted(c.now));
  const auto known = c.resolver.known();
  for (const auto& s : known)
    if (s.at == seat(10)) c.say(s.id, 'B', 2);
  CHECK(c.target() == 'B');
  CHECK(c.resolver.trusted(c.now));  // two of three

  c.resolver.identified(0, "run9");  // another one, at an old address
  c.say(0, 'B', 2);
  for (const auto& s : known)
    if (s.at == seat(11)) c.say(s.id, 'B', 2);
  CHECK(c.size() == 5);
  CHECK(c.resolver.trusted(c.now));
}

TEST_CASE("one that has moved and is named no more counts where it was given") {
  council c(3, true);
  c.all_say('A', 1);
  for (const auto who : {0u, 1u, 2u}) c.resolver.identified(who, "run" + std::to_string(who));
  c.pass(4s);
  c.fail(0);
  c.fail(1);
  c.resolver.listed({{"run0", seat(10)}, {"run1", seat(11)}}, c.now);
  REQUIRE(c.size() == 5);
  c.pass(31s);
  c.say(2, 'A', 1);
  c.resolver.listed({}, c.now);
  CHECK(c.size() == 3);
  CHECK_FALSE(c.resolver.trusted(c.now));  // one of three
}

TEST_CASE("one that was given by another address is known once it has said who it is") {
  council c(1);
  c.resolver.listed({{"me", {"10.0.0.1", 26379, {}}}, {"r2", seat(2)}}, c.now);
  CHECK(c.size() == 3);
  c.resolver.identified(0, "me");
  CHECK(c.size() == 2);
  c.resolver.listed({{"me", {"10.0.0.1", 26379, {}}}}, c.now);
  CHECK(c.size() == 2);
  CHECK(c.resolver.known()[0].at == seat(0));
  c.resolver.identified(0, "");
  CHECK(c.size() == 2);
}

TEST_CASE("another sentinel at a known address is not another address") {
  council c(1);
  c.resolver.listed({{"r1", seat(1)}, {"r2", seat(2)}}, c.now);
  c.resolver.listed({{"r3", seat(1)}, {"r1", seat(2)}, {"r4", seat(0)}}, c.now);
  auto known = c.resolver.known();
  REQUIRE(known.size() == 3);
  std::vector<redis::address> at;
  for (const auto& s : known) at.push_back(s.at);
  std::sort(at.begin(), at.end());
  CHECK(at == std::vector{seat(0), seat(1), seat(2)});
}

TEST_CASE("one that is learnt and named no more is forgotten, one that was given never") {
  council c(2);
  c.resolver.listed({{"r2", seat(2)}}, c.now);
  CHECK(c.size() == 3);
  c.pass(31s);
  c.resolver.listed({}, c.now);
  CHECK(c.size() == 2);
}

TEST_CASE("one that speaks is not forgotten, nor is one by a pause") {
  council c(2);
  c.resolver.listed({{"r2", seat(2)}, {"r3", seat(3)}}, c.now);
  c.pass(20s);
  c.say(2, 'A', 0);
  c.pass(20s);
  c.resolver.listed({}, c.now);
  CHECK(c.size() == 3);
  c.resolver.stop();
  c.now += 1h;
  c.resolver.start(c.now);
  c.resolver.listed({}, c.now);
  CHECK(c.size() == 3);
}

TEST_CASE("a thousand sentinels are thirty-two, among them all that were given") {
  council c(3);
  std::vector<listed_sentinel> crowd;
  for (int n = 0; n < 1000; ++n) crowd.push_back({"r" + std::to_string(n), seat(100 + n)});
  for (int times = 0; times < 3; ++times) c.resolver.listed(crowd, c.now);
  CHECK(c.size() == sentinel_resolver::most_known);
  CHECK(c.resolver.known()[2].at == seat(2));
  c.all_say('A', 1);
  CHECK(c.target() == 'A');
  CHECK(council(40).size() == sentinel_resolver::most_known);
}

TEST_CASE("a word of a sentinel that is known no more is nobody's") {
  council c(1);
  c.say(17, 'B', 9);
  c.fail(17);
  c.resolver.ask_soon(17, c.now);
  c.resolver.identified(17, "x");
  CHECK(c.target() == '-');
}

// Bad words: the last good one counts.

TEST_CASE("what is no word leaves the primary as it was") {
  council c(1);
  c.say(0, 'A', 5);
  SECTION("garbage") { c.refuse(0, errc::protocol_error, "no address of a primary"); }
  SECTION("it does not know the name any more") { c.refuse(0, errc::invalid_config, "no primary of the name orders"); }
  SECTION("an older epoch that names a replica") { c.say(0, 'R', 4); }
  SECTION("no epoch any more, and a replica") { c.say(0, 'A', std::nullopt); }
  SECTION("no answer") { c.fail(0); }
  CHECK(c.target() == 'A');
  CHECK(c.resolver.open(c.now));
}

TEST_CASE("a sentinel that names a replica in the epoch in use is not followed while another names the primary") {
  council c;
  c.all_say('A', 5);
  c.say(1, 'R', 5);
  c.say(2, 'R', 5);
  CHECK(c.target() == 'A');
}

// What is told.

TEST_CASE("without words of more than half for three seconds the sentinels are unreachable") {
  council c;
  SECTION("from the beginning") {
    c.pass(2999ms);
    CHECK_FALSE(c.resolver.unreachable(c.now));
    CHECK(c.resolver.next_look(c.now) <= c.now + 1ms);
    c.pass(1ms);
    CHECK(c.resolver.unreachable(c.now));
    c.all_say('A', 0);
    CHECK_FALSE(c.resolver.unreachable(c.now));
  }
  SECTION("after they have spoken") {
    c.all_say('A', 0);
    c.pass(3s);
    CHECK_FALSE(c.resolver.unreachable(c.now));
    c.pass(1ns);
    CHECK(c.resolver.unreachable(c.now));
  }
  SECTION("a pause does not count") {
    c.all_say('A', 0);
    c.resolver.stop();
    c.pass(1h);
    CHECK_FALSE(c.resolver.unreachable(c.now));
    c.resolver.start(c.now);
    CHECK_FALSE(c.resolver.unreachable(c.now));
    c.pass(3s);
    CHECK(c.resolver.unreachable(c.now));
  }
}

TEST_CASE("while no sentinel answers the text has each of them and its cause") {
  council c;
  c.fail(0);
  c.resolver.down(1, {errc::unreachable, "redis://s1:26379: connection refused"}, c.now);
  CHECK_FALSE(c.resolver.hopeless(c.now));
  const auto why = c.resolver.trouble(c.now);
  CHECK(why.code == errc::unreachable);
  CHECK(why.detail ==
        "no sentinel names the primary orders: refused; redis://s1:26379: connection refused; redis://s2:26379: no "
        "answer yet");
  c.fail(2);
  CHECK(c.resolver.hopeless(c.now));
}

TEST_CASE("a name that all who answer do not know is a wrong setting") {
  council c;
  c.refuse(0, errc::invalid_config, "no primary of the name orders");
  c.fail(1);
  c.refuse(2, errc::invalid_config, "no primary of the name orders");
  CHECK(c.resolver.hopeless(c.now));
  CHECK(c.resolver.trouble(c.now).code == errc::invalid_config);
  CHECK_THAT(c.resolver.trouble(c.now).detail, contains_text("redis://s2:26379: no primary of the name orders"));
  c.say(1, 'A', 0);
  CHECK_FALSE(c.resolver.hopeless(c.now));
  CHECK(c.target() == 'A');
}

TEST_CASE("a password that is asked for is told by the name of its setting") {
  council c(2);
  c.resolver.failed(0, {errc::auth_failed, "redis://s0:26379: NOAUTH Authentication required."}, c.now);
  c.resolver.failed(1, {errc::auth_failed, "redis://s1:26379: NOAUTH Authentication required."}, c.now);
  CHECK(c.resolver.trouble(c.now).code == errc::auth_failed);
  CHECK_THAT(c.resolver.trouble(c.now).detail, contains_text("sentinel.password"));
}

TEST_CASE("where those that answer disagree, or there was a primary, it is an outage") {
  council c(2);
  c.refuse(0, errc::invalid_config, "no primary of the name orders");
  c.resolver.failed(1, {errc::auth_failed, "NOAUTH"}, c.now);
  CHECK(c.resolver.trouble(c.now).code == errc::unreachable);
  council d(1);
  d.say(0, 'A', 0);
  d.pass(4s);
  d.refuse(0, errc::invalid_config, "no primary of the name orders");
  CHECK(d.resolver.trouble(d.now).code == errc::unreachable);
}

TEST_CASE("a name is escaped in texts") {
  sentinel_resolver resolver("a\r\nb", {seat(0)}, false, [](const auto& a) { return a; });
  CHECK_THAT(resolver.trouble({}).detail, contains_text("a\\x0d\\x0ab"));
}
