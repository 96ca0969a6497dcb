// SPDX-License-Identifier: BSL-1.0
// What the kinds send whose lock is a hash.
#include <chrono>
#include <list>
#include <utility>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "unit/protocol/expected_calls.hpp"

using namespace holdfast::detail;
using namespace holdfast::test;
using namespace std::chrono_literals;
using holdfast::detail::call;

namespace {

const lock_keys a(plain_lock, "a"), b(plain_lock, "b"), c(plain_lock, "c");

}  // namespace

TEST_CASE("a call carries the script's digest or its text") {
  const auto sent = plain_lock.acquire.make(a, 30s, u1);
  CHECK(by_digest(sent) == words{"EVALSHA", std::string(lua::acquire.sha1), "1", "a", "30000", "u:1"});
  CHECK(by_text(sent) == words{"EVAL", std::string(lua::acquire.body), "1", "a", "30000", "u:1"});
  CHECK(sent.key() == "a");
}

TEST_CASE("names of any bytes stay as they are") {
  const std::string name("\0a\r\n\xff \"%s", 9);
  const lock_keys k(plain_lock, name);
  CHECK(k.lock == name);
  CHECK(channel_of(k) == "redisson_lock__channel:{" + name + "}");
  const words expected{"1", name, "publish", channel_of(k), "u:1"};
  CHECK(operands(plain_lock.release.make(k, u1)) == expected);
}

TEST_CASE("each call uses the script of its name") {
  const renewal one{&a, u1, {1s}};
  const std::vector<std::pair<call, lua::script_text>> all{
      {plain_lock.acquire.make(a, 1s, u1), lua::acquire},
      {plain_lock.set_hold_count.make(a, {1s}, u1, 2), lua::set_hold_count},
      {plain_lock.renew.make({&one, 1}), lua::renew},
      {plain_lock.release.make(a, u1), lua::release},
      {plain_lock.force_release.make(a), lua::force_release},
      {plain_lock.holder.make(a), lua::holder},
  };
  for (const auto& [sent, script] : all) {
    CHECK(by_digest(sent)[1] == script.sha1);
    CHECK(script.sha1.size() == 40);
    CHECK(by_text(sent)[1] == script.body);
    CHECK(sent.key() == "a");
  }
}

TEST_CASE("set_hold_count sends the TTL and the field and the absolute count") {
  CHECK(operands(plain_lock.set_hold_count.make(a, {1500ms}, u1, 2'147'483'647)) ==
        words{"1", "a", "1500", "u:1", "2147483647"});
}

TEST_CASE("renew sends all keys and then all TTLs and then all fields") {
  const std::vector<renewal> holds{{&a, u1, {1s}}, {&b, u2, {24h}}, {&c, u3, {1ms}}};
  CHECK(operands(plain_lock.renew.make(holds)) ==
        words{"3", "a", "b", "c", "1000", "86400000", "1", "u:1", "u:2", "u:3"});
}

TEST_CASE("a hundred renewals make one whole command") {
  std::list<lock_keys> names;
  std::vector<renewal> holds;
  for (int i = 0; i < 100; ++i)
    holds.push_back({&names.emplace_back(plain_lock, "n" + std::to_string(i)),
                     owner_field(some_client, static_cast<std::uint64_t>(i) + 1),
                     {30s}});
  const auto sent = operands(plain_lock.renew.make(holds));
  REQUIRE(sent.size() == 301);
  CHECK(sent[0] == "100");
  CHECK(sent[100] == "n99");
  CHECK(sent[200] == "30000");
  CHECK(sent[300] == "u:100");
}

TEST_CASE("release sends the key, and as arguments the word and the channel and the field") {
  CHECK(operands(plain_lock.release.make(a, u1)) == words{"1", "a", "publish", channel_of(a), "u:1"});
}

TEST_CASE("a TTL of its own for a key that has none is sent last, where it is more") {
  CHECK(operands(plain_lock.set_hold_count.make(a, {1s, 2s}, u1, 2)) == words{"1", "a", "1000", "u:1", "2", "2000"});
  CHECK(operands(plain_lock.set_hold_count.make(a, {1s, 1s}, u1, 2)) == words{"1", "a", "1000", "u:1", "2"});
  const std::vector<renewal> holds{{&a, u1, {1s}}, {&b, u2, {2s, 3s}}};
  CHECK(operands(plain_lock.renew.make(holds)) == words{"2", "a", "b", "1000", "2000", "u:1", "u:2", "1000", "3000"});
}

TEST_CASE("holder sends the key alone") { CHECK(operands(plain_lock.holder.make(a)) == words{"1", "a"}); }

TEST_CASE("force_release sends the key, and the word and the channel as arguments") {
  CHECK(operands(plain_lock.force_release.make(a)) == words{"1", "a", "publish", channel_of(a)});
}

TEST_CASE("a release is published by the word of its keys") {
  const auto [word, text] =
      GENERATE(std::pair(publish_word::publish, "publish"), std::pair(publish_word::spublish, "spublish"),
               std::pair(publish_word::automatic, "auto"), std::pair(publish_word::both, "both"));
  const lock_keys k(plain_lock, "a", {.prefix = {}, .word = word}), s(simple_lock, "a", {.prefix = {}, .word = word});
  CHECK(operands(plain_lock.release.make(k, u1)) == words{"1", "a", text, channel_of(k), "u:1"});
  CHECK(operands(plain_lock.force_release.make(k)) == words{"1", "a", text, channel_of(k)});
  CHECK(operands(simple_lock.release.make(s, u1)) == words{"1", "a", text, channel_of(s), "u:1"});
  CHECK(operands(simple_lock.force_release.make(s)) == words{"1", "a", text, channel_of(s)});
}
