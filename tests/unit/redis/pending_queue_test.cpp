// SPDX-License-Identifier: BSL-1.0
#include "redis/pending_queue.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/plain_command.hpp"
#include "support/replies.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using redis::pending_queue;
using test::plain_command;
using redis::urgency;

namespace {

constexpr auto start = detail::time_point{} + 1h;
constexpr std::size_t all = 1'000'000;
constexpr auto ignore = [](const redis::outcome&) {};

struct fixture {
  pending_queue queue{{.capacity = 100, .least_silence_limit = 20ms, .window = 50}};
  std::vector<std::string> answered, late;

  explicit fixture(bool up = true) {
    if (up) queue.connected(start);
  }
  static auto note(std::vector<std::string>& where, const std::string& name) {
    return [&where, name](const redis::outcome&) { where.push_back(name); };
  }
  redis::ticket push(const std::string& name, detail::lease_clock::duration timeout, urgency rank = urgency::refusable,
                     detail::time_point now = start) {
    return queue.push(plain_command(name, {.timeout = timeout, .rank = rank}, note(answered, name)), now);
  }
  redis::ticket push_patient(const std::string& name, detail::lease_clock::duration timeout) {
    return queue.push(
        plain_command(name, {.timeout = timeout, .waits_for_reply = true}, note(answered, name), note(late, name)),
        start);
  }
  std::string write(detail::time_point now = start, std::size_t enough = all) {
    std::string out;
    queue.write(out, enough, now);
    return out;
  }
  bool reply(detail::time_point now = start) {
    const auto a = queue.take_answered(now);
    if (a && a->command) a->command->answered({});
    return a.has_value();
  }
  /// The names of those whose timeout is over, as they are told.
  std::size_t look(detail::time_point now) {
    std::size_t told = 0;
    for (; auto o = queue.take_overdue(now); ++told) o->tell({});
    return told;
  }
};
using names = std::vector<std::string>;

}  // namespace

TEST_CASE("commands are written in order, together, once") {
  fixture f;
  f.push("a", 1s);
  f.push("b", 1s);
  CHECK_FALSE(f.queue.any_written());
  CHECK(f.write() == "ab");
  CHECK(f.write().empty());
  f.push("c", 1s);
  CHECK(f.write() == "c");
  CHECK(f.queue.size() == 3);
}

TEST_CASE("a write takes about as much as asked for") {
  fixture f;
  for (const auto* name : {"aaaa", "bbbb", "cccc"}) f.push(name, 1s);
  CHECK(f.write(start, 5) == "aaaabbbb");
  CHECK(f.write(start, 5) == "cccc");
}

TEST_CASE("obligations are written before the others") {
  fixture f;
  f.push("a", 1s);
  f.push("b", 1s, urgency::awaited);
  f.push("x", 1s, urgency::obligation);
  f.push("c", 1s);
  f.push("y", 1s, urgency::obligation);
  CHECK(f.write() == "xyabc");
}

TEST_CASE("no more is written at once than the window holds") {
  fixture f;
  for (int i = 0; i < 60; ++i) f.push("a", 1s);
  CHECK(f.write().size() == 50);
  CHECK_FALSE(f.queue.can_write());
  f.push("x", 1s, urgency::obligation);
  for (int i = 0; i < 3; ++i) f.reply();
  CHECK(f.queue.can_write());
  CHECK(f.write() == "xaa");
}

TEST_CASE("replies belong to written commands in order") {
  fixture f;
  f.push("a", 1s);
  f.push("b", 1s);
  CHECK_FALSE(f.reply());
  f.write();
  CHECK(f.reply());
  CHECK(f.reply());
  CHECK_FALSE(f.reply());
  CHECK(f.answered == names{"a", "b"});
  CHECK(f.queue.empty());
}

TEST_CASE("an answer carries the time at which its own command was written") {
  fixture f;
  f.push("a", 1s);
  f.write(start + 1ms);
  f.push("b", 1s);
  f.write(start + 5ms);
  CHECK(f.queue.take_answered(start + 9ms)->sent == start + 1ms);
  CHECK(f.queue.take_answered(start + 9ms)->sent == start + 5ms);
}

TEST_CASE("three quarters of the capacity are for what may be refused, and the rest always finds room") {
  pending_queue queue({.capacity = 4, .least_silence_limit = 20ms});
  const auto refused = [&](urgency rank) { return queue.refuses({.timeout = 1s, .rank = rank}); };
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(refused(urgency::refusable));
    queue.push(plain_command("a", {.timeout = 1s, .rank = i == 0 ? urgency::obligation : urgency::refusable}, ignore),
               start);
  }
  CHECK(refused(urgency::refusable));
  for (int i = 0; i < 9; ++i)
    queue.push(plain_command("a", {.timeout = 1s, .rank = urgency::obligation}, ignore), start);
  CHECK_FALSE(refused(urgency::obligation));
  CHECK_FALSE(refused(urgency::awaited));
}

TEST_CASE("a timeout counts from the write and the queue of a living connection costs nothing") {
  fixture f;
  f.push("a", 100ms);
  CHECK(f.look(start + 1h) == 0);
  f.write(start + 1h);
  CHECK(f.look(start + 1h + 100ms - 1ns) == 0);
  CHECK(f.look(start + 1h + 100ms) == 1);
}

TEST_CASE("without a connection a timeout counts from the question, or from the loss") {
  fixture f(false);
  f.push("early", 100ms);
  CHECK(f.look(start + 100ms - 1ns) == 0);
  CHECK(f.queue.next_look(start) == start + 100ms);
  CHECK(f.look(start + 100ms) == 1);
  CHECK(f.queue.empty());
  f.queue.connected(start + 100ms);
  f.push("waits", 100ms, urgency::refusable, start + 1s);
  CHECK(f.look(start + 10s) == 0);
  f.queue.disconnected(start + 10s);
  CHECK(f.look(start + 10s + 100ms - 1ns) == 0);
  CHECK(f.look(start + 10s + 100ms) == 1);
}

TEST_CASE("a connection that is there again stops the clock of what waits") {
  fixture f(false);
  f.push("a", 100ms);
  f.queue.connected(start);
  CHECK(f.look(start + 1s) == 0);
  CHECK_FALSE(f.queue.next_look(start).has_value());
}

TEST_CASE("the time without a connection and the time on the wire count together") {
  fixture f(false);
  f.push("a", 100ms);
  f.queue.connected(start + 70ms);
  CHECK(f.look(start + 1s) == 0);
  SECTION("once it is written") {
    f.write(start + 1s);
    CHECK(f.look(start + 1s + 30ms - 1ns) == 0);
    CHECK(f.look(start + 1s + 30ms) == 1);
  }
  SECTION("and when the connection is lost before") {
    f.queue.disconnected(start + 1s);
    CHECK(f.look(start + 1s + 30ms - 1ns) == 0);
    CHECK(f.look(start + 1s + 30ms) == 1);
  }
}

TEST_CASE("on the wire a command has what is left of its time, however little that is") {
  fixture f(false);
  f.push("a", 100ms);
  f.push("short", 5ms, urgency::refusable, start + 95ms);
  f.queue.connected(start + 99ms);
  f.write(start + 99ms);
  CHECK(f.look(start + 100ms - 1ns) == 0);
  CHECK(f.look(start + 100ms) == 2);
}

TEST_CASE("an abandoned command keeps its place: its late reply is nobody else's") {
  fixture f;
  f.push("written", 100ms);
  f.push("later", 300ms);
  f.write();
  CHECK(f.look(start + 100ms) == 1);
  CHECK(f.answered == names{"written"});
  CHECK(f.queue.size() == 2);
  CHECK(f.reply());  // nobody is told
  CHECK(f.answered == names{"written"});
  CHECK(f.reply());
  CHECK(f.answered == names{"written", "later"});
}

TEST_CASE("a patient sender hears of the timeout once and gets the answer all the same") {
  fixture f;
  f.push_patient("a", 100ms);
  f.write();
  CHECK(f.look(start + 100ms) == 1);
  CHECK(f.look(start + 10s) == 0);
  CHECK(f.late == names{"a"});
  CHECK(f.answered.empty());
  f.reply();
  CHECK(f.answered == names{"a"});
  CHECK(f.late.size() == 1);
}

TEST_CASE("a patient sender waits for a connection for as long as it takes") {
  fixture f(false);
  f.push_patient("a", 100ms);
  CHECK(f.look(start + 1h) == 1);
  CHECK(f.late == names{"a"});
  f.queue.connected(start);
  CHECK(f.write() == "a");
}

TEST_CASE("what was not written can be forgotten") {
  fixture f;
  const auto a = f.push("a", 1s);
  f.write();
  const auto b = f.push("b", 1s);
  f.push("c", 1s);
  CHECK_FALSE(f.queue.forget(a));
  CHECK(f.queue.forget(b));
  CHECK_FALSE(f.queue.forget(b));
  CHECK(f.queue.size() == 2);
  CHECK(f.write() == "c");
  f.reply();
  f.reply();
  CHECK(f.answered == names{"a", "c"});
}

TEST_CASE("forgotten commands leave no trace, however many were forgotten behind one that waits") {
  fixture f(false);
  f.push("first", 24h);
  std::vector<redis::ticket> others;
  for (int i = 0; i < 1000; ++i) others.push_back(f.push("x", 24h));
  for (std::size_t i = 0; i < others.size(); i += 2) CHECK(f.queue.forget(others[i]));
  for (std::size_t i = 1; i < others.size(); i += 2) CHECK(f.queue.forget(others[i]));
  CHECK(f.queue.size() == 1);
  f.queue.connected(start);
  CHECK(f.write() == "first");
}

TEST_CASE("no byte since the write and the timeout over: the server is silent") {
  fixture f;
  f.push("a", 100ms);
  f.write(start + 1ms);
  CHECK(f.queue.next_look(start) == start + 101ms);
  CHECK_FALSE(f.queue.silent(start + 101ms - 1ns, start));
  CHECK(f.queue.silent(start + 101ms, start));
}

TEST_CASE("a short timeout does not condemn the connection before its least patience is over") {
  fixture f;
  f.push("a", 2ms);
  f.write();
  CHECK(f.look(start + 2ms) == 1);
  CHECK(f.queue.next_look(start) == start + 20ms);
  CHECK_FALSE(f.queue.silent(start + 20ms - 1ns, start));
  CHECK(f.queue.silent(start + 20ms, start));
}

TEST_CASE("a server that dribbles is silent once it stops") {
  fixture f;
  f.push("a", 100ms);
  f.write();
  CHECK_FALSE(f.queue.silent(start + 150ms, start + 140ms));
  CHECK_FALSE(f.queue.silent(start + 239ms, start + 140ms));
  CHECK(f.queue.silent(start + 240ms, start + 140ms));
}

TEST_CASE("a server that dribbles without an answer is given up after four timeouts") {
  fixture f;
  f.push("a", 100ms);
  f.push("b", 100ms);
  f.write();
  CHECK_FALSE(f.queue.silent(start + 399ms, start + 399ms));
  CHECK(f.queue.silent(start + 400ms, start + 400ms));
  f.queue.take_answered(start + 390ms);  // slow, but it answers
  CHECK_FALSE(f.queue.silent(start + 700ms, start + 700ms));
  CHECK(f.queue.silent(start + 790ms, start + 790ms));
}

TEST_CASE("a command without timeout waits for ever") {
  fixture f;
  f.push("a", detail::lease_clock::duration::max());
  f.write();
  CHECK(f.look(start + 24h) == 0);
  CHECK_FALSE(f.queue.silent(start + 24h, start));
}

TEST_CASE("with the connection written commands are lost and waiting ones kept") {
  fixture f;
  f.push("abandoned", 10ms);
  f.push("written", 1s);
  f.write(start + 1ms);
  f.push("waiting", 1s);
  CHECK(f.look(start + 11ms) == 1);
  f.queue.disconnected(start + 20ms);
  const auto lost = f.queue.next_lost();
  REQUIRE(lost);
  CHECK(lost->sent == start + 1ms);
  lost->command->answered({});
  CHECK_FALSE(f.queue.next_lost());
  CHECK(f.answered == names{"abandoned", "written"});
  CHECK_FALSE(f.queue.any_written());
  f.queue.connected(start);
  CHECK(f.write() == "waiting");
  CHECK(f.reply());
}

TEST_CASE("all that waits can be given up") {
  fixture f;
  f.push("a", 1s);
  f.push("b", 1s);
  for (const auto& lost : f.queue.lose_waiting()) lost->answered({});
  CHECK(f.answered == names{"a", "b"});
  CHECK(f.queue.empty());
}

TEST_CASE("a handler that is dropped may use the queue while it is destroyed") {
  pending_queue queue({.capacity = 10, .least_silence_limit = 20ms});
  struct user {
    pending_queue* queue;
    ~user() { CHECK(queue->empty()); }
  };
  queue.push(plain_command("a", {.timeout = 1s}, [u = std::make_shared<user>(&queue)](const auto&) {}), start);
  queue.clear();
  const auto t =
      queue.push(plain_command("a", {.timeout = 1s}, [u = std::make_shared<user>(&queue)](const auto&) {}), start);
  CHECK(queue.forget(t));
}

TEST_CASE_METHOD(fixture, "ASKING goes before its command in one write, and its answer is nobody's") {
  queue.push(plain_command("a", {.timeout = 1s, .asking = true}, note(answered, "a")), start);
  push("b", 1s);
  std::string out;
  queue.write(out, all, start);
  CHECK(out == "*1\r\n$6\r\nASKING\r\nab");
  CHECK(queue.size() == 2);
  CHECK_FALSE(queue.take_answered(start)->command);
  CHECK(queue.size() == 2);
  queue.take_answered(start)->command->answered({});
  queue.take_answered(start)->command->answered({});
  CHECK(answered == std::vector<std::string>{"a", "b"});
  CHECK(queue.empty());
}

TEST_CASE_METHOD(fixture, "a command that waits for the answer to ASKING is lost with its connection, once") {
  queue.push(plain_command("a", {.timeout = 1s, .asking = true}, note(answered, "a")), start);
  std::string out;
  queue.write(out, all, start);
  SECTION("before the answer to ASKING") {}
  SECTION("after it") { REQUIRE(queue.take_answered(start)); }
  queue.disconnected(start);
  CHECK(queue.next_lost());
  CHECK_FALSE(queue.next_lost());
  CHECK(queue.empty());
}

TEST_CASE("a tracked command has CLIENT CACHING before it where changes are pushed, until the connection ends") {
  const auto caching = redis::make_command({"CLIENT", "CACHING", "YES"});
  fixture f;
  const auto push = [&](bool asking = false) {
    f.queue.push(plain_command("a", {.timeout = 1s, .asking = asking, .track = true}, ignore), start);
  };
  push();
  CHECK(f.write() == "a");
  CHECK_FALSE(f.queue.take_answered(start)->tracked);
  f.queue.track(true);
  push();
  CHECK(f.write() == caching + "a");
  CHECK(f.queue.on_wire() == 1);
  const auto prefix = f.queue.take_answered(start);
  CHECK((!prefix->command && prefix->to_caching && !prefix->tracked));
  CHECK(f.queue.take_answered(start)->tracked);
  push(true);
  CHECK(f.write() == redis::make_command({"ASKING"}) + "a");
  CHECK_FALSE(f.queue.take_answered(start)->to_caching);
  CHECK_FALSE(f.queue.take_answered(start)->tracked);
  f.queue.disconnected(start);
  f.queue.connected(start);
  push();
  CHECK(f.write() == "a");
}

TEST_CASE("a command is not tracked if it, or CLIENT CACHING before it, is refused") {
  fixture f;
  f.queue.track(true);
  const bool caching_refused = GENERATE(false, true);
  f.queue.push(plain_command("a", {.timeout = 1s, .track = true}, ignore), start);
  f.write();
  f.queue.take_answered(start, caching_refused);
  CHECK_FALSE(f.queue.take_answered(start, !caching_refused)->tracked);
}
