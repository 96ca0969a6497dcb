// SPDX-License-Identifier: BSL-1.0
// Latches: each call is counted exactly once, and all who wait are let in by the last one.
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "integration/cancellable_call.hpp"
#include "integration/wire_fault.hpp"
#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct latch_world : world {
  client first = make(), second = make();

  static latch of(const client& by) { return by.latch("start"); }
  long long left() { return eye("EXISTS", "start") == 1 ? std::stoll(eye("GET", "start").text) : 0; }
  long long listeners() {
    return eye("PUBSUB", "NUMSUB", "redisson_countdownlatch__channel__{start}").array()[1].integer();
  }
  /// Marks and nothing else.
  bool only_marks_are_left() {
    for (const auto& key : keys())
      if (!key.starts_with("holdfast_done:{start}:")) return false;
    return true;
  }
};

}  // namespace

TEST_CASE_METHOD(latch_world, "a latch opens when so many have counted down, over all clients") {
  CHECK(run(of(first).try_set(3)));
  CHECK(run(of(second).count()) == 3);
  CHECK_FALSE(run(of(second).try_wait()));
  started<void> here(*this, of(first).wait()), there(*this, of(second).wait());
  until([&] { return listeners() == 2; });
  run(of(first).count_down());
  run(of(second).count_down());
  CHECK(left() == 1);
  CHECK_FALSE(here.answer);
  CHECK_FALSE(there.answer);
  run(of(second).count_down());
  until([&] { return here.succeeded() && there.succeeded(); }, 3s);  // by the message, before the poll cap
  CHECK(run(of(first).try_wait()));
  CHECK(run(of(first).count()) == 0);
  CHECK(only_marks_are_left());
  until([&] { return listeners() == 0; });
}

TEST_CASE_METHOD(latch_world, "a latch that is set stays as it is when it is set again") {
  CHECK(run(of(first).try_set(2)));
  CHECK_FALSE(run(of(second).try_set(5)));
  CHECK(left() == 2);
  CHECK(eye("PTTL", "start") == -1);
}

TEST_CASE_METHOD(latch_world, "a latch that was not set is open, and nothing is counted there") {
  run(of(first).wait());
  CHECK(run(of(first).wait_for(1h)));
  run(of(first).count_down());
  CHECK(run(of(first).count()) == 0);
  CHECK(only_marks_are_left());
}

TEST_CASE_METHOD(latch_world, "a count outside its range is refused, and nothing is sent") {
  CHECK(code_of(of(first).try_set(0)) == errc::invalid_argument);
  CHECK(code_of(of(first).try_set(2'147'483'648U)) == errc::invalid_argument);
  CHECK(code_of(of(first).count_down(0)) == errc::invalid_argument);
  CHECK(code_of(of(first).wait_for(-1ms)) == errc::invalid_wait);
  CHECK(keys().empty());
  CHECK(run(of(first).try_set(2'147'483'647U)));
}

TEST_CASE_METHOD(latch_world, "a count-down beyond 0 opens the latch and leaves no rest") {
  run(of(first).try_set(2));
  started<void> waiting(*this, of(second).wait());
  until([&] { return listeners() == 1; });
  run(of(first).count_down(5));
  until([&] { return waiting.succeeded(); }, 3s);
  CHECK(only_marks_are_left());
  CHECK(run(of(first).try_set(1)));
  CHECK(left() == 1);
}

TEST_CASE_METHOD(latch_world, "a bounded wait says whether the latch was open in time") {
  run(of(first).try_set(1));
  CHECK_FALSE(run(of(second).wait_for(0ms)));
  CHECK_FALSE(run(of(second).wait_for(30ms)));
  started<bool> waiting(*this, of(second).wait_for(1h));
  until([&] { return listeners() == 1; });
  run(of(first).count_down());
  until([&] { return waiting.succeeded(); }, 3s);
  CHECK(waiting.answer->value());
}

TEST_CASE_METHOD(latch_world, "the last to arrive lets in all who arrived before") {
  run(of(first).try_set(3));
  std::list<started<void>> all;
  all.emplace_back(*this, of(first).arrive_and_wait());
  all.emplace_back(*this, of(second).arrive_and_wait());
  until([&] { return left() == 1 && listeners() == 2; });
  for (const auto& each : all) CHECK_FALSE(each.answer);
  all.emplace_back(*this, of(first).arrive_and_wait());
  until([&] { return all.front().succeeded() && all.back().succeeded(); }, 3s);
}

TEST_CASE_METHOD(latch_world,
                 "a message of any text makes a waiter look again, and a poll finds what no message told") {
  auto brief = make([](config& c) { c.poll_cap = 50ms; });
  run(of(first).try_set(1));
  started<void> by_message(*this, of(first).wait()), by_poll(*this, of(brief).wait());
  until([&] { return listeners() == 2; });
  eye("DEL", "start");
  until([&] { return by_poll.succeeded(); }, 3s);
  CHECK_FALSE(by_message.answer);
  eye("PUBLISH", "redisson_countdownlatch__channel__{start}", "1");  // as Redisson's delete()
  until([&] { return by_message.succeeded(); }, 3s);
}

TEST_CASE_METHOD(latch_world, "a key that is no count is reported and left alone") {
  for (const auto& text : {"text", "1.5", "1e3"}) {
    INFO(text);
    eye("SET", "start", text);
    CHECK(code_of(of(first).count()) == errc::corrupt_lock);
    CHECK(code_of(of(first).wait()) == errc::corrupt_lock);
    CHECK(code_of(of(first).count_down()) == errc::corrupt_lock);
    CHECK(code_of(of(first).try_set(1)) == errc::corrupt_lock);
    CHECK(eye("GET", "start") == text);
  }
  eye("DEL", "start");
  const auto held = run(first.mutex("start").lock());
  CHECK(code_of(of(first).wait()) == errc::corrupt_lock);
  CHECK(code_of(of(first).count_down()) == errc::corrupt_lock);
  CHECK(code_of(of(first).try_set(1)) == errc::corrupt_lock);
  CHECK(held.held());
}

TEST_CASE_METHOD(latch_world, "a wait that is cancelled leaves no subscription") {
  run(of(first).try_set(1));
  cancellable_call<void> waiting(*this, of(second).wait());
  until([&] { return listeners() == 1; });
  waiting.cancel();
  until([&] { return waiting.answer.has_value(); });
  CHECK(waiting.answer->error() == asio::error::operation_aborted);
  until([&] { return listeners() == 0; });
  CHECK(left() == 1);
}

TEST_CASE_METHOD(latch_world, "a client that drains or closes lets nobody wait") {
  run(of(first).try_set(1));
  auto held = run(second.mutex("m").lock());
  started<void> waiting(*this, of(second).wait());
  until([&] { return listeners() == 1; });
  started<void> draining(*this, second.drain(10s));
  until([&] { return waiting.answer.has_value(); });
  CHECK(waiting.answer->error() == errc::shutting_down);
  CHECK(code_of(of(second).wait()) == errc::shutting_down);
  CHECK(run(of(second).count()) == 1);
  run(of(second).count_down());
  CHECK(left() == 0);
  run(held.unlock());
  until([&] { return draining.answer.has_value(); });
  CHECK(code_of(of(second).count_down()) == errc::shutting_down);
  CHECK(code_of(of(second).try_wait()) == errc::shutting_down);
  run(of(first).try_set(1));
  started<void> closed(*this, of(first).wait());
  until([&] { return listeners() == 1; });
  run(first.shutdown(1s));
  until([&] { return closed.answer.has_value(); });
  CHECK(closed.answer->error() == errc::shutting_down);
}

TEST_CASE("a latch, its client and their context end in any order while a caller waits") {
  world w;
  std::optional<asio::io_context> io(std::in_place);
  std::optional<client> redis(std::in_place, io->get_executor(), w.settings());
  auto start = redis->latch("start");
  w.eye("SET", "start", 1);
  bool over = false;
  asio::co_spawn(
      *io, [start]() -> asio::awaitable<void> { co_await start.wait(); }, [&](std::exception_ptr) { over = true; });
  const auto listens = [&] {
    return w.eye("PUBSUB", "NUMSUB", "redisson_countdownlatch__channel__{start}").array()[1] == 1;
  };
  while (!listens()) io->run_one_for(1ms);
  SECTION("the context first") {
    io.reset();
    CHECK_FALSE(over);  // destroyed with its context, as Asio does
    CHECK(w.code_of(start.wait()) == errc::shutting_down);
    redis.reset();
  }
  SECTION("the client first") {
    redis.reset();
    io->run();
    CHECK(over);
    CHECK(w.code_of(start.count_down()) == errc::shutting_down);
  }
  io.reset();
  w.until([&] { return !listens(); });
}

TEST_CASE("a count-down of which any command or reply is lost is counted once") {
  world w;
  proxy net(w.server);
  for (const auto& fault : wire_faults)
    for (std::size_t n = 1;; ++n) {
      INFO(fault.name << ", number " << n);
      const auto fired = net.count().fired;
      w.eye("SCRIPT", "FLUSH");  // so that each script is sent twice
      w.eye("SET", "start", 10);
      {
        auto redis = w.make([&](config& c) {
          c.url = net.url();
          c.command_timeout = fault.silent ? 60ms : 20s;
          c.connect_timeout = fault.silent ? 100ms : 20s;
        });
        fault.to_server ? net.at_command({.what = fault.done, .n = n}) : net.at_reply({.what = fault.done, .n = n});
        started<void> counted(w, redis.latch("start").count_down());
        w.until([&] { return counted.answer.has_value(); });
        CHECK((counted.succeeded() || (fault.silent && counted.answer->error() == errc::unconfirmed)));
        net.release();
        w.until([&] { return w.eye("GET", "start") == "9"; });
        w.run(redis.shutdown(5s));
      }
      net.heal();
      CHECK(w.eye("GET", "start") == "9");
      if (net.count().fired == fired) break;
    }
}

TEST_CASE("a set whose reply is lost says that it has set the count") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) {
    c.url = net.url();
    c.command_timeout = 2s;
  });
  CHECK(w.run(redis.latch("warm").try_set(1)));
  net.at_reply({.what = action::cut_before, .n = 1});
  CHECK(w.run(redis.latch("start").try_set(3)));
  CHECK(net.count().fired == 1);
  CHECK(w.eye("GET", "start") == "3");
  CHECK_FALSE(w.run(redis.latch("start").try_set(4)));
}

TEST_CASE("a count-down without an answer says so in time, and goes on") {
  world w;
  auto redis = w.make([](config& c) { c.command_timeout = 60ms; });
  w.run(redis.latch("start").try_set(2));
  w.server.stop();
  CHECK(w.code_of(redis.latch("start").count_down()) == errc::unconfirmed);
  w.server.cont();
  w.until([&] { return w.heard->count(event_kind::released_late) == 1; });
  CHECK(w.eye("GET", "start") == "1");
}
