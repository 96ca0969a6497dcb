// SPDX-License-Identifier: BSL-1.0
// The uncontended pair, lock and unlock, one at a time and 256 at a time: what the library adds to the commands that it sends, and what
// its scripts cost the server. Everything is measured in one run, in turns, against its own baseline; compare the ratios.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/bare_client.hpp"
#include "bench/meter.hpp"
#include "protocol/protocol.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"

namespace {

using namespace holdfast;
using namespace holdfast::bench;
using clock_type = std::chrono::steady_clock;

constexpr int rounds = 7;

/// One pair as the commands of some protocol; the last of them ends it.
using sequence = std::vector<std::string>;

detail::lock_keys keys_of(int slot) { return detail::lock_keys("bench:" + std::to_string(slot)); }

sequence our_pair(int slot) {
  const auto keys = keys_of(slot);
  const std::string field = "0b6ab61e-3a4f-8d5c-9d3c-6a2f4e1c7b90:" + std::to_string(slot + 1);
  const std::chrono::milliseconds ttl{30'000};
  return {detail::scripts::acquire(keys, ttl, field).by_digest(),
          detail::scripts::release(keys, field, 0, {ttl}).by_digest()};
}

/// Redisson 4's present sequence, from what its wire contract says: acquire, unlock with a latch, deletion of the latch.
struct redisson_scripts {
  explicit redisson_scripts(test::raw_client& to)
      : acquire(
            to("SCRIPT", "LOAD",
               "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
               "redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil end; "
               "return redis.call('pttl', KEYS[1])")
                .to_string()),
        release(to("SCRIPT", "LOAD",
                   "local seen = redis.call('get', KEYS[3]); if seen then return tonumber(seen) end; "
                   "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end; "
                   "local left = redis.call('hincrby', KEYS[1], ARGV[3], -1); "
                   "if left > 0 then redis.call('pexpire', KEYS[1], ARGV[2]); redis.call('set', KEYS[3], 0, 'px', "
                   "ARGV[5]); return 0 end; "
                   "redis.call('del', KEYS[1]); redis.call(ARGV[4], KEYS[2], ARGV[1]); redis.call('set', KEYS[3], 1, "
                   "'px', ARGV[5]); "
                   "return 1")
                    .to_string()) {}

  sequence pair(int slot) const {
    const auto keys = keys_of(slot);
    const std::string field = "8743c9c0-0795-4907-87fd-6c719a6b4586:" + std::to_string(slot + 1);
    const std::string latch = "redisson_unlock_latch:{" + keys.lock + "}:00112233445566778899aabbccddeeff";
    return {redis::make_command({"EVALSHA", acquire, "1", keys.lock, "30000", field}),
            redis::make_command(
                {"EVALSHA", release, "3", keys.lock, keys.channel, latch, "0", "30000", field, "publish", "16000"}),
            redis::make_command({"DEL", latch})};
  }

  std::string acquire, release;
};

/// Whether the bare client only writes bytes that were made before and counts lines, or makes each command when it is sent, with an
/// owner field of its own, and parses each reply: the least that a client of any use does.
enum class bare { bytes, commands };

/// `pairs` of `make(slot)` with `width` under way at a time, by the bare client.
template <class Make>
cost run_bare(const test::real_redis& server, int width, int pairs, Make make, bare how = bare::bytes) {
  asio::io_context io(1);
  bare_client client(io, server.socket_path(), how == bare::commands);
  std::vector<sequence> slots;
  for (int s = 0; s < width; ++s) slots.push_back(make(s));
  const auto steps = slots[0].size();
  std::vector<double> laps;
  laps.reserve(width == 1 ? static_cast<std::size_t>(pairs) : 0);
  long long replies = 0, to_start = pairs;
  const auto all = static_cast<long long>(steps) * pairs;
  std::vector<std::pair<int, std::size_t>>
      order;  // who waits for which step, as a ring: replies come in the order of the commands
  std::size_t head = 0;
  auto begun = clock_type::now();
  const auto send = [&](int slot, std::size_t step) {
    order.emplace_back(slot, step);
    if (how == bare::commands && step == 0) slots[static_cast<std::size_t>(slot)] = make(slot);
    client.send(slots[static_cast<std::size_t>(slot)][step]);
  };
  order.reserve(static_cast<std::size_t>(all));
  const meter m(server.pid());
  client.start([&] {
    const auto [slot, step] = order[head++];
    if (++replies == all) return client.stop();
    if (step + 1 < steps) return send(slot, step + 1);
    if (width == 1) {
      const auto now = clock_type::now();
      laps.push_back(std::chrono::duration<double, std::micro>(now - std::exchange(begun, now)).count());
    }
    if (--to_start >= 0) send(slot, 0);
  });
  for (int s = 0; s < width; ++s, --to_start) send(s, 0);
  io.run();
  return m.cost_of(static_cast<std::size_t>(pairs), std::move(laps));
}

asio::awaitable<void> lock_and_unlock(client& redis, int slot, int& left, std::vector<double>* laps) {
  auto mutex = redis.mutex("bench:" + std::to_string(slot));
  while (left-- > 0) {
    const auto begun = clock_type::now();
    auto held = co_await mutex.lock();
    co_await held.unlock();
    if (laps) laps->push_back(std::chrono::duration<double, std::micro>(clock_type::now() - begun).count());
  }
}

cost run_holdfast(const test::real_redis& server, int width, int pairs) {
  asio::io_context io(1);
  config c;
  c.url = server.unix_url();
  client redis(io.get_executor(), c);
  int warm = 1;
  asio::co_spawn(io, lock_and_unlock(redis, 0, warm, nullptr), asio::detached);
  io.run();
  io.restart();
  std::vector<double> laps;
  if (width == 1) laps.reserve(static_cast<std::size_t>(pairs));
  int left = pairs;
  for (int s = 0; s < width; ++s)
    asio::co_spawn(io, lock_and_unlock(redis, s, left, width == 1 ? &laps : nullptr), asio::detached);
  const meter m(server.pid());
  io.run();
  return m.cost_of(static_cast<std::size_t>(pairs), std::move(laps));
}

/// The medians of all rounds.
cost middle(const std::vector<cost>& runs) {
  const auto of = [&](double cost::*field) {
    std::vector<double> values;
    for (const auto& r : runs) values.push_back(r.*field);
    return median(std::move(values));
  };
  return {of(&cost::p50_us), of(&cost::rate), of(&cost::client_us), of(&cost::server_us)};
}

void print(const char* what, const cost& c) {
  std::printf("  %-34s p50 %7.1f us   %8.0f pairs/s   client %6.2f us   server %6.2f us\n", what, c.p50_us, c.rate,
              c.client_us, c.server_us);
}

}  // namespace

int main(int argc, char** argv) {
  const int scale = argc > 1 ? std::atoi(argv[1]) : 10;  // thousand pairs a round at c=1; ten times as many at c=256
  test::real_redis server;
  test::raw_client admin(server);
  const redisson_scripts redisson(admin);
  run_holdfast(server, 1, 1);  // loads our scripts
  const int alone = scale * 1000, many = scale * 10'000;

  std::vector<cost> ours1, bare1, ours256, bare256, minimal256, redisson256;
  for (int r = 0; r < rounds; ++r) {
    bare1.push_back(run_bare(server, 1, alone, our_pair));
    ours1.push_back(run_holdfast(server, 1, alone));
    bare256.push_back(run_bare(server, 256, many, our_pair));
    ours256.push_back(run_holdfast(server, 256, many));
    minimal256.push_back(run_bare(server, 256, many, our_pair, bare::commands));
    redisson256.push_back(run_bare(server, 256, many, [&](int slot) { return redisson.pair(slot); }));
  }
  const auto o1 = middle(ours1), b1 = middle(bare1), o256 = middle(ours256), b256 = middle(bare256),
             m256 = middle(minimal256), r256 = middle(redisson256);
  std::printf("unix socket, medians of %d rounds, %d and %d pairs a round; CPU for one pair\nc=1\n", rounds, alone,
              many);
  print("holdfast", o1);
  print("bare client, the same commands", b1);
  std::printf("c=256\n");
  print("holdfast", o256);
  print("bare client, the same commands", b256);
  print("the same, formatted and parsed", m256);
  print("bare client, Redisson's commands", r256);
  std::printf("ratios\n");
  std::printf("  pair-c1      p50, holdfast / bare            %.2f\n", o1.p50_us / b1.p50_us);
  std::printf("  pair-server  server CPU, ours / Redisson's   %.2f\n", b256.server_us / r256.server_us);
  std::printf("  pair-client  client CPU, holdfast / bare     %.2f\n", o256.client_us / b256.client_us);
  std::printf("               client CPU, holdfast / formatted and parsed %.2f\n", o256.client_us / m256.client_us);
  std::printf("  pair-c256    pairs/s, holdfast / bare        %.2f\n", o256.rate / b256.rate);
}
