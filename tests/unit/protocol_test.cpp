// SPDX-License-Identifier: BSL-1.0
#include "protocol/protocol.hpp"

#include <limits>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "lua_scripts.hpp"
#include "support/catch.hpp"
#include "support/fake_topology.hpp"

using namespace holdfast::detail;
using namespace std::chrono_literals;
using words = std::vector<std::string>;

namespace {

const uuid client(0, 0);
const owner_field u1(client, 1), u2(client, 2), u3(client, 3);

// With "u" for the client's UUID.
words decoded(const std::string& bytes) {
  auto all = holdfast::test::decode_commands(bytes);
  REQUIRE(all.size() == 1);
  const auto text = client.to_text();
  for (auto& word : all[0])
    if (word.starts_with(std::string_view(text.data(), text.size()))) word.replace(0, text.size(), "u");
  return all[0];
}

words by_digest(const script_call& c) {
  std::string bytes;
  c.append_to(bytes, false);
  return decoded(bytes);
}

words by_text(const script_call& c) {
  std::string bytes;
  c.append_to(bytes, true);
  return decoded(bytes);
}

// What follows the script: count of keys, keys, arguments.
words operands(const script_call& c) {
  auto argv = by_digest(c);
  return {argv.begin() + 2, argv.end()};
}

const lock_keys a("a");

}  // namespace

TEST_CASE("keys and channels are Redisson's") {
  CHECK(lock_keys("orders:42").lock == "orders:42");
  CHECK(channel_of(lock_keys("orders:42")) == "redisson_lock__channel:{orders:42}");
  CHECK(token_key(lock_keys("orders:42", "p:")) == "redisson_lock_token:{p:orders:42}");
  CHECK(token_key(lock_keys("{orders}:42")) == "redisson_lock_token:{orders}:42");
  CHECK(lock_keys("orders:42", "p:").name == "orders:42");
  CHECK(lock_keys("{orders}:42").lock == "{orders}:42");
  CHECK(channel_of(lock_keys("{orders}:42")) == "redisson_lock__channel:{orders}:42");
}

TEST_CASE("any opening brace keeps a channel from getting braces of its own") {
  CHECK(channel_of(lock_keys("a{")) == "redisson_lock__channel:a{");
  CHECK(channel_of(lock_keys("{}a")) == "redisson_lock__channel:{}a");
  CHECK(channel_of(lock_keys("a}")) == "redisson_lock__channel:{a}}");
}

TEST_CASE("names of any bytes stay as they are") {
  const std::string name("\0a\r\n\xff \"%s", 9);
  const lock_keys k(name);
  CHECK(k.lock == name);
  CHECK(channel_of(k) == "redisson_lock__channel:{" + name + "}");
  const words expected{"1", name, channel_of(k), "u:1", "0", "30000"};
  CHECK(operands(scripts::release(k, u1, 0, {30s})) == expected);
}

TEST_CASE("owner fields are a uuid of version 8 and a number that grows") {
  owner_fields fields(uuid(0x0123456789abcdef, 0xffffffffffffffff));
  CHECK(fields.client_uuid() == "01234567-89ab-8def-bfff-ffffffffffff");
  const auto first = fields.next(), second = fields.next();
  CHECK(std::string_view(first.to_text()) == fields.client_uuid() + ":1");
  CHECK(std::string_view(second.to_text()) == fields.client_uuid() + ":2");
  CHECK(first < second);
}

TEST_CASE("an owner field of any number has its whole text, and an empty one has none") {
  const owner_field largest(client, std::numeric_limits<std::uint64_t>::max());
  CHECK(std::string_view(largest.to_text()).ends_with(":18446744073709551615"));
  CHECK(std::string_view(owner_field().to_text()).empty());
  CHECK(owner_field().empty());
}

TEST_CASE("version and variant of the uuid do not depend on the random bits") {
  const std::regex v8("[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::set<std::string> all;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const auto high = owner_fields(uuid(1ULL << i, 0)).client_uuid(),
               low = owner_fields(uuid(0, 1ULL << i)).client_uuid();
    CHECK(std::regex_match(high, v8));
    CHECK(std::regex_match(low, v8));
    all.insert({high, low});
  }
  CHECK(all.size() == 1 + 60 + 62);  // each of the 122 bits counts; the other six all give the same uuid
}

TEST_CASE("a call carries the script's digest or its text") {
  const auto call = scripts::acquire(a, 30s, u1);
  CHECK(by_digest(call) == words{"EVALSHA", std::string(lua::acquire.sha1), "1", "a", "30000", "u:1"});
  CHECK(by_text(call) == words{"EVAL", std::string(lua::acquire.body), "1", "a", "30000", "u:1"});
  CHECK(call.key() == "a");
}

TEST_CASE("each call uses the script of its name") {
  const renewal one{"a", u1, {1s}};
  const std::vector<std::pair<script_call, lua::script_text>> all{
      {scripts::acquire(a, 1s, u1), lua::acquire},     {scripts::reenter(a, {1s}, u1, 2), lua::reenter},
      {scripts::renew({&one, 1}), lua::renew},         {scripts::release(a, u1, 0, {1s}), lua::release},
      {scripts::force_release(a), lua::force_release}, {scripts::holder(a), lua::holder},
  };
  for (const auto& [call, script] : all) {
    CHECK(by_digest(call)[1] == script.sha1);
    CHECK(script.sha1.size() == 40);
    CHECK(by_text(call)[1] == script.body);
    CHECK(call.key() == "a");
  }
}

TEST_CASE("reenter sends the TTL and the field and the absolute count") {
  CHECK(operands(scripts::reenter(a, {1500ms}, u1, 2'147'483'647)) == words{"1", "a", "1500", "u:1", "2147483647"});
}

TEST_CASE("renew sends all keys and then all TTLs and then all fields") {
  const std::vector<renewal> holds{{"a", u1, {1s}}, {"b", u2, {24h}}, {"c", u3, {1ms}}};
  CHECK(operands(scripts::renew(holds)) == words{"3", "a", "b", "c", "1000", "86400000", "1", "u:1", "u:2", "u:3"});
}

TEST_CASE("a hundred renewals make one whole command") {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back("n" + std::to_string(i));
  }
  std::vector<renewal> holds;
  for (int i = 0; i < 100; ++i)
    holds.push_back({names[i], owner_field(client, static_cast<std::uint64_t>(i) + 1), {30s}});
  const auto sent = operands(scripts::renew(holds));
  REQUIRE(sent.size() == 301);
  CHECK(sent[0] == "100");
  CHECK(sent[100] == "n99");
  CHECK(sent[200] == "30000");
  CHECK(sent[300] == "u:100");
}

TEST_CASE("release sends the key, and as arguments the channel and the field and the absolute count and the TTL") {
  CHECK(operands(scripts::release(a, u1, 3, {30s})) == words{"1", "a", channel_of(a), "u:1", "3", "30000"});
}

TEST_CASE("a TTL of its own for a key that has none is sent last, where it is more") {
  CHECK(operands(scripts::reenter(a, {1s, 2s}, u1, 2)) == words{"1", "a", "1000", "u:1", "2", "2000"});
  CHECK(operands(scripts::reenter(a, {1s, 1s}, u1, 2)) == words{"1", "a", "1000", "u:1", "2"});
  CHECK(operands(scripts::release(a, u1, 3, {1s, 2s})) == words{"1", "a", channel_of(a), "u:1", "3", "1000", "2000"});
  const std::vector<renewal> holds{{"a", u1, {1s}}, {"b", u2, {2s, 3s}}};
  CHECK(operands(scripts::renew(holds)) == words{"2", "a", "b", "1000", "2000", "u:1", "u:2", "1000", "3000"});
}

TEST_CASE("holder sends the key alone") { CHECK(operands(scripts::holder(a)) == words{"1", "a"}); }

TEST_CASE("force_release sends the key, and the channel as an argument") {
  CHECK(operands(scripts::force_release(a)) == words{"1", "a", channel_of(a)});
}
