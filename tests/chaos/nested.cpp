// SPDX-License-Identifier: BSL-1.0
// Nested calls of all kinds, on real servers that are full, stopped, killed and cut off:
//   holdfast_chaos_nested --seed 1 --calls 60000
// One process of four clients and 48 tasks judges each call, each grant, and the keys that are left when all is quiet:
//   deadlines  Each call ends within 50 ms of what its header promises, or of its cancellation. Delays of the process
//              are subtracted.
//   answers    A call fails only with codes that its header names. A lock() never says unreachable.
//   ends       Each call ends within 8 s after the last fault of a round.
//   exclusion  No two leases of one name are held at once, except by a re-entry.
//   keys       A key whose unlock() succeeded is gone. Every other key and subscription is gone 4 s after the last
//              call. No key waits for its TTL of 12 s.
//   leases     After its unlock() a lease is not held. A second unlock() says not_held.
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <list>
#include <thread>

#include "chaos/arguments.hpp"
#include "chaos/call_book.hpp"
#include "chaos/nested_faults.hpp"
#include "chaos/nested_rig.hpp"
#include "chaos/nested_task.hpp"
#include "support/run_coro.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int no_server_exit_code = 77;
constexpr std::size_t tasks = 48;
constexpr auto beat_every = 5ms;
constexpr auto storm = 2500ms;
constexpr auto last_section = 8s;  // of a round, when all is well again: before the TTL of a key that nobody gives back
constexpr auto late_release = 4s;  // by then everything was given back, and only a TTL takes longer
constexpr auto soon = 300ms;       // a look at the servers, and a notification
constexpr auto longest_key = nested_ttl + 3s;

asio::awaitable<void> beat(call_book& book) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (auto last = steady_clock::now();;) {
    timer.expires_after(beat_every);
    co_await timer.async_wait(asio::use_awaitable);
    const auto now = steady_clock::now();
    book.beat(now, now - last - beat_every);
    last = now;
  }
}

class nested_chaos {
 public:
  explicit nested_chaos(std::uint64_t seed)
      : dice_(seed), rig_(io_, book_), faults_(rig_, book_, dice_.below(UINT64_MAX)), guard_(io_.get_executor()) {
    io_.restart();
    asio::co_spawn(io_, beat(book_), asio::bind_cancellation_slot(end_of_beat_.slot(), [](std::exception_ptr) {}));
    loop_ = std::thread([this] { run_loop(); });
  }
  nested_chaos(const nested_chaos&) = delete;
  nested_chaos& operator=(const nested_chaos&) = delete;
  ~nested_chaos() {
    io_.stop();
    loop_.join();
  }

  bool run(std::size_t calls) {
    for (std::size_t round = 1; book_.calls() < calls && well_; ++round) {
      do_round();
      if (round % 20 == 0) std::cout << "round " << round << ": " << book_.calls() << " calls" << std::endl;
    }
    end();
    std::cout << book_.summary() << "; rounds ended within " << slowest_end_.count() << " ms" << std::endl;
    return well_ && book_.violations() == 0;
  }

 private:
  void run_loop() {
    try {
      io_.run();
    } catch (const std::exception& e) {
      book_.violation(std::string("an exception leaves the event loop: ") + e.what());
      well_ = false;
    }
    ended_ = true;
  }

  void do_round() {
    stopping_ = false;
    working_ = tasks;
    std::vector<std::uint64_t> seeds;
    for (std::size_t n = 0; n < tasks; ++n) seeds.push_back(dice_.below(UINT64_MAX));
    asio::post(io_, [this, seeds] {
      crew_.clear();
      for (std::size_t n = 0; n < tasks; ++n) {
        auto& t = crew_.emplace_back(book_, rig_.kit_of(n), n, seeds[n]);
        auto stops = [this] { return stopping_.load(); };
        auto ended = [this](std::exception_ptr failed) {
          if (failed) std::rethrow_exception(failed);
          --working_;
        };
        asio::co_spawn(t.self().bind(io_.get_executor()), t.run(stops), ended);
      }
    });
    faults_.rage(storm);
    stopping_ = true;
    book_.note("all is well again");
    const auto well = steady_clock::now();
    while (working_ > 0 && well_ && steady_clock::now() < well + last_section) std::this_thread::sleep_for(2ms);
    slowest_end_ = std::max(slowest_end_, std::chrono::duration_cast<milliseconds>(steady_clock::now() - well));
    if (working_ > 0 && well_) {
      book_.tell_open_calls();
      tell_locks();
      well_ = false;  // its locks are still held
    }
    if (well_) look_for_residue();
    book_.next_round();
  }

  void tell_locks() {
    for (std::size_t n = 0; n < rig_.servers; ++n)
      for (const auto& key : rig_.locks(n))
        for (const auto& field : rig_.holders(n, key))
          std::cout << "server " << n << " has " << key << ' ' << field << '\n';
  }

  void look_for_residue() {
    const auto quiet = steady_clock::now();
    book_.note("all is quiet");
    std::set<std::string> told;
    for (;;) {
      const auto since = steady_clock::now() - quiet;
      bool left = false;
      for (std::size_t n = 0; n < rig_.servers; ++n) {
        for (const auto& key : rig_.locks(n)) {
          left = true;
          for (const auto& field : rig_.holders(n, key)) tell_residue(n, key, field, since, told);
        }
        for (const auto& channel : rig_.channels(n)) {
          left = true;
          if (since > late_release && told.insert(channel).second)
            book_.violation("somebody listens for good to " + channel, channel.substr(channel.find('{') + 1));
        }
      }
      if (!left || since > longest_key) return;
      std::this_thread::sleep_for(50ms);
    }
  }

  void tell_residue(std::size_t server, const std::string& key, const std::string& field,
                    std::chrono::nanoseconds since, std::set<std::string>& told) {
    const auto what = "server " + std::to_string(server) + ", " + key + ' ' + field;
    const auto ms = std::to_string(std::chrono::duration_cast<milliseconds>(since).count());
    if (since > soon && server < 2 && book_.was_released(field) && told.insert("unlocked " + what).second)
      book_.violation("a key is left " + ms + " ms after its unlock() succeeded: " + what, key + ' ');
    if (since > late_release && told.insert("left " + what).second)
      book_.violation("a key is left " + ms + " ms after the end: " + what, key + ' ');
    if (since > longest_key && told.insert("stays " + what).second)
      book_.violation("a key stays beyond its TTL: " + what, key + ' ');
  }

  void end() {
    asio::post(io_, [this] {
      for (auto& c : rig_.clients()) asio::co_spawn(io_, c.shutdown(1s), asio::detached);
      end_of_beat_.emit(asio::cancellation_type::terminal);
      guard_.reset();
    });
    const auto end = steady_clock::now() + 10s;
    while (!ended_ && steady_clock::now() < end) std::this_thread::sleep_for(5ms);
    if (!ended_) book_.violation("the context has work 10 s after the end");
  }

  call_book book_;
  asio::io_context io_{1};
  dice dice_;
  nested_rig rig_;
  nested_faults faults_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  asio::cancellation_signal end_of_beat_;
  std::list<nested_task> crew_;
  milliseconds slowest_end_{};  // of a round, after its last fault
  std::atomic<bool> stopping_{false}, ended_{false}, well_{true};
  std::atomic<std::size_t> working_{0};
  std::thread loop_;
};

}  // namespace
}  // namespace holdfast::chaos

int main(int argc, char** argv) {
  if (!holdfast::test::real_redis::available()) {
    std::cout << "skipped: no redis-server, valkey-server or redis-check-rdb in PATH" << std::endl;
    return holdfast::chaos::no_server_exit_code;
  }
  try {
    const holdfast::chaos::arguments given(argc, argv);
    holdfast::chaos::nested_chaos all(static_cast<std::uint64_t>(given.number("seed")));
    return all.run(static_cast<std::size_t>(given.number("calls"))) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& failed) {
    std::cerr << "nested: " << failed.what() << '\n';
    return EXIT_FAILURE;
  }
}
