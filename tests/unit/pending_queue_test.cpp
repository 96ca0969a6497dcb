// SPDX-License-Identifier: BSL-1.0
#include "redis/pending_queue.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/replies.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using redis::pending_queue;

namespace {

constexpr auto start = detail::time_point{} + 1h;
constexpr std::size_t all = 1'000'000;

struct fixture {
  pending_queue queue{100, 20ms};
  std::vector<std::string> answered;

  void push(const std::string& name, detail::lease_clock::duration timeout, detail::time_point now = start) {
    queue.push(name, now + timeout, now, [this, name](const redis::outcome&) { answered.push_back(name); });
  }
  std::string write(detail::time_point now = start, std::size_t enough = all) {
    std::string out;
    queue.write(out, enough, now);
    return out;
  }
  bool reply() {
    const auto done = queue.take_answered(start);
    if (done && *done) (*done)({});
    return done.has_value();
  }
};

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

TEST_CASE("replies belong to written commands in order") {
  fixture f;
  f.push("a", 1s);
  f.push("b", 1s);
  CHECK_FALSE(f.reply());
  f.write();
  CHECK(f.reply());
  CHECK(f.reply());
  CHECK_FALSE(f.reply());
  CHECK(f.answered == std::vector<std::string>{"a", "b"});
  CHECK(f.queue.empty());
}

TEST_CASE("the queue is full at its capacity") {
  pending_queue queue(2, 20ms);
  CHECK_FALSE(queue.full());
  queue.push("a", start + 1s, start, [](auto) {});
  queue.push("b", start + 1s, start, [](auto) {});
  CHECK(queue.full());
}

TEST_CASE("a command that was not written in time is gone, a written one keeps its place") {
  fixture f;
  f.push("written", 100ms);
  f.write();
  f.push("waiting", 50ms);
  f.push("later", 300ms);

  auto r = f.queue.look(start + 50ms, start);
  REQUIRE(r.over.size() == 1);
  CHECK_FALSE(r.over[0].written);
  CHECK(r.next == start + 100ms);
  CHECK_FALSE(r.silent);

  r = f.queue.look(start + 100ms, start + 60ms);
  REQUIRE(r.over.size() == 1);
  CHECK(r.over[0].written);
  CHECK_FALSE(r.silent);  // a byte came at 60 ms: the server lives
  CHECK(r.next == start + 160ms);

  CHECK(f.queue.size() == 2);
  CHECK(f.write() == "later");
  CHECK(f.reply());  // the late one: nobody is told
  CHECK(f.answered.empty());
  CHECK(f.reply());
  CHECK(f.answered == std::vector<std::string>{"later"});
}

TEST_CASE("no byte since the write and the timeout over: the server is silent") {
  fixture f;
  f.push("a", 100ms);
  f.write(start + 1ms);
  auto r = f.queue.look(start + 100ms, start);
  CHECK(r.over.size() == 1);
  CHECK_FALSE(r.silent);
  CHECK(r.next == start + 101ms);
  r = f.queue.look(start + 101ms, start);
  CHECK(r.silent);
  CHECK(r.over.empty());
}

TEST_CASE("a short timeout does not condemn the connection before its least patience is over") {
  fixture f;
  f.push("a", 2ms);
  f.write();
  auto r = f.queue.look(start + 2ms, start);
  CHECK(r.over.size() == 1);
  CHECK_FALSE(r.silent);
  CHECK(r.next == start + 20ms);
  CHECK_FALSE(f.queue.look(start + 20ms - 1ns, start).silent);
  CHECK(f.queue.look(start + 20ms, start).silent);
}

TEST_CASE("a server that dribbles is silent once it stops") {
  fixture f;
  f.push("a", 100ms);
  f.write();
  CHECK_FALSE(f.queue.look(start + 150ms, start + 140ms).silent);
  CHECK_FALSE(f.queue.look(start + 239ms, start + 140ms).silent);
  CHECK(f.queue.look(start + 240ms, start + 140ms).silent);
}

TEST_CASE("a server that dribbles without an answer is given up after four timeouts") {
  fixture f;
  f.push("a", 100ms);
  f.push("b", 100ms);
  f.write();
  CHECK_FALSE(f.queue.look(start + 399ms, start + 399ms).silent);
  CHECK(f.queue.look(start + 400ms, start + 400ms).silent);
  f.queue.take_answered(start + 390ms);  // slow, but it answers
  CHECK_FALSE(f.queue.look(start + 700ms, start + 700ms).silent);
  CHECK(f.queue.look(start + 790ms, start + 790ms).silent);
}

TEST_CASE("a command without deadline waits for ever") {
  fixture f;
  f.queue.push("a", detail::time_point::max(), start, [](auto) {});
  f.write();
  const auto r = f.queue.look(start + 24h, start);
  CHECK(r.over.empty());
  CHECK_FALSE(r.silent);
}

TEST_CASE("with the connection written commands are lost and waiting ones kept") {
  fixture f;
  f.push("abandoned", 10ms);
  f.push("written", 1s);
  f.write();
  f.push("waiting", 1s);
  CHECK(f.queue.look(start + 10ms, start).over.size() == 1);
  for (auto& done : f.queue.lose_written()) done({});
  CHECK(f.answered == std::vector<std::string>{"written"});
  CHECK_FALSE(f.queue.any_written());
  CHECK(f.write() == "waiting");
  CHECK(f.reply());
}

TEST_CASE("all that waits can be given up") {
  fixture f;
  f.push("a", 1s);
  f.push("b", 1s);
  for (auto& done : f.queue.lose_waiting()) done({});
  CHECK(f.answered == std::vector<std::string>{"a", "b"});
  CHECK(f.queue.empty());
}

TEST_CASE("a handler that is dropped may use the queue while it is destroyed") {
  pending_queue queue(10, 20ms);
  struct user {
    pending_queue* queue;
    ~user() { CHECK(queue->empty()); }
  };
  queue.push("a", start + 1s, start, [u = std::make_shared<user>(&queue)](auto) {});
  queue.clear();
}
