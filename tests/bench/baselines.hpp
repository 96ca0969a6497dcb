// SPDX-License-Identifier: BSL-1.0
// What the library is measured beside, all of it: the same commands by the least that a client can be, and Redisson's
// protocol.
#pragma once
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <holdfast/config.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/bare_client.hpp"
#include "bench/meter.hpp"
#include "redis/resp.hpp"
#include "support/raw_client.hpp"

namespace holdfast::bench {

// ---- pairs

/// One pair as the commands of some protocol; the last of them ends it.
using sequence = std::vector<std::string>;
using make_sequence = std::function<sequence(int slot)>;

sequence our_pair(int slot);

/// The same commands, formatted by hiredis of words that it is given.
class hiredis_sequences {
 public:
  explicit hiredis_sequences(int slots);

  sequence pair(int slot) const;

 private:
  std::vector<std::array<std::vector<std::string>, 2>> words_;  // of each slot
};

/// Redisson's hash of counts, from what its wire contract says.
class redisson_sequences {
 public:
  explicit redisson_sequences(test::raw_client& to);

  /// Three calls to acquire and four to release: what Redisson 3 did.
  sequence plain_pair(int slot) const;
  /// Redisson 4's present sequence: acquire, unlock with a latch, deletion of the latch.
  sequence pair(int slot) const;

 private:
  std::string acquire_, plain_release_, release_;
};

/// Whether the bare client only writes bytes that were made before and counts lines, or makes each command when it is
/// sent, with an owner field of its own, and parses each reply: the least that a client of any use does.
enum class bare { bytes, commands };

/// `pairs` of `make(slot)` with `width` under way at a time, by the bare client.
pair_cost bare_pairs(const std::string& path, int width, long pairs, const make_sequence& make, bare how = bare::bytes);

/// The limit: writes `width` prepared acquires, then their releases, with blocking calls, and only counts lines.
pair_cost blocking_pairs(const std::string& path, int width, long pairs);

/// All acquires at once, then all releases, each made when it is sent and each reply parsed; in seconds.
struct burst_times {
  double acquires = 0, releases = 0;
};
burst_times bare_burst(const std::string& path, long n);

/// The least that a plain thread does: one prepared command after the other, by blocking hiredis.
pair_cost hiredis_pairs(const std::string& path, long pairs);

// ---- round trips

/// Runs `command` by redis-benchmark, one at a time; so many a second. Throws not_finished.
double redis_benchmark_rate(const std::string& path, const std::string& command, long n);

/// Sends the steps of a pair one after the other, on a connection that stays.
class bare_trips {
 public:
  bare_trips(std::uint16_t port, sequence steps);
  void live(long pairs, laps& all);

 private:
  asio::io_context io_{1};
  bare_client client_;
  const sequence steps_;
  long replies_ = 0;
};

/// Median of one command and its reply, in us.
double bare_round_trip(const std::string& path, long trips);

/// A process with nothing else to do that makes the two round trips of a pair every ten milliseconds.
struct idle_trips {
  long pairs = 0;
  double median_us = 0;
};
idle_trips bare_trips_now_and_then(const std::string& path, clock::time_point begin, clock::time_point end);

/// Writes each server its own step, and goes on to the next when so many have answered.
laps bare_majority(const std::vector<std::string>& paths, const std::vector<sequence>& pair_of_each,
                   std::size_t majority, long pairs);

// ---- renewals

/// When a bare client sends its renewals.
enum class pace {
  as_answered,  // as fast as it can, 16 under way
  when_due,     // each at its time: so many that all are renewed every TTL/3
};
/// Formats and sends so many renewals of a hundred of `n` locks, and parses the replies; seconds of CPU.
double bare_renewals(const std::string& path, long n, milliseconds ttl, long commands, pace how);

/// Takes `n` locks other than those of a holder, and then confirms them by one script for a hundred; seconds of the
/// latter.
double bare_confirmation(const std::string& path, long n);

// ---- Redisson's waiting protocol

/// A process with a Redisson client, as those see it who contend with it for one lock: its commands, and how its
/// threads wait. All of them share one subscription while at least one waits; each message wakes one, or the next that
/// would wait. A thread is a coroutine here, so that its wake-up costs less than in Java.
class redisson_process {
 public:
  redisson_process(asio::io_context& io, const std::string& path, std::string name);
  redisson_process(const redisson_process&) = delete;
  redisson_process& operator=(const redisson_process&) = delete;

  asio::awaitable<void> lock(int thread);
  asio::awaitable<void> unlock(int thread);
  void stop();

 private:
  using timer = asio::steady_timer;

  /// One connection: commands go out in order, and what comes back is heard one by one.
  struct wire {
    wire(asio::io_context& io, const std::string& path);

    asio::local::stream_protocol::socket socket;
    std::string out, writing;
    std::array<char, 16'384> in;
    redis::reader replies;
  };
  struct question {
    timer answered;
    redis::reply reply;
  };

  template <class Hear>
  void listen(wire& on, Hear hear);
  void send(wire& on, const std::string& command);
  void flush(wire& on);
  asio::awaitable<redis::reply> ask(std::string command);
  asio::awaitable<std::optional<long long>> acquire(const std::string& owner);
  asio::awaitable<void> subscribed();
  asio::awaitable<void> wait_for_message(long long at_most_ms);
  void hear_message(const redis::reply& what);
  std::string owner(int thread) const { return uuid_ + ':' + std::to_string(thread); }

  asio::io_context& io_;
  const std::string name_, channel_, uuid_;
  wire commands_, messages_;
  std::deque<question*> asked_;
  std::deque<timer*> confirming_, parked_;
  int waiting_ = 0, permits_ = 0;
  bool confirmed_ = false;
};

}  // namespace holdfast::bench
