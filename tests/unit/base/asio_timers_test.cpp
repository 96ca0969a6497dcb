// SPDX-License-Identifier: BSL-1.0
#include "base/asio_timers.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "support/catch.hpp"
#include "support/no_memory.hpp"
#include "support/run_at.hpp"
#include "support/run_coro.hpp"
#include "support/skip.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::asio_timers;
using detail::lease_clock;

namespace {

using strand_type = boost::asio::strand<boost::asio::any_io_executor>;

struct rig {
  boost::asio::io_context io;
  strand_type strand{io.get_executor()};
  std::shared_ptr<asio_timers> timers = std::make_shared<asio_timers>(strand);

  ~rig() { timers->close(); }
};

/// The descriptors of this process that are timers, by number.
std::set<std::string> timerfds() {
  std::set<std::string> all;
  for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(open, gone) == "anon_inode:[timerfd]") all.insert(open.path().filename());
  }
  return all;
}

/// What the kernel says of a timer's clock; empty if it does not.
std::string clock_of(const std::string& timerfd) {
  std::ifstream about("/proc/self/fdinfo/" + timerfd);
  for (std::string line; std::getline(about, line);)
    if (line.starts_with("clockid: ")) return line.substr(9);
  return {};
}

}  // namespace

TEST_CASE("timers fire in order, not before their time, on the strand") {
  rig r;
  std::string fired;
  const auto start = lease_clock::now();
  const auto note = [&](char what, lease_clock::duration after) {
    run_at(*r.timers, start + after, [&, what, after] {
      CHECK(lease_clock::now() >= start + after);
      CHECK(r.strand.running_in_this_thread());
      fired += what;
    });
  };
  note('b', 4ms);
  note('a', 2ms);
  note('c', 4ms);
  note('0', -1h);
  CHECK(fired.empty());
  test::drain(r.io);
  CHECK(fired == "0abc");
}

TEST_CASE("a timer that an action adds fires too") {
  rig r;
  int fired = 0;
  run_at(*r.timers, lease_clock::now() + 1ms, [&] {
    run_at(*r.timers, lease_clock::now() + 1ms, [&] { ++fired; });
    run_at(*r.timers, lease_clock::now(), [&] { ++fired; });
  });
  test::drain(r.io);
  CHECK(fired == 2);
}

TEST_CASE("cancelled timers neither fire nor hold the context") {
  rig r;
  const auto start = lease_clock::now();
  bool fired = false;
  detail::timer one(*r.timers), other(*r.timers);
  one.start(start + 1h, [&] { fired = true; });
  other.start(start + 2h, [&] { fired = true; });
  one.stop();
  other.stop();
  test::drain(r.io);  // throws if it is held
  CHECK_FALSE(fired);
  // And they work after that.
  run_at(*r.timers, lease_clock::now() + 1ms, [&] { fired = true; });
  test::drain(r.io);
  CHECK(fired);
}

TEST_CASE("timers that are cancelled and set again all the time fire all the same") {
  rig r;
  bool fired = false;
  int left = 200;
  strand_type& strand = r.strand;
  std::function<void()> again = [&] {
    detail::timer cancelled(*r.timers);
    cancelled.start(lease_clock::now() + 1h, [&] { FAIL("was cancelled"); });
    if (--left != 0) return boost::asio::post(strand, again);
    run_at(*r.timers, lease_clock::now() + 5ms, [&] { fired = true; });
  };
  boost::asio::post(strand, again);
  test::drain(r.io);
  CHECK(fired);
}

TEST_CASE("a timer is started without memory and fires") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  rig r;
  int fired = 0;
  detail::timer timer(*r.timers);
  const auto start_without_memory = [&] {
    const failing_allocations none(0, std::size_t(-1));
    timer.start(lease_clock::now() + 1h, [] { FAIL("was started anew"); });
    timer.start(lease_clock::now() + 1ms, [&] { ++fired; });
    CHECK_FALSE(none.happened());
  };
  start_without_memory();
  r.io.run_for(10s);
  CHECK(fired == 1);
  start_without_memory();
  r.io.restart();
  r.io.run_for(10s);
  CHECK(fired == 2);
}

TEST_CASE("closing drops what is pending, also from inside an action") {
  rig r;
  int fired = 0;
  run_at(*r.timers, lease_clock::now() + 1ms, [&] {
    ++fired;
    r.timers->close();
  });
  run_at(*r.timers, lease_clock::now() + 2ms, [&] { ++fired; });
  test::drain(r.io);
  CHECK(fired == 1);
  run_at(*r.timers, lease_clock::now(), [&] { ++fired; });
  test::drain(r.io);
  CHECK(fired == 1);
}

TEST_CASE("timers run on the clock that counts while the machine is suspended") {
  rig first;  // with what Asio itself opens
  const auto before = timerfds();
  const auto timers = std::make_shared<asio_timers>(first.strand);
  auto added = timerfds();
  for (const auto& fd : before) added.erase(fd);
  if (added.empty()) test::skip("/proc does not show what a descriptor is");
  REQUIRE(added.size() == 1);
  const auto clock = clock_of(*added.begin());
  timers->close();
  if (clock.empty()) test::skip("/proc does not show the clock of a timer");
  CHECK(clock == std::to_string(CLOCK_BOOTTIME));
}
