// SPDX-License-Identifier: BSL-1.0
#include "support/replies.hpp"

#include <limits>
#include <string>

#include "protocol/kind.hpp"
#include "protocol/replies.hpp"
#include "support/catch.hpp"

using namespace holdfast;
using namespace holdfast::detail;
using namespace std::chrono_literals;
namespace replies = holdfast::test::replies;

namespace {

constexpr auto most = std::numeric_limits<long long>::max();
constexpr auto least = std::numeric_limits<long long>::min();

error_code code_of(std::string_view text) { return classify(text).code; }

// What no script of ours answers.
const redis::reply strange[] = {replies::ok(), replies::string("1"), replies::array({}), replies::integers({1}),
                                replies::integer(least)};

template <class T>
void check_unexpected(const answer<T>& a) {
  REQUIRE(a.failed);
  CHECK(a.failed->code == errc::protocol_error);
  CHECK_FALSE(a.failed->mends_itself());
}

}  // namespace

TEST_CASE("acquire answers nil or the holder's TTL") {
  using kind = acquire_answer::kind;
  CHECK(read_acquire(replies::nil()).value.type == kind::acquired);
  const auto busy = read_acquire(replies::integer(1500));
  CHECK(busy.value.type == kind::busy);
  CHECK(busy.value.holder_ttl == 1500ms);
  CHECK(read_acquire(replies::integer(0)).value.type == kind::busy);
  CHECK(read_acquire(replies::integer(-1)).value.type == kind::busy_without_ttl);
  for (const auto& r : strange)
    if (r.type != redis::reply::kind::integer) check_unexpected(read_acquire(r));
}

TEST_CASE("a busy reply below -1 is the TTL of a holder that is no holdfast client") {
  for (const auto read : {read_acquire, read_acquire_fenced}) {
    const auto other = read(replies::integer(-1502));
    CHECK(other.value.type == acquire_answer::kind::busy);
    CHECK(other.value.holder_ttl == 1500ms);
    CHECK(other.value.barging);
    CHECK(read(replies::integer(-2)).value.holder_ttl == 0ms);
    CHECK(read(replies::integer(least)).value.holder_ttl == 24h);
    CHECK_FALSE(read(replies::integer(1500)).value.barging);
  }
}

TEST_CASE("a holder is its field and its count and its TTL") {
  const auto held = [](auto... parts) { return read_holder(replies::array({parts...})); };
  const auto one = held(replies::string("u:7"), replies::string("2"), replies::integer(1500));
  REQUIRE(one.value);
  CHECK(one.value->field == "u:7");
  CHECK(one.value->count == 2);
  CHECK(one.value->ttl == 1500ms);
  CHECK(held(replies::string("u:7"), replies::string("1"), replies::integer(-1)).value->ttl == milliseconds::max());
  const auto free = read_holder(replies::nil());
  CHECK_FALSE(free.failed);
  CHECK_FALSE(free.value);
  check_unexpected(held(replies::string("u:7"), replies::string("1"), replies::integer(-2)));
  check_unexpected(held(replies::string("u:7"), replies::nil(), replies::integer(1)));
  check_unexpected(held(replies::integer(7), replies::string("1"), replies::integer(1)));
  check_unexpected(held(replies::string("u:7"), replies::string("1"), replies::string("1500")));
  check_unexpected(held(replies::string("u:7"), replies::string("1")));
  for (const auto& r : {replies::integer(0), replies::integer(1)}) check_unexpected(read_holder(r));
  for (const auto& r : strange) check_unexpected(read_holder(r));
}

TEST_CASE("a lock of several fields or of a count that is no number has no holder that we know") {
  const auto count = replies::array({replies::string("u:7"), replies::string("many"), replies::integer(1)});
  for (const auto& r : {replies::integer(2), count}) {
    const auto said = read_holder(r);
    REQUIRE(said.failed);
    CHECK(said.failed->code == errc::corrupt_lock);
  }
}

TEST_CASE("a holder's TTL beyond what a lock may have is cut to that") {
  CHECK(read_acquire(replies::integer(24LL * 3600 * 1000 + 1)).value.holder_ttl == 24h);
  CHECK(read_acquire(replies::integer(most)).value.holder_ttl == 24h);
}

TEST_CASE("a fenced acquire is a token or a busy reply") {
  using kind = acquire_answer::kind;
  const auto granted = read_acquire_fenced(replies::integers({1795249141231037}));
  REQUIRE_FALSE(granted.failed);
  CHECK(granted.value.type == kind::acquired);
  CHECK(granted.value.token == 1795249141231037U);
  const auto in_block = read_acquire_fenced(replies::integers({1795249141231037, 999}));
  CHECK_FALSE(in_block.failed);
  CHECK(in_block.value.token == 1795249141231037U);
  CHECK(in_block.value.spare_tokens == 999);
  for (const auto wrong : {-1LL, 65'536LL}) check_unexpected(read_acquire_fenced(replies::integers({1, wrong})));
  check_unexpected(read_acquire_fenced(replies::integers({1, 2, 3})));
  check_unexpected(read_acquire_fenced(replies::integers({9007199254740990, 2})));
  CHECK(read_acquire_fenced(replies::integer(1500)).value.holder_ttl == 1500ms);
  CHECK(read_acquire_fenced(replies::integer(-1)).value.type == kind::busy_without_ttl);
  for (const auto& r : {replies::nil(), replies::integers({}), replies::integers({0}), replies::integers({-7}),
                        replies::integers({0, 2}), replies::integers({9007199254740992})})
    check_unexpected(read_acquire_fenced(r));
  CHECK(read_acquire_fenced(replies::error("HOLDFAST invalid token")).failed->code == errc::corrupt_lock);
}

TEST_CASE("an acquire of any answers the number of one, from 1, or 0") {
  CHECK(read_acquire_any(replies::integer(1), 2).value.number == 0U);
  CHECK(read_acquire_any(replies::integer(2), 2).value.number == 1U);
  CHECK_FALSE(read_acquire_any(replies::integer(0), 2).value.number);
  for (const auto& r : {replies::integer(3), replies::integer(-1), replies::nil(), replies::integers({1, 7})})
    check_unexpected(read_acquire_any(r, 2));
  for (const auto& r : strange) check_unexpected(read_acquire_any(r, 2));
}

TEST_CASE("a fenced acquire of any answers a number and a token, or 0") {
  const auto granted = read_acquire_any_fenced(replies::integers({2, 7}), 2);
  CHECK(granted.value.number == 1U);
  CHECK(granted.value.token == 7U);
  const auto busy = read_acquire_any_fenced(replies::integer(0), 2);
  CHECK_FALSE(busy.failed);
  CHECK_FALSE(busy.value.number);
  CHECK_FALSE(busy.value.token);
  for (const auto& r :
       {replies::integer(1), replies::integers({3, 7}), replies::integers({0, 7}), replies::integers({1, 0}),
        replies::integers({1, 9007199254740992}), replies::integers({1}), replies::integers({1, 2, 3}), replies::nil()})
    check_unexpected(read_acquire_any_fenced(r, 2));
}

TEST_CASE("an acquire of all answers nil, or which is busy and why") {
  CHECK_FALSE(read_acquire_all(replies::nil(), 2).failed);
  CHECK_FALSE(read_acquire_all(replies::nil(), 2).value.hindered);
  const auto busy = read_acquire_all(replies::integers({2, 1500}), 2);
  REQUIRE(busy.value.hindered);
  CHECK(busy.value.hindered->number == 1);
  CHECK(busy.value.hindered->single.value.holder_ttl == 1500ms);
  const auto for_ever = read_acquire_all(replies::integers({1, -1}), 2);
  CHECK(for_ever.value.hindered->single.value.type == acquire_answer::kind::busy_without_ttl);
  for (const long long corrupt : {-2, -3})
    CHECK(read_acquire_all(replies::integers({1, corrupt}), 2).value.hindered->single.failed->code ==
          errc::corrupt_lock);
  for (const auto& r : {replies::integer(1), replies::integers({3, 7}), replies::integers({0, 7}),
                        replies::integers({1, -4}), replies::integers({1}), replies::integers({1, 2, 3})})
    check_unexpected(read_acquire_all(r, 2));
}

TEST_CASE("a fenced acquire of all answers a token for each, or which is busy") {
  const auto granted = read_acquire_all_fenced(replies::integers({0, 7, 9}), 2);
  CHECK_FALSE(granted.value.hindered);
  CHECK(granted.value.tokens == std::vector<std::uint64_t>{7, 9});
  CHECK(read_acquire_all_fenced(replies::integers({2, 10}), 2).value.hindered->number == 1);
  for (const auto& r : {replies::nil(), replies::integers({0, 7}), replies::integers({0, 7, 0}),
                        replies::integers({0, 7, 9, 11}), replies::integers({0, 7, 9007199254740992})})
    check_unexpected(read_acquire_all_fenced(r, 2));
}

TEST_CASE("the newest token is a number or there is none") {
  CHECK(read_token(replies::nil()).value == std::nullopt);
  CHECK(read_token(replies::string("9007199254740991")).value == 9007199254740991U);
  CHECK(read_token(replies::string("9007199254740992")).failed->code == errc::corrupt_lock);
  CHECK(read_token(replies::string("many")).failed->code == errc::corrupt_lock);
  CHECK(read_token(replies::string("-1")).failed->code == errc::corrupt_lock);
  check_unexpected(read_token(replies::integer(1)));
}

TEST_CASE("set_hold_count answers 1 or 0") {
  CHECK(read_flag(replies::integer(1)).value);
  CHECK_FALSE(read_flag(replies::integer(0)).value);
  CHECK_FALSE(read_flag(replies::integer(0)).failed);
  check_unexpected(read_flag(replies::integer(2)));
  check_unexpected(read_flag(replies::nil()));
  for (const auto& r : strange) check_unexpected(read_flag(r));
}

TEST_CASE("renew answers one number for each hold") {
  using enum renewal_answer;
  const auto said = read_renew(replies::integers({1, 0, -1}), 3);
  CHECK_FALSE(said.failed);
  CHECK(said.value == std::vector{confirmed, denied, shared});
  check_unexpected(read_renew(replies::integers({-2}), 1));
  check_unexpected(read_renew(replies::integers({2}), 1));  // no confirmation, and no loss either
  check_unexpected(read_renew(replies::integers({1, 1}), 3));
  check_unexpected(read_renew(replies::integers({1, 1, 1, 1}), 3));
  check_unexpected(read_renew(replies::array({replies::nil()}), 1));
  check_unexpected(read_renew(replies::integer(1), 1));
  check_unexpected(read_renew(replies::nil(), 1));
}

TEST_CASE("an error in the place of a number fails a whole renewal") {
  const auto said = read_renew(replies::array({replies::integer(1), replies::error("OOM no memory")}), 2);
  REQUIRE(said.failed);
  CHECK(said.failed->code == errc::server_refused);
}

TEST_CASE("release answers receivers or nil") {
  CHECK(read_release(replies::integer(0)).value == 0);
  CHECK(read_release(replies::integer(7)).value == 7);
  CHECK_FALSE(read_release(replies::nil()).value);
  check_unexpected(read_release(replies::integer(-1)));
  for (const auto& r : strange)
    if (r.type != redis::reply::kind::string) check_unexpected(read_release(r));
}

TEST_CASE("force_release and EXISTS answer 1 or 0") {
  CHECK(read_flag(replies::integer(1)).value);
  CHECK_FALSE(read_flag(replies::integer(0)).value);
  CHECK(read_flag(replies::integer(1)).value);
  CHECK(read_force_release(replies::integer(1)).value);
  CHECK_FALSE(read_force_release(replies::integer(0)).value);
  for (const auto& r : strange) {
    check_unexpected(read_flag(r));
    if (r.type != redis::reply::kind::string) check_unexpected(read_force_release(r));
  }
}

TEST_CASE("a count is decimal digits or nil") {
  CHECK(read_count(replies::nil()).value == 0);
  CHECK(read_count(replies::string("3")).value == 3);
  CHECK(read_count(replies::string("2147483647")).value == 2'147'483'647);
  CHECK(read_count(replies::string("9999999999")).value == 0xFFFF'FFFF);
  CHECK(read_count(replies::string("9223372036854775807")).value == 0xFFFF'FFFF);
  check_unexpected(read_count(replies::integer(1)));
}

TEST_CASE("a count that is no number is a corrupt lock") {
  for (const auto* text : {"", "abc", "-1", " 1", "1e3", "0x10", "99999999999999999999", "1\n"}) {
    CAPTURE(text);
    const auto said = read_count(replies::string(text));
    REQUIRE(said.failed);
    CHECK(said.failed->code == errc::corrupt_lock);
    CHECK_FALSE(said.failed->mends_itself());
  }
  CHECK(read_flag(replies::error("HOLDFAST corrupt count")).failed->code == errc::corrupt_lock);
  CHECK(read_release(replies::error("HOLDFAST corrupt count")).failed->code == errc::corrupt_lock);
}

TEST_CASE("a TTL is absent or infinite or a number") {
  CHECK_FALSE(read_ttl(replies::integer(-2)).value);
  CHECK(read_ttl(replies::integer(-1)).value == milliseconds::max());
  CHECK(read_ttl(replies::integer(0)).value == 0ms);
  CHECK(read_ttl(replies::integer(1234)).value == 1234ms);
  CHECK(read_ttl(replies::integer(9'223'372'036'854'775'806)).value.value() < std::chrono::nanoseconds::max());
  check_unexpected(read_ttl(replies::integer(-3)));
  check_unexpected(read_ttl(replies::nil()));
}

TEST_CASE("every answer passes an error of the server on") {
  const auto r = replies::error("READONLY You can't write against a read only replica.");
  CHECK(read_acquire(r).failed->code == errc::not_primary);
  CHECK(read_flag(r).failed->code == errc::not_primary);
  CHECK(read_renew(r, 1).failed->code == errc::not_primary);
  CHECK(read_release(r).failed->code == errc::not_primary);
  CHECK(read_flag(r).failed->code == errc::not_primary);
  CHECK(read_flag(r).failed->code == errc::not_primary);
  CHECK(read_count(r).failed->code == errc::not_primary);
  CHECK(read_ttl(r).failed->code == errc::not_primary);
}

TEST_CASE("NOSCRIPT alone says that a script is unknown") {
  CHECK(is_unknown_script(replies::error("NOSCRIPT No matching script. Please use EVAL.")));
  CHECK_FALSE(is_unknown_script(replies::error("ERR NOSCRIPT")));
  CHECK_FALSE(is_unknown_script(replies::string("NOSCRIPT")));
}

TEST_CASE("what may mend itself is a refusal to retry") {
  for (const auto* text :
       {"OOM command not allowed when used memory > 'maxmemory'.", "NOREPLICAS Not enough good replicas to write.",
        "MISCONF Redis is configured to save RDB snapshots", "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script.", "MASTERDOWN Link with MASTER is down", "TRYAGAIN Multiple keys request",
        "CLUSTERDOWN The cluster is down", "ERR max number of clients reached", "ERR something new", "", "-"}) {
    CAPTURE(text);
    CHECK(code_of(text) == errc::server_refused);
    CHECK(classify(text).mends_itself());
  }
}

TEST_CASE("what does not mend itself is no refusal to retry") {
  const std::pair<const char*, errc> all[] = {
      {"READONLY You can't write against a read only replica.", errc::not_primary},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", errc::corrupt_lock},
      {"NOAUTH Authentication required.", errc::auth_failed},
      {"WRONGPASS invalid username-password pair or user is disabled.", errc::auth_failed},
      {"NOPERM this user has no permissions to run the 'evalsha' command", errc::no_permission},
      {"ERR The user executing the script can't run this command or subcommand script: f, on @user_script:5.",
       errc::no_permission},
      {"The user executing the script can't access at least one of the keys mentioned", errc::no_permission},
  };
  for (const auto& [text, code] : all) {
    CAPTURE(text);
    CHECK(code_of(text) == code);
    CHECK_FALSE(classify(text).mends_itself());
  }
}

TEST_CASE("a text that answers a release says that it has released, and why it told nobody") {
  const auto words = replies::string("ERR ACL failure in script: No permissions to access a channel");
  const auto said = detail::read_release(words);
  CHECK_FALSE(said.failed);
  CHECK(said.value == 0U);
  CHECK(detail::read_force_release(words).value);
  const auto why = detail::withheld_message({.error = {}, .reply = words});
  REQUIRE(why);
  CHECK(why->code == errc::no_permission);
  CHECK_FALSE(detail::withheld_message({.error = {}, .reply = replies::integer(0)}));
  CHECK_FALSE(detail::withheld_message({.error = {}, .reply = replies::nil()}));
  CHECK_FALSE(detail::withheld_message({.error = errc::unconfirmed, .reply = {}}));
}

TEST_CASE("a name that another kind has is told with the advice to use another one") {
  for (const std::string text : {"WRONGTYPE Operation against a key holding the wrong kind of value",
                                 "HOLDFAST no lock: a string that is no counter"})
    CHECK(classify(text).detail ==
          "another kind of lock, or data, has this name. A mutex is a hash. A simple_mutex, a SET NX lock and the "
          "counter of a semaphore or latch are strings. Give each kind its own names: " +
              text);
}

TEST_CASE("an error that a script wrapped is read where it begins") {
  const std::string before = "ERR Error running script (call to f_c9f1): @user_script:10: ";
  CHECK(code_of(before + "WRONGTYPE Operation against a key holding the wrong kind of value") == errc::corrupt_lock);
  CHECK(code_of(before + "OOM command not allowed when used memory > 'maxmemory'.") == errc::server_refused);
  CHECK(code_of(before + "NOREPLICAS Not enough good replicas to write.") == errc::server_refused);
  CHECK(code_of(before + "-MISCONF Redis is configured to save RDB snapshots") == errc::server_refused);
  CHECK(code_of(before + "-READONLY You can't write against a read only replica.") == errc::not_primary);
  CHECK(code_of(before + "@user_script: 10: The user executing the script can't run this command or subcommand") ==
        errc::no_permission);
}

TEST_CASE("what a script can bring means the same on every server") {
  struct row {
    const char* text;
    errc code;
    bool retry;
  };
  // Of Redis 7.0, of Redis 7.2 to 8.0 and Valkey, and of those before, which wrap it.
  static constexpr row table[] = {
      {"ERR The user executing the script can't run this command or subcommand script: f, on @user_script:8.",
       errc::no_permission, false},
      {"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
       errc::no_permission, false},
      {"ERR The user executing the script can't publish to the channel mentioned in the command", errc::no_permission,
       false},
      {"ERR ACL failure in script: User app has no permissions to run the 'exists' command script: f, on "
       "@user_script:8.",
       errc::no_permission, false},
      {"ERR ACL failure in script: No permissions to access a key script: f, on @user_script:8.", errc::no_permission,
       false},
      {"ERR ACL failure in script: No permissions to access a channel script: f, on @user_script:16.",
       errc::no_permission, false},
      {"ERR ACL failure in script: User READONLY has no permissions to run the 'WRONGTYPE' command",
       errc::no_permission, false},
      {"NOPERM User app has no permissions to run the 'evalsha' command", errc::no_permission, false},
      {"NOPERM No permissions to access a key", errc::no_permission, false},
      {"READONLY You can't write against a read only replica. script: f, on @user_script:14.", errc::not_primary,
       false},
      {"NOREPLICAS Not enough good replicas to write. script: f, on @user_script:9.", errc::server_refused, true},
      {"MISCONF Errors writing to the AOF file: No space left on device script: f, on @user_script:9.",
       errc::server_refused, true},
      {"OOM command not allowed when used memory > 'maxmemory'. script: f, on @user_script:9.", errc::server_refused,
       true},
      {"WRONGTYPE Operation against a key holding the wrong kind of value script: f, on @user_script:16.",
       errc::corrupt_lock, false},
      {"HOLDFAST invalid token", errc::corrupt_lock, false},
      {"HOLDFAST corrupt count", errc::corrupt_lock, false},
      {"HOLDFAST no lock", errc::corrupt_lock, false},
      {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", errc::server_refused, true},
      {"ERR Can not execute the command on a stale replica script: f, on @user_script:8.", errc::server_refused, true},
      {"LOADING Redis is loading the dataset in memory", errc::server_refused, true},
      {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", errc::server_refused,
       true},
      {"ERR Error running script (call to f): @user_script:1: Script killed by user with SCRIPT KILL...",
       errc::server_refused, true},
      {"ERR Unknown Redis command called from script script: f, on @user_script:8.", errc::protocol_error, false},
      {"ERR Unknown command called from script script: f, on @user_script:8.", errc::protocol_error, false},
      {"ERR Error running script (call to f): @user_script:8: @user_script: 8: Unknown Redis command called from Lua "
       "script",
       errc::protocol_error, false},
      {"ERR Script attempted to access a non local key in a cluster node script: f, on @user_script:8.",
       errc::not_primary, false},
      {"ERR Script attempted to access keys that do not hash to the same slot script: f, on @user_script:8.",
       errc::not_primary, false},
      {"ERR Script attempted to execute a command while the cluster is down script: f, on @user_script:8.",
       errc::server_refused, true},
      {"CLUSTERDOWN Hash slot not served", errc::server_refused, true},
  };
  for (const auto& r : table) {
    CAPTURE(r.text);
    CHECK(code_of(r.text) == r.code);
    CHECK(classify(r.text).mends_itself() == r.retry);
  }
}

TEST_CASE("a server's words are escaped and cut before anybody prints them") {
  const auto said = classify("ERR \x1b[31m\r\n" + std::string(1000, 'x'));
  CHECK(said.detail.find('\x1b') == std::string::npos);
  CHECK(said.detail.find("\\x1b[31m\\x0d\\x0a") != std::string::npos);
  CHECK(said.detail.size() < 300);
}

TEST_CASE("a cluster's redirections and a proxy without scripts are no reason to wait") {
  for (const auto* text : {"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381",
                           "CROSSSLOT Keys in request don't hash to the same slot"}) {
    CHECK(classify(text).code == errc::not_primary);
    CHECK_FALSE(classify(text).mends_itself());
  }
  for (const auto* text : {"ERR unknown command 'EVALSHA'", "ERR wrong number of arguments for 'evalsha' command"}) {
    CHECK(classify(text).code == errc::protocol_error);
    CHECK_FALSE(classify(text).mends_itself());
  }
}

TEST_CASE("what only a node of a cluster says is told as such, with its words") {
  for (const std::string words : {"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381",
                                  "CROSSSLOT Keys in request don't hash to the same slot"}) {
    const auto said = read_flag(replies::error(words));
    REQUIRE(said.failed);
    CHECK(said.failed->code == errc::not_primary);
    CHECK(said.failed->detail == "a cluster node; the URL of a cluster begins with redis+cluster://: " + words);
  }
}
