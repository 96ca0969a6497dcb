// SPDX-License-Identifier: BSL-1.0
#include "topology/sentinel/sentinel_replies.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/replies.hpp"

using namespace holdfast;
using namespace holdfast::detail;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

redis::reply strings(const std::vector<std::string>& texts) {
  std::vector<redis::reply> elements;
  for (const auto& t : texts) elements.push_back(replies::string(t));
  return replies::array(std::move(elements));
}

redis::reply master(const std::string& port = "6379", const std::string& epoch = "7",
                    const std::string& flags = "master") {
  return strings({"name", "orders", "ip", "10.0.0.1", "port", port, "runid", "ab", "flags", flags, "config-epoch",
                  epoch, "num-other-sentinels", "2", "quorum", "2", "down-after-milliseconds", "5000"});
}

const auto withheld = replies::error("NOPERM this user has no permissions to run the 'sentinel|master' command");

sentinel_answer answer(const redis::reply& first, const redis::reply& second) {
  return read_answer("orders", first, second);
}

}  // namespace

TEST_CASE("a sentinel's word is the address of the second answer and the epoch of the first") {
  const auto said = answer(master(), strings({"10.0.0.2", "6380"}));
  REQUIRE(said.word);
  CHECK(said.word->primary == redis::address{"10.0.0.2", 6380, {}});
  CHECK(said.word->epoch == 7);
  CHECK(said.down_after == 5s);
}

TEST_CASE("a sentinel that withholds the epoch still has a word") {
  const auto said = answer(withheld, strings({"10.0.0.2", "6380"}));
  REQUIRE(said.word);
  CHECK_FALSE(said.word->epoch);
  CHECK_FALSE(said.down_after);
}

TEST_CASE("where the address by name is withheld the map has it, but not during a failover") {
  const auto said = answer(master(), withheld);
  REQUIRE(said.word);
  CHECK(said.word->primary == redis::address{"10.0.0.1", 6379, {}});
  const auto during = answer(master("6379", "8", "master,failover_in_progress"), withheld);
  CHECK_FALSE(during.word);
  CHECK(during.why.code == errc::no_permission);
  CHECK(answer(master("6379", "8", "master,no_failover_in_progress_x"), withheld).word);
}

TEST_CASE("a name that a sentinel does not know is told with the name") {
  const auto unknown = replies::error("ERR No such master with that name");
  for (const auto& said :
       {answer(unknown, replies::nil()), answer(withheld, replies::nil()), answer(unknown, withheld)}) {
    CHECK_FALSE(said.word);
    CHECK(said.why.code == errc::invalid_config);
    CHECK_THAT(said.why.detail, contains_text("orders"));
  }
}

TEST_CASE("a sentinel that asks for a password has no word") {
  const auto noauth = replies::error("NOAUTH Authentication required.");
  const auto said = answer(noauth, noauth);
  CHECK_FALSE(said.word);
  CHECK(said.why.code == errc::auth_failed);
}

TEST_CASE("an address that cannot be one is no word") {
  const std::string long_host(256, 'a');
  const std::vector<redis::reply> bad{
      strings({"10.0.0.2", "0"}),       strings({"10.0.0.2", "65536"}),
      strings({"10.0.0.2", "-1"}),      strings({"10.0.0.2", "6379x"}),
      strings({"10.0.0.2", ""}),        strings({"", "6379"}),
      strings({"a b", "6379"}),         strings({"a\r\nb", "6379"}),
      strings({long_host, "6379"}),     strings({"10.0.0.2"}),
      strings({"10.0.0.2", "1", "2"}),  replies::integer(1),
      replies::string("10.0.0.2:6379"), replies::array({}),
      replies::integers({1, 2}),        replies::array({replies::array({}), replies::nil()})};
  for (std::size_t n = 0; n < bad.size(); ++n) {
    CAPTURE(n);
    const auto said = answer(master(), bad[n]);
    CHECK_FALSE(said.word);
    CHECK(said.why.code == errc::protocol_error);
  }
}

TEST_CASE("a map with odd, missing or senseless fields says less, and breaks nothing") {
  const auto there = strings({"10.0.0.2", "6380"});
  CHECK_FALSE(answer(strings({"config-epoch"}), there).word->epoch);
  CHECK_FALSE(answer(strings({"config-epoch", "-3"}), there).word->epoch);
  CHECK_FALSE(answer(strings({"config-epoch", "99999999999999999999999"}), there).word->epoch);
  CHECK_FALSE(answer(replies::integer(3), there).word->epoch);
  CHECK(answer(strings({"config-epoch", "18446744073709551615"}), there).word->epoch == ~0ULL);
  for (const auto* const senseless : {"0", "-5", "99999999999", "soon"})
    CHECK_FALSE(answer(strings({"down-after-milliseconds", senseless}), there).down_after);
}

TEST_CASE("of the other sentinels those are taken that have a run id and an address, up to a number") {
  const auto one = [](const std::string& run, const std::string& ip, const std::string& port) {
    return strings({"name", run, "ip", ip, "port", port, "runid", run, "flags", "sentinel"});
  };
  const auto told =
      read_sentinels(replies::array({one("a1", "10.0.0.3", "26379"), one("", "10.0.0.4", "26379"),
                                     one("a2", "10.0.0.5", "0"), replies::nil(), strings({"ip"}),
                                     one(std::string(65, 'f'), "10.0.0.6", "1"), one("a3", "::1", "26380")}),
                     32);
  REQUIRE(told.size() == 2);
  CHECK(told[0].run == "a1");
  CHECK(told[0].at == redis::address{"10.0.0.3", 26379, {}});
  CHECK(told[1].at == redis::address{"::1", 26380, {}});
  CHECK(read_sentinels(replies::error("ERR No such master with that name"), 32).empty());
  std::vector<redis::reply> thousand;
  for (int n = 0; n < 1000; ++n) thousand.push_back(one("r" + std::to_string(n), "10.0.0.3", std::to_string(n + 1)));
  CHECK(read_sentinels(replies::array(std::move(thousand)), 32).size() == 32);
}

TEST_CASE("a run id is a short visible text, or none") {
  CHECK(read_run(replies::string("f00d")) == "f00d");
  CHECK(read_run(replies::string("f0 0d")).empty());
  CHECK(read_run(replies::error("ERR Unknown sentinel subcommand 'MYID'")).empty());
  CHECK(read_run(replies::nil()).empty());
}
