// SPDX-License-Identifier: BSL-1.0
// The calls of a shared mutex, and the readers of their answers.
#include "protocol/shared/shared_lock.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "topology/cluster/slots.hpp"
#include "unit/protocol/expected_calls.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::shared_reader;
using detail::shared_writer;
using detail::standing;
namespace shared_lock = detail::shared_lock;

namespace {

const detail::lock_keys write_a(shared_writer, "a"), read_a(shared_reader, "a"),
    write_tagged(shared_writer, "{x}a", {.prefix = "p:", .word = detail::publish_word::automatic}),
    read_tagged(shared_reader, "{x}a", {.prefix = "p:", .word = detail::publish_word::automatic});

redis::outcome answer_of(redis::reply reply) { return {{}, std::move(reply)}; }

words joined(words first, const words& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}
const words side_keys{"holdfast_queue:{a}", "holdfast_readers:{a}", "holdfast_turn:{a}"},
    told{"publish", "redisson_rwlock:{a}"};
const std::string deadline = "{a}:u:1:rwlock_timeout:1";

// The deadline is a key, so "u" stands for the uuid inside it, too.
words shown(const detail::call& call) {
  auto all = operands(call);
  for (auto& word : all)
    if (const auto at = word.find(some_client.text()); at != word.npos)
      word.replace(at, some_client.text().size(), "u");
  return all;
}

}  // namespace

TEST_CASE("the two sides of a shared mutex have one layout, and a writer's field has a suffix") {
  CHECK(&shared_writer.layout == &shared_reader.layout);
  CHECK(detail::channel_of(write_a) == "redisson_rwlock:{a}");
  CHECK(detail::channel_of(read_tagged) == "redisson_rwlock:p:{x}a");
  CHECK(by_digest(shared_writer.count.make(write_a, u1)) == words{"HGET", "a", "u:1:write"});
  CHECK(by_digest(shared_reader.count.make(read_a, u1)) == words{"HGET", "a", "u:1"});
}

TEST_CASE("the acquires of a shared mutex carry the place that their client may take in the queue") {
  const auto read = [](const words& stand) {
    return joined(joined({"5", "a", deadline}, side_keys), joined(joined({"30000", "u:1"}, told), stand));
  };
  CHECK(shown(shared_reader.acquire.make(read_a, 30s, u1)) == read({}));
  CHECK(shown(shared_lock::read_acquire(read_a, 30s, u1, standing::last)) == read({"1"}));
  CHECK(shown(shared_lock::read_acquire(read_a, 30s, u1, standing::front)) == read({"1"}));
  const auto write = [](const words& stand) {
    return joined(joined({"4", "a"}, side_keys), joined({"30000", "u:1:write", "publish", "{a}"}, stand));
  };
  CHECK(shown(shared_writer.acquire.make(write_a, 30s, u1)) == write({}));
  CHECK(shown(shared_lock::write_acquire(write_a, 30s, u1, standing::last)) == write({"1"}));
  CHECK(shown(shared_lock::write_acquire(write_a, 30s, u1, standing::front)) == write({"2"}));
  CHECK(by_digest(shared_reader.acquire.make(read_a, 30s, u1))[1] == detail::lua::read_acquire.sha1);
  CHECK(by_digest(shared_writer.acquire.make(write_a, 30s, u1))[1] == detail::lua::write_acquire.sha1);
}

TEST_CASE("the releases of a shared mutex say whether their client leaves or waits again") {
  const auto read = [](const words& reserve_and_leave) {
    return joined(joined(joined({"5", "a", deadline}, side_keys), joined(told, {"u:1"})), reserve_and_leave);
  };
  CHECK(shown(shared_reader.release.make(read_a, u1)) == read({"20"}));
  CHECK(shown(shared_lock::read_release(read_a, u1, {.leave = true, .reserve = 200ms})) == read({"200", "1"}));
  const auto write = [](const words& reserve_and_place) {
    return joined(joined(joined({"4", "a"}, side_keys), joined(told, {"u:1:write"})), reserve_and_place);
  };
  CHECK(shown(shared_writer.release.make(write_a, u1)) == write({"20"}));
  CHECK(shown(shared_lock::write_release(write_a, u1, {.leave = true})) == write({"20", "1"}));
  CHECK(shown(shared_lock::write_release(write_a, u1, {.again = true, .reserve = 25ms})) == write({"25", "2"}));
}

TEST_CASE("a name with a hash tag gets no braces in any key of a shared mutex") {
  CHECK(shown(shared_lock::read_release(read_tagged, u1, {})) ==
        words{"5", "p:{x}a", "p:{x}a:u:1:rwlock_timeout:1", "holdfast_queue:p:{x}a", "holdfast_readers:p:{x}a",
              "holdfast_turn:p:{x}a", "auto", "redisson_rwlock:p:{x}a", "u:1", "20"});
  CHECK(shown(shared_lock::write_release(write_tagged, u1, {})) ==
        words{"4", "p:{x}a", "holdfast_queue:p:{x}a", "holdfast_readers:p:{x}a", "holdfast_turn:p:{x}a", "auto",
              "redisson_rwlock:p:{x}a", "u:1:write", "20"});
  CHECK(shown(shared_lock::write_acquire(write_tagged, 1s, u1, standing::none)) ==
        words{"4", "p:{x}a", "holdfast_queue:p:{x}a", "holdfast_readers:p:{x}a", "holdfast_turn:p:{x}a", "1000",
              "u:1:write", "auto", "p:{x}a"});
}

TEST_CASE("one renewal confirms holds of both sides") {
  CHECK(shared_writer.renew == shared_reader.renew);
  const std::vector<detail::renewal> holds{{&read_a, u1, {1s}}, {&write_tagged, u2, {2s}}};
  CHECK(shown(shared_reader.renew.make(holds)) ==
        words{"4", "a", deadline, "p:{x}a", "p:{x}a", "1000", "2000", "u:1", "u:2:write"});
  CHECK(shown(shared_reader.renew.make_one(read_a, {1s, 3s}, u1)) == words{"2", "a", deadline, "1000", "u:1", "3000"});
  CHECK(shown(shared_writer.renew.make_one(write_a, {1s}, u1)) == words{"2", "a", "a", "1000", "u:1:write"});
}

TEST_CASE("the other calls of a shared mutex have the operands of their scripts") {
  CHECK(shown(shared_writer.set_hold_count.make(write_a, {1s}, u1, 2)) == words{"1", "a", "1000", "u:1:write", "2"});
  CHECK(shown(shared_writer.set_hold_count.make(write_a, {1s, 2s}, u1, 2)) ==
        words{"1", "a", "1000", "u:1:write", "2", "2000"});
  CHECK_FALSE(shared_reader.set_hold_count.make);
  CHECK(shown(shared_lock::downgrade(read_a, 30s, u1, 25ms)) == words{"4", "a", deadline, "holdfast_readers:{a}",
                                                                      "holdfast_turn:{a}", "30000", "u:1", "publish",
                                                                      "redisson_rwlock:{a}", "25"});
  CHECK(shown(shared_writer.force_release.make(write_a)) == words{"1", "a", "publish", "redisson_rwlock:{a}"});
  CHECK(shown(shared_lock::state(read_a)) == words{"1", "a"});
}

TEST_CASE("the channels and keys of a shared mutex are in the slot of its name") {
  const detail::uuid client(0, 0);
  CHECK(shared_lock::wake_channel_of(write_a, client) == "holdfast_wake:{a}:" + std::string(client.text()));
  CHECK(shared_lock::waiters_channel_of(read_a) == "holdfast_waiters:{a}");
  for (const auto* name : {"a", "{x}a", "b{a}c{d}", "a b:c"}) {
    const detail::lock_keys writes(shared_writer, name), reads(shared_reader, name);
    const auto slot = detail::slot_of(name);
    CHECK(detail::slot_of(shared_lock::wake_channel_of(writes, client)) == slot);
    CHECK(detail::slot_of(shared_lock::waiters_channel_of(writes)) == slot);
    CHECK(detail::slot_of(detail::channel_of(writes)) == slot);
    const auto all = operands(shared_lock::read_acquire(reads, 1s, u1, standing::none));
    for (std::size_t i = 1; i <= 5; ++i) CHECK(detail::slot_of(all[i]) == slot);
  }
}

TEST_CASE("a read grant says whether others may join it") {
  using kind = detail::acquire_answer::kind;
  const auto read = [](redis::reply reply) { return shared_reader.acquire.read(answer_of(std::move(reply))); };
  const auto granted = [&](long long writers, long long peers) { return read(replies::integers({1, writers, peers})); };
  CHECK(granted(0, 0).value.type == kind::acquired);
  CHECK(granted(0, 0).value.open);
  CHECK(granted(0, -1).value.open);  // a client of ours has subscribed to one of two channels
  CHECK_FALSE(granted(1, 0).value.open);
  CHECK_FALSE(granted(0, 1).value.open);
  CHECK(granted(0, 1).value.type == kind::acquired);
  const auto uncounted =
      replies::array({replies::integer(1), replies::integer(0), replies::string("NOPERM no pubsub")});
  CHECK(read(uncounted).value.open);
  const auto why = shared_lock::uncounted_waiters(answer_of(uncounted));
  REQUIRE(why);
  CHECK(why->detail.starts_with("waiting clients are not counted: "));
  CHECK_FALSE(shared_lock::uncounted_waiters(answer_of(replies::integers({1, 0, 0}))));
  for (const auto& strange :
       {replies::nil(), replies::integer(1), replies::integers({1}), replies::integers({2, 0, 0}),
        replies::integers({1, -1, 0}), replies::array({replies::integer(1), replies::integer(0), replies::nil()})})
    CHECK(read(strange).failed->code == errc::protocol_error);
}

TEST_CASE("a busy shared mutex has a TTL or none, or it is free and kept for others") {
  using kind = detail::acquire_answer::kind;
  const auto read = [](long long number) {
    return shared_reader.acquire.read(answer_of(replies::integers({0, number})));
  };
  CHECK(read(1500).value.type == kind::busy);
  CHECK(read(1500).value.holder_ttl == 1500ms);
  CHECK_FALSE(read(1500).value.reserved);
  CHECK(read(-1).value.type == kind::busy_without_ttl);
  CHECK(read(-2).value.type == kind::busy);
  CHECK(read(-2).value.holder_ttl == 0ms);
  CHECK(read(-2).value.reserved);
  CHECK(read(-3).failed->code == errc::protocol_error);
}

TEST_CASE("a busy shared mutex tells a client that would write its rank") {
  using kind = detail::acquire_answer::kind;
  const auto read = [](redis::reply reply) { return shared_writer.acquire.read(answer_of(std::move(reply))); };
  CHECK(read(replies::integers({1})).value.type == kind::acquired);
  CHECK_FALSE(read(replies::integers({0, 1500, -1})).value.rank);
  CHECK(read(replies::integers({0, 1500, 0})).value.rank == 0);
  CHECK(read(replies::integers({0, 1500, 1})).value.holder_ttl == 1500ms);
  CHECK(read(replies::integers({0, -2, 1})).value.rank == 1);
  CHECK(read(replies::integers({0, -2, 1})).value.reserved);
  CHECK(read(replies::integers({0, -1, 3'000'000'000})).value.rank == 255);
  for (const auto& strange : {replies::nil(), replies::integer(1), replies::integers({1, 0}), replies::integers({0, 1}),
                              replies::integers({0, 1, -2}), replies::integers({0, -3, 0}), replies::integers({2})})
    CHECK(read(strange).failed->code == errc::protocol_error);
}

TEST_CASE("only a primary can grant a side of a shared mutex") {
  for (const auto& call : {shared_reader.acquire.make(read_a, 30s, u1), shared_writer.acquire.make(write_a, 30s, u1)}) {
    CHECK(call.acquires());
    CHECK(call.shows_primary(replies::integers({1, 0, 0})));
    CHECK_FALSE(call.shows_primary(replies::integers({0, 1500, -1})));
  }
}

TEST_CASE("the end of a read hold tells how many were told, and of a write hold how many wait") {
  const auto reader = [](redis::reply reply) { return shared_reader.release.read(answer_of(std::move(reply))); };
  const auto writer = [](redis::reply reply) { return shared_writer.release.read(answer_of(std::move(reply))); };
  CHECK(reader(replies::integers({1, 4})).value == 4U);
  CHECK(reader(replies::integers({0, 0})).value == 0U);
  CHECK(reader(replies::nil()).value == std::nullopt);
  CHECK(writer(replies::integers({2, 3, 9})).value == 5U);
  CHECK(writer(replies::nil()).value == std::nullopt);
  const auto withheld =
      replies::array({replies::integer(1), replies::integer(0), replies::string("NOPERM no channel")});
  CHECK(writer(withheld).value == 1U);
  CHECK(detail::withheld_message(answer_of(withheld)));
  CHECK_FALSE(detail::withheld_message(answer_of(replies::integers({1, 0, 4}))));
  CHECK(detail::withheld_message(answer_of(replies::array({replies::integer(1), replies::string("NOPERM")}))));
  for (const auto& strange : {replies::integers({1}), replies::integers({2, 0}), replies::integers({1, -1}),
                              replies::array({replies::integer(1), replies::nil()}), replies::integer(1)})
    CHECK(reader(strange).failed->code == errc::protocol_error);
  for (const auto& strange : {replies::integers({1, 0}), replies::integers({-1, 0, 0}), replies::integers({0, -1, 0}),
                              replies::integers({0, 0, -1}), replies::integer(1),
                              replies::array({replies::integer(1), replies::integer(0), replies::nil()})})
    CHECK(writer(strange).failed->code == errc::protocol_error);
}

TEST_CASE("a downgrade is done although nobody could be told") {
  const auto read = [](redis::reply reply) { return shared_lock::read_downgrade(answer_of(std::move(reply))); };
  CHECK(read(replies::integer(1)).value);
  CHECK_FALSE(read(replies::integer(0)).value);
  CHECK(read(replies::string("NOPERM no channel")).value);
  CHECK(read(replies::integer(2)).failed);
}

TEST_CASE("each side of a shared mutex is locked while somebody holds it, and has an owner") {
  const auto state = [](const char* mode, const char* owner, const char* count, long long ttl, long long readers) {
    return answer_of(replies::array({replies::string(mode), replies::string(owner), replies::string(count),
                                     replies::integer(ttl), replies::integer(readers)}));
  };
  const auto written = state("write", "u:1", "2", 1500, 0), read = state("read", "u:1", "1", -1, 3),
             free = answer_of(replies::nil());
  CHECK(shared_writer.exists.read(written).value);
  CHECK_FALSE(shared_reader.exists.read(written).value);
  CHECK_FALSE(shared_writer.exists.read(read).value);
  CHECK(shared_reader.exists.read(read).value);
  const auto holder = shared_writer.holder.read(written).value;
  REQUIRE(holder);
  CHECK(holder->field == "u:1");
  CHECK(holder->count == 2);
  CHECK(holder->ttl == 1500ms);
  CHECK_FALSE(shared_reader.holder.read(written).value);
  CHECK_FALSE(shared_writer.holder.read(read).value);
  CHECK(shared_reader.holder.read(read).value->ttl == std::chrono::milliseconds::max());
  CHECK(shared_lock::read_state(read).value.readers == 3);
  for (const auto* side : {&shared_writer, &shared_reader}) {
    CHECK_FALSE(side->exists.read(free).value);
    CHECK_FALSE(side->holder.read(free).value);
    CHECK(side->exists.read(answer_of(replies::integer(2))).failed->code == errc::corrupt_lock);
    for (const auto& strange :
         {state("both", "u:1", "1", 1, 1), state("read", "u:1", "1", -2, 1), state("read", "u:1", "1", 1, -1),
          answer_of(replies::integer(0)), answer_of(replies::integers({1, 2, 3, 4, 5}))})
      CHECK(side->exists.read(strange).failed->code == errc::protocol_error);
  }
  CHECK(shared_writer.exists.read(state("write", "u:1", "x", 1, 0)).failed->code == errc::corrupt_lock);
}
