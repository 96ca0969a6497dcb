// SPDX-License-Identifier: BSL-1.0
// A client in the queue of a shared mutex: the channels on which it is called, the attempts that ask for a place, and
// the releases that give one up.
#include "protocol/shared/shared_lock.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

const asking to_read{{}, {}, &detail::shared_reader}, to_write{{}, {}, &detail::shared_writer};
const std::string front = "2", last = "1", none = "0";

struct queue : engine_fixture {
  void lets_write() { answers(replies::integers({1})); }
  void lets_read() { answers(replies::integers({1, 0, 0})); }
  void keeps_writer_out(long long rank = -1, milliseconds ttl = 30s) {
    answers(replies::integers({0, ttl.count(), rank}));
  }
  void keeps_reader_out() { answers(replies::integers({0, 30'000})); }
  /// (word, channel, owner, reserve[, place]) of a write hold, (word, channel, owner, reserve[, leave]) of a read hold,
  /// as "leave=1 again=0 reserve=20"
  std::string wishes() const {
    const auto words = server.last().arguments();
    const auto place = words.size() == 5 ? words[4] : none;
    const std::string leave = place == "1" ? "1" : "0", again = place == "2" ? "1" : "0";
    return "leave=" + leave + (script() == "write_release" ? " again=" + again : "") + " reserve=" + words.at(3);
  }
  /// (ttl, owner, word, ...[, stand]) of both sides
  std::string place() const {
    const auto words = server.last().arguments();
    return words.size() == 5 ? words[4] : none;
  }
  std::string script() const { return last_sent().substr(0, last_sent().find('(')); }

  void acknowledges_all() {
    for (const auto& channel : {counted, called, messages}) server.acknowledge(channel);
    run();
  }
  void says(const std::string& channel, const std::string& payload) {
    server.push(channel, payload);
    run();
  }
  /// The first of a line that has a place in the queue.
  lock_call stands(const asking& wanted, long long rank = 0) {
    const auto waiting = lock("a", wanted);
    const bool writes = wanted.kind == &detail::shared_writer;
    writes ? keeps_writer_out() : keeps_reader_out();
    acknowledges_all();
    writes ? keeps_writer_out(rank) : keeps_reader_out();
    REQUIRE(waiting.waits());
    return waiting;
  }
  lock_call granted(const asking& wanted) {
    const auto call = lock("a", wanted);
    wanted.kind == &detail::shared_writer ? lets_write() : lets_read();
    REQUIRE(call.granted());
    return call;
  }
  void check_nobody_listens() {
    check_nothing_is_left();
    for (const auto& channel : {counted, called, messages}) CHECK(server.subscribers(channel) == 0);
  }

  const detail::shared_keys names = keys("a", detail::shared_writer);
  const detail::uuid client{0, 0};
  const std::string messages = detail::channel_of(*names),
                    called = detail::shared_lock::wake_channel_of(*names, client),
                    counted = detail::shared_lock::waiters_channel_of(*names);
};

}  // namespace

TEST_CASE_METHOD(queue,
                 "a waiter listens on the channel of the lock and on two of the queue, and then asks for a place") {
  const bool writes = GENERATE(true, false);
  const auto waiting = lock("a", writes ? to_write : to_read);
  CHECK(place() == none);
  writes ? keeps_writer_out() : keeps_reader_out();
  for (const auto& channel : {counted, called, messages}) CHECK(server.subscribers(channel) == 1);
  server.acknowledge(counted);
  server.acknowledge(called);
  run();
  CHECK(sent(script()) == 1);
  server.acknowledge(messages);
  run();
  CHECK(place() == last);
  writes ? lets_write() : lets_read();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(queue, "a try_lock asks for no place, and listens to nothing") {
  const auto tried = try_lock("a", to_write);
  CHECK(place() == none);
  keeps_writer_out();
  CHECK(tried.refused());
  check_nobody_listens();
}

TEST_CASE_METHOD(queue, "a client that is called to write asks for the front at once") {
  const auto waiting = stands(to_write, 3);
  const auto before = server.count();
  says(messages, "0");
  says(messages, "1");
  CHECK(server.count() == before);
  says(called, "w");
  CHECK(server.count() == before + 1);
  CHECK(place() == front);
  lets_write();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(queue, "the first writer of the queue asks after the last reader, and 30 to 40 ms after a write") {
  const auto waiting = stands(to_write, 0);
  const auto before = server.count();
  SECTION("the last reader") { says(messages, "0"); }
  SECTION("a write") {
    says(messages, "1");
    CHECK(server.count() == before);
    advance(30ms);
  }
  CHECK(server.count() == before + 1);
  CHECK(place() == last);
  waiting.cancel();
}

TEST_CASE_METHOD(queue,
                 "a write that ends during an attempt of the first writer brings the next one after 30 to 40 ms") {
  const auto waiting = stands(to_write, 0);
  says(messages, "0");
  const auto before = server.count();
  says(messages, "1");
  keeps_writer_out(0);
  CHECK(server.count() == before);
  advance(30ms - 1ns);
  CHECK(server.count() == before);
  advance(10ms);
  CHECK(server.count() == before + 1);
  waiting.cancel();
}

TEST_CASE_METHOD(queue, "a reader that waits asks after each message, and shows itself every 500 ms") {
  const auto waiting = stands(to_read);
  auto before = server.count();
  says(messages, "1");
  CHECK(server.count() == before + 1);
  keeps_reader_out();
  before = server.count();
  advance(500ms);
  CHECK(server.count() == before + 1);
  CHECK(place() == last);
  waiting.cancel();
}

TEST_CASE_METHOD(queue, "a write hold stays without a doubt when a message comes") {
  const auto held = granted(to_write);
  const auto waiting = lock("a", to_write);
  acknowledges_all();
  const auto before = server.count();
  says(messages, "1");
  advance(50ms);
  CHECK(server.count() == before);
  waiting.cancel();
}

TEST_CASE_METHOD(queue,
                 "the release of a write takes its client to the end of the queue, where its next writer waits") {
  const auto held = granted(to_write);
  const auto waiting = lock("a", to_write);
  acknowledges_all();
  unlock(held);
  CHECK(wishes() == "leave=0 again=1 reserve=20");
  const auto before = server.count();
  SECTION("nobody else waits") {
    answers(replies::integers({0, 0, 1}));
    CHECK(server.count() == before + 1);
  }
  SECTION("others wait, and do not come") {
    answers(replies::integers({1, 0, 1}));
    CHECK(server.count() == before);
    advance(30ms);
    CHECK(server.count() == before + 1);
  }
  SECTION("it is called") {
    answers(replies::integers({1, 0, 1}));
    says(called, "w");
    CHECK(place() == front);
  }
  lets_write();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(queue,
                 "the release of a write takes no place for a writer that does not listen yet, or for a reader") {
  const auto held = granted(to_write);
  const bool reads = GENERATE(true, false);
  const auto waiting = lock("a", reads ? to_read : to_write);
  if (reads) acknowledges_all();
  unlock(held);
  CHECK(wishes() == (reads ? "leave=1 again=0 reserve=20" : "leave=0 again=0 reserve=20"));
  answers(replies::integers({0, 0, 1}));
  CHECK(script() == (reads ? "read_acquire" : "write_acquire"));
}

TEST_CASE_METHOD(queue, "a waiter that leaves gives its place up, unless the next of its client wants it") {
  const bool cancels = GENERATE(true, false);
  const auto waiting = stands(to_write);
  const auto next = GENERATE(0, 1, 2);
  std::optional<lock_call> behind;
  if (next > 0) behind = lock("a", next == 1 ? to_write : to_read);
  const auto before = server.count();
  cancels ? waiting.cancel() : static_cast<void>(close());
  if (next == 1 && cancels) {
    CHECK(server.count() == before);
    says(called, "w");
    CHECK(place() == front);
    lets_write();
    CHECK(behind->granted());
    return;
  }
  CHECK(wire(before).starts_with("write_release("));
  CHECK(server.sent(before).arguments().at(4) == "1");  // it leaves
  not_yours();
  if (!cancels || next == 0) return check_nobody_listens();
  CHECK(script() == "read_acquire");
  CHECK(place() == last);
  lets_read();
  CHECK(behind->granted());
}

TEST_CASE_METHOD(queue,
                 "a waiter that has never asked gives up the place that it found, with a field that was never sent") {
  const auto first = stands(to_write), second = lock("a", to_write);
  first.cancel();
  const auto before = server.count();
  second.cancel();
  CHECK(server.count() == before + 1);
  CHECK(last_sent().find("#2:write") != std::string::npos);
  CHECK(wishes() == "leave=1 again=0 reserve=20");
  not_yours();
  check_nobody_listens();
}

TEST_CASE_METHOD(queue, "the last unlock of a reader reserves the lock for ten round trips of its client") {
  const auto reading = granted(to_read);
  const auto waiting = lock("a", to_write);
  advance(4ms);
  keeps_writer_out();
  acknowledges_all();
  advance(4ms);
  keeps_writer_out(0);
  unlock(reading);
  CHECK(wishes() == "leave=1 reserve=40");
  const auto before = server.count();
  answers(replies::integers({1, 1}));
  CHECK(server.count() == before);
  says(called, "w");
  CHECK(place() == front);
  waiting.cancel();
}

TEST_CASE_METHOD(queue, "a repeated release leaves the place to a waiter of its kind that came meanwhile") {
  const bool reads = GENERATE(true, false);
  const auto& mine = reads ? to_read : to_write;
  const auto& others = reads ? to_write : to_read;
  const std::string wished = reads ? "leave=1 reserve=20" : "leave=1 again=0 reserve=20";
  const std::string repeated = reads ? "leave=0 reserve=20" : "leave=0 again=0 reserve=20";
  const auto held = granted(mine);
  unlock(held);
  CHECK(wishes() == wished);
  const auto comes = GENERATE(0, 1, 2);
  std::optional<lock_call> waiting;
  if (comes > 0) waiting = lock("a", comes == 1 ? mine : others);
  const auto again = comes == 1 ? repeated : wished;
  fails(errc::unconfirmed);
  advance(1ms);
  CHECK(script() == (reads ? "read_release" : "write_release"));
  CHECK(wishes() == again);
}

TEST_CASE_METHOD(queue, "no client of a queue rests after its turn") {
  settings.turns = true;
  const auto first = granted(to_write);
  const auto second = lock("a", to_write);
  acknowledges_all();
  advance(25ms);
  unlock(first);
  answers(replies::integers({0, 0, 2}));
  CHECK(script() == "write_acquire");
  lets_write();
  CHECK(second.granted());
}

TEST_CASE_METHOD(queue, "a called client that does not come costs its turn, for the next writer and for each reader") {
  const bool reads = GENERATE(true, false);
  const int dead = GENERATE(0, 1, 7);  // clients that have left the queue before the called one
  const auto waiting = stands(reads ? to_read : to_write, 1 + dead);
  const auto before = server.count();
  says(messages, std::to_string(2 + dead));
  CHECK(server.count() == before);
  advance(30ms - 1ns);
  CHECK(server.count() == before);
  advance(10ms);
  CHECK(server.count() == before + 1);
  CHECK(place() == last);
  reads ? lets_read() : lets_write();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(queue, "a client that loses its connection subscribes anew, and asks for its place again") {
  const auto waiting = stands(to_write, 2);
  link_down();
  link_up();
  const auto before = server.count();
  acknowledges_all();
  CHECK(server.count() == before + 1);
  CHECK(place() == last);
  waiting.cancel();
}

TEST_CASE_METHOD(queue, "a waiter whose client may not listen in the queue is told so") {
  const auto refused = GENERATE_COPY(counted, called, messages);
  const auto waiting = lock("a", to_write);
  keeps_writer_out();
  server.refuse(refused, errc::no_permission);
  run();
  CHECK(waiting.failed_with(errc::no_permission));
  check_nobody_listens();
}
