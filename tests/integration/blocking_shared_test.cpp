// SPDX-License-Identifier: BSL-1.0
// Readers and writers of plain threads.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <shared_mutex>
#include <thread>
#include <type_traits>

#include "integration/blocking_world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

struct readers_world : blocking_world {
  bool has_waiting_writer() { return eye("ZCARD", "holdfast_queue:{s}") == 1; }
  void check_free() {
    see([&] { return eye("EXISTS", "s", "holdfast_queue:{s}", "holdfast_readers:{s}", "holdfast_turn:{s}") == 0; });
  }
};

/// All that this thread starts shares one processor with it.
class one_processor {
 public:
  one_processor() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  one_processor(const one_processor&) = delete;
  one_processor& operator=(const one_processor&) = delete;
  ~one_processor() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

/// Code for a lock of either library: each write has both halves, and a reader sees no half.
template <class SharedTimedMutex>
int torn_reads(SharedTimedMutex& guard) {
  int left = 0, right = 0;  // ordinary variables
  std::atomic<int> torn = 0, reads = 0;
  crew threads;
  for (int writer = 0; writer < 2; ++writer)
    threads.start([&] {
      for (int round = 0; round < 10; ++round) {
        const std::unique_lock lock(guard);
        ++left;
        std::this_thread::yield();
        ++right;
      }
    });
  for (int reader = 0; reader < 4; ++reader)
    threads.start([&] {
      for (int round = 0; round < 10; ++round) {
        const std::shared_lock lock(guard, std::chrono::hours(1));
        torn += !lock.owns_lock() || left != right;
        ++reads;
      }
    });
  threads.join();
  CHECK(left == 20);
  CHECK(reads == 40);
  return torn;
}

}  // namespace

static_assert(std::is_nothrow_move_constructible_v<blocking::shared_mutex>);
static_assert(!std::is_copy_constructible_v<blocking::shared_mutex>);
static_assert(noexcept(std::declval<blocking::shared_mutex&>().unlock_shared()));

TEST_CASE_METHOD(readers_world,
                 "code that is a template over std::shared_timed_mutex takes a shared_mutex of threads") {
  blocking::client redis(settings());
  auto ours = redis.shared_mutex("s");
  std::shared_timed_mutex theirs;
  CHECK(torn_reads(ours) == 0);
  CHECK(torn_reads(theirs) == 0);
  check_free();
}

TEST_CASE_METHOD(readers_world, "threads read beside each other by std::shared_lock, and one that writes is alone") {
  blocking::client redis(settings()), elsewhere(settings());
  auto here = redis.shared_mutex("s"), far = elsewhere.shared_mutex("s");
  {
    const std::shared_lock reading(here);
    CHECK(in_thread([&] { return std::shared_lock(here, std::try_to_lock).owns_lock(); }));
    CHECK(in_thread([&] { return std::shared_lock(far, 20s).owns_lock(); }));
    CHECK_FALSE(in_thread([&] { return far.try_lock(); }));
    CHECK_FALSE(in_thread([&] { return here.try_lock_for(10ms); }));
    CHECK(far.read_holds() == 1);
    CHECK_FALSE(far.is_locked());
    CHECK(far.reader().is_locked());
  }
  {
    const std::scoped_lock writing(here);
    CHECK(here.held());
    CHECK_FALSE(in_thread([&] { return far.try_lock_shared(); }));
    CHECK_FALSE(in_thread([&] { return here.try_lock_shared_for(10ms); }));
    CHECK_FALSE(in_thread([&] { return far.try_lock_shared_until(std::chrono::system_clock::now() + 10ms); }));
    CHECK(far.is_locked());
    CHECK(far.read_holds() == 0);
  }
  CHECK(in_thread([&] { return far.try_lock_shared() && (far.unlock_shared(), true); }));
  check_free();
}

TEST_CASE_METHOD(readers_world, "a thread that writes may read, one that reads gets already_held, and both may nest") {
  blocking::client redis(settings());
  auto s = redis.shared_mutex("s"), same = redis.shared_mutex("s");
  {
    const std::unique_lock writing(s);
    const std::shared_lock reading(same);
    const std::unique_lock again(same);
    CHECK(s.hold_count() == 3);
  }
  {
    const std::shared_lock reading(s), again(same);
    for (auto* each : {&s, &same}) {
      CHECK(client_side::code_of_call([&] { each->lock(); }) == errc::already_held);
      CHECK(client_side::code_of_call([&] { (void)each->try_lock(); }) == errc::already_held);
      CHECK(client_side::code_of_call([&] { (void)each->try_lock_for(1h); }) == errc::already_held);
    }
    CHECK(s.reader().held());
    CHECK(same.reader().held());
    CHECK_FALSE(s.held());
  }
  check_free();
}

TEST_CASE_METHOD(readers_world, "a thread that reads may read again while a writer waits, and the writer is next") {
  blocking::client redis(settings()), elsewhere(settings());
  auto s = redis.shared_mutex("s"), far = elsewhere.shared_mutex("s");
  std::shared_lock reading(s);
  auto writing = std::async(std::launch::async, [&] { const std::unique_lock lock(far); });
  see([&] { return has_waiting_writer(); });
  CHECK_FALSE(in_thread([&] { return far.try_lock_shared(); }));
  CHECK(std::shared_lock(s).owns_lock());
  reading.unlock();
  writing.get();
  check_free();
}

TEST_CASE_METHOD(readers_world, "a writer that downgrades lets waiting readers in, and keeps writers out") {
  blocking::client redis(settings()), elsewhere(settings());
  auto s = redis.shared_mutex("s"), far = elsewhere.shared_mutex("s");
  std::unique_lock writing(s);
  auto reading = std::async(std::launch::async, [&] { return std::shared_lock(far).owns_lock(); });
  see([&] { return eye("ZCARD", "holdfast_readers:{s}") == 1; });
  writing.release();
  s.downgrade();
  CHECK_FALSE(s.held());
  CHECK(s.reader().held());
  CHECK(reading.get());
  CHECK_FALSE(in_thread([&] { return far.try_lock(); }));
  s.unlock_shared();
  CHECK(in_thread([&] { return far.try_lock_for(20s) && (far.unlock(), true); }));
  check_free();
}

TEST_CASE_METHOD(readers_world, "a thread that cannot downgrade writes as before") {
  blocking::client redis(settings());
  auto s = redis.shared_mutex("s");
  CHECK(client_side::code_of_call([&] { s.downgrade(); }) == errc::not_held);
  const std::unique_lock writing(s);
  const auto stop = s.get_stop_token();
  {
    const std::unique_lock nested(s);
    CHECK(client_side::code_of_call([&] { s.downgrade(); }) == errc::already_held);
    CHECK(s.hold_count() == 2);
  }
  CHECK(s.held());
  CHECK_FALSE(stop.stop_requested());
  eye("DEL", "s");
  see([&] { return stop.stop_requested(); });
  CHECK(client_side::code_of_call([&] { s.downgrade(); }) == errc::lost);
  CHECK_FALSE(s.reader().held());
}

TEST_CASE_METHOD(readers_world, "an object that ends during a downgrade releases the hold and requests its stop") {
  blocking::client redis(settings());
  std::optional<blocking::shared_mutex> s(redis.shared_mutex("s"));
  std::stop_token stop;
  std::promise<void> writes, stopped;
  waiting_thread waits;
  auto code = std::async(std::launch::async, [&] {
    s->lock();
    stop = s->get_stop_token();
    writes.set_value();
    stopped.get_future().wait();
    waits.begins();
    return client_side::code_of_call([&] { s->downgrade(); });
  });
  writes.get_future().wait();
  server.stop();
  stopped.set_value();
  see([&] { return waits.asleep(); });
  s.reset();
  server.cont();
  CHECK(code.get() == errc::closed);
  see([&] { return stop.stop_requested(); });
  check_free();
}

TEST_CASE_METHOD(readers_world, "a section that downgrades ends in order, and the loss of its read hold is told") {
  blocking::client redis(settings());
  auto s = redis.shared_mutex("s");
  std::stop_token writes, reads;
  blocking::with_lock(s, [&](const std::stop_token& stop) {
    writes = stop;
    s.downgrade();
    reads = s.reader().get_stop_token();
  });
  eye("DEL", "s");
  see([&] { return reads.stop_requested(); });
  CHECK_FALSE(writes.stop_requested());
  s.unlock_shared();
}

TEST_CASE_METHOD(readers_world, "an unlock_shared by a thread that does not read does nothing and is told") {
  blocking::client redis(settings());
  auto s = redis.shared_mutex("s");
  s.lock_shared();
  std::thread([&] { s.unlock_shared(); }).join();
  see([&] { return heard->count(kind::foreign_unlock) == 1; });
  s.unlock();  // it does not write
  see([&] { return heard->count(kind::foreign_unlock) == 2; });
  CHECK(s.reader().held());
  s.unlock_shared();
  check_free();
}

TEST_CASE_METHOD(readers_world, "a read hold ends with its thread, and with its object, whose waiters get closed") {
  blocking::client redis(settings());
  std::optional<blocking::shared_mutex> s(redis.shared_mutex("s"));
  std::thread([&] { s->lock_shared(); }).join();
  check_free();
  s->lock_shared();
  const auto stop = s->reader().get_stop_token();
  waiting_threads writers(*s, 2);
  s.reset();
  CHECK(writers.closed_of_all() == 2);
  see([&] { return stop.stop_requested(); });
  check_free();
}

// A release of one side lets in a waiter of the other, unless that has been closed before. The thread that ends the
// object has one processor with the client and the server, and comes last there: they go on in the midst of it.
TEST_CASE("the end of a shared_mutex closes the waiters of both sides before it releases a hold") {
  const one_processor shared_with_all;
  readers_world w;
  blocking::client redis(w.settings());
  const bool reads = GENERATE(true, false), replaced = GENERATE(true, false);
  for (int round = 0; round < 5; ++round) {
    std::optional<blocking::shared_mutex> s(redis.shared_mutex("s"));
    reads ? s->lock_shared() : s->lock();
    waiting_threads waiters(reads ? static_cast<blocking::mutex&>(*s) : s->reader(), 3);
    std::thread([&] {
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19);
      replaced ? void(*s = redis.shared_mutex("other")) : s.reset();
    }).join();
    CHECK(waiters.closed_of_all() == 3);
    w.check_free();
  }
}

TEST_CASE_METHOD(readers_world, "a shared_mutex that was moved from is closed, and the other has both its sides") {
  blocking::client redis(settings());
  auto s = redis.shared_mutex("s");
  s.lock_shared();
  auto moved = std::move(s);
  CHECK(s.name().empty());  // NOLINT: what is left
  CHECK(client_side::code_of_call([&] { s.lock(); }) == errc::closed);
  CHECK(client_side::code_of_call([&] { s.lock_shared(); }) == errc::closed);
  CHECK(client_side::code_of_call([&] { (void)s.read_holds(); }) == errc::closed);
  s.unlock_shared();
  CHECK(moved.name() == "s");
  CHECK(moved.reader().name() == "s");
  CHECK(moved.reader().held());
  moved.unlock_shared();
  check_free();
}

TEST_CASE_METHOD(readers_world,
                 "a function that reads or writes learns of the loss by its token, and its caller by lost") {
  blocking::client redis(settings_with([](config& c) { c.ttl = 300ms; }));
  auto s = redis.shared_mutex("s");
  CHECK(blocking::with_lock(s.reader(), [&](std::stop_token) { return s.read_holds(); }) == 1);
  CHECK(blocking::with_lock(s, [&](std::stop_token) { return s.is_locked(); }));
  CHECK(blocking::try_with_lock_for(s.reader(), 1s, [](std::stop_token) { return 7; }) == 7);
  check_free();
  const auto lose = [&](std::stop_token lost) {
    CHECK(s.force_unlock());
    see([&] { return lost.stop_requested(); });
  };
  CHECK(client_side::code_of_call([&] { blocking::with_lock(s.reader(), lose); }) == errc::lost);
  CHECK(client_side::code_of_call([&] { blocking::with_lock(s, lose); }) == errc::lost);
}

TEST_CASE_METHOD(readers_world, "each side is one of several locks of a thread") {
  blocking::client redis(settings());
  const auto s = redis.shared_mutex("s"), other = redis.shared_mutex("other");
  const auto m = redis.mutex("m");
  blocking::multi_lock all({m, s.reader(), other});
  all.lock();
  CHECK(s.read_holds() == 1);
  CHECK(other.is_locked());
  CHECK(m.is_locked());
  all.unlock();
  check_free();
  CHECK(eye("EXISTS", "m", "other") == 0);
}
