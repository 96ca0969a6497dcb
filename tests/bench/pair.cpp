// SPDX-License-Identifier: BSL-1.0
// The uncontended pair, lock and unlock: what the library adds to the commands that it sends, and what its scripts cost
// the server.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <boost/asio/detached.hpp>
#include <map>

#include "bench/bare_client.hpp"
#include "bench/meter.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"
#include "lua_scripts.hpp"
#include "support/net.hpp"

namespace holdfast::bench {
namespace {

using test::real_redis;

/// One pair as the commands of some protocol; the last of them ends it.
using sequence = std::vector<std::string>;

sequence our_pair(int slot) { return {acquire_command(slot), release_command(slot)}; }

std::string loaded(test::raw_client& to, std::string_view script) { return to("SCRIPT", "LOAD", script).to_string(); }

/// Redisson's hash of counts, from what its wire contract says.
struct redisson_scripts {
  explicit redisson_scripts(test::raw_client& to)
      : acquire(loaded(
            to,
            "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
            "redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil end; "
            "return redis.call('pttl', KEYS[1])")),
        plain_release(loaded(to,
                             "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end; "
                             "local left = redis.call('hincrby', KEYS[1], ARGV[3], -1); "
                             "if left > 0 then redis.call('pexpire', KEYS[1], ARGV[2]); return 0 end; "
                             "redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], ARGV[1]); return 1")),
        release(
            loaded(to,
                   "local seen = redis.call('get', KEYS[3]); if seen then return tonumber(seen) end; "
                   "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end; "
                   "local left = redis.call('hincrby', KEYS[1], ARGV[3], -1); "
                   "if left > 0 then redis.call('pexpire', KEYS[1], ARGV[2]); redis.call('set', KEYS[3], 0, 'px', "
                   "ARGV[5]); return 0 end; "
                   "redis.call('del', KEYS[1]); redis.call(ARGV[4], KEYS[2], ARGV[1]); redis.call('set', KEYS[3], 1, "
                   "'px', ARGV[5]); "
                   "return 1")) {}

  /// Three calls to acquire and four to release: what Redisson 3 did.
  sequence plain_pair(int slot) const {
    const auto keys = keys_of(slot);
    return {redis::make_command({"EVALSHA", acquire, "1", keys.lock, "30000", field_of(slot).to_text()}),
            redis::make_command({"EVALSHA", plain_release, "2", keys.lock, detail::channel_of(keys), "0", "30000",
                                 field_of(slot).to_text()})};
  }
  /// Redisson 4's present sequence: acquire, unlock with a latch, deletion of the latch.
  sequence pair(int slot) const {
    const auto keys = keys_of(slot);
    const std::string latch = "redisson_unlock_latch:{" + keys.lock + "}:00112233445566778899aabbccddeeff";
    return {redis::make_command({"EVALSHA", acquire, "1", keys.lock, "30000", field_of(slot).to_text()}),
            redis::make_command({"EVALSHA", release, "3", keys.lock, detail::channel_of(keys), latch, "0", "30000",
                                 field_of(slot).to_text(), "publish", "16000"}),
            redis::make_command({"DEL", latch})};
  }

  std::string acquire, plain_release, release;
};

/// What many pairs cost, all for one pair; CPU in µs.
struct pair_cost {
  double p50_us = 0;  // wall time; 0 where pairs overlap
  double rate = 0;    // pairs a second
  double client_us = 0, server_us = 0;
};

pair_cost per_pair(const cost& all, int pairs, std::vector<double> laps_us = {}) {
  return {laps_us.empty() ? 0 : median(std::move(laps_us)), pairs / all.seconds, all.client_cpu * 1e6 / pairs,
          all.server_cpu * 1e6 / pairs};
}

/// Whether the bare client only writes bytes that were made before and counts lines, or makes each command when it is
/// sent, with an owner field of its own, and parses each reply: the least that a client of any use does.
enum class bare { bytes, commands };

/// `pairs` of `make(slot)` with `width` under way at a time, by the bare client.
template <class Make>
pair_cost run_bare(const real_redis& server, int width, int pairs, Make make, bare how = bare::bytes) {
  asio::io_context io(1);
  bare_client client(io, server.socket_path(), how == bare::commands);
  test::raw_client admin(server);
  std::vector<sequence> slots;
  for (int s = 0; s < width; ++s) slots.push_back(make(s));
  const auto steps = slots[0].size();
  const auto all = steps * static_cast<std::size_t>(pairs);
  std::vector<double> laps;
  if (width == 1) laps.reserve(static_cast<std::size_t>(pairs));
  std::vector<std::pair<int, std::size_t>>
      order;  // who waits for which step: replies come in the order of the commands
  order.reserve(all);
  std::size_t replies = 0;
  int to_start = pairs;
  const auto send = [&](int slot, std::size_t step) {
    auto& commands = slots[static_cast<std::size_t>(slot)];
    order.emplace_back(slot, step);
    if (how == bare::commands && step == 0) commands = make(slot);
    client.send(commands[step]);
  };
  meter m(admin);
  auto begun = clock::now();
  client.start([&] {
    const auto [slot, step] = order[replies];
    if (++replies == all) return client.stop();
    if (step + 1 < steps) return send(slot, step + 1);
    if (width == 1) laps.push_back(lap_us(begun));
    if (--to_start >= 0) send(slot, 0);
  });
  for (int s = 0; s < width; ++s, --to_start) send(s, 0);
  io.run();
  return per_pair(m.stop(), pairs, std::move(laps));
}

/// The limit: writes `width` prepared acquires, then their releases, with blocking calls, and only counts lines.
pair_cost run_blocking(const real_redis& server, int width, int pairs) {
  const auto socket = test::connect_unix(server.socket_path());
  std::array<std::string, 2> batches;
  for (int s = 0; s < width; ++s) {
    batches[0] += acquire_command(s);
    batches[1] += release_command(s);
  }
  std::array<char, 65536> in;
  const auto exchange = [&](const std::string& batch) {
    std::size_t written = 0;
    for (long lines = 0; lines < width;) {  // reads while it writes: else a large batch stops both ends
      pollfd entry{socket.get(), static_cast<short>(POLLIN | (written < batch.size() ? POLLOUT : 0)), 0};
      ::poll(&entry, 1, -1);
      if (entry.revents & POLLOUT) {
        const auto size = ::send(socket.get(), batch.data() + written, batch.size() - written, MSG_DONTWAIT);
        if (size > 0) written += static_cast<std::size_t>(size);
      }
      if (entry.revents & POLLIN) {
        const auto size = ::read(socket.get(), in.data(), in.size());
        if (size <= 0) throw std::runtime_error("the server has gone");
        lines += std::count(in.data(), in.data() + size, '\n');
      }
    }
  };
  test::raw_client admin(server);
  meter m(admin);
  const int batches_of_each = std::max(1, pairs / width);
  for (int b = 0; b < batches_of_each; ++b)
    for (const auto& batch : batches) exchange(batch);
  return per_pair(m.stop(), batches_of_each * width);
}

asio::awaitable<void> lock_and_unlock(client& redis, int slot, int& left, std::vector<double>* laps) {
  auto mutex = redis.mutex(name_of(slot));
  auto begun = clock::now();
  while (left-- > 0) {
    auto held = co_await mutex.lock();
    co_await held.unlock();
    if (laps) laps->push_back(lap_us(begun));
  }
}

pair_cost run_holdfast(const real_redis& server, int width, int pairs) {
  asio::io_context io(1);
  auto redis = make_client(io, server);
  warm_up(io, redis);
  test::raw_client admin(server);
  std::vector<double> laps;
  if (width == 1) laps.reserve(static_cast<std::size_t>(pairs));
  int left = pairs;
  meter m(admin);
  for (int s = 0; s < width; ++s)
    asio::co_spawn(io, lock_and_unlock(redis, s, left, width == 1 ? &laps : nullptr), rethrow);
  io.run();
  return per_pair(m.stop(), pairs, std::move(laps));
}

/// All rounds of one way to do it.
struct ways : std::map<std::string, std::vector<pair_cost>> {
  double middle(const std::string& way, double pair_cost::*field) const {
    std::vector<double> values;
    for (const auto& round : at(way)) values.push_back(round.*field);
    return median(std::move(values));
  }
  /// `ours` ÷ `theirs`, with both beside it.
  finding compare(const std::string& ours, const std::string& theirs, double pair_cost::*field) const {
    const auto a = middle(ours, field), b = middle(theirs, field);
    return {a / b, {{ours, a}, {theirs, b}, {"rounds", at(ours).size()}}};
  }
};

constexpr int alone = 1, many = 256, most = 4096;  // pairs under way

std::vector<finding> c1(const plan& p, const real_redis& server) {
  const int pairs = static_cast<int>(p.scaled(10'000));
  ways w;
  p.rounds("pair-c1", [&] {
    w["bare"].push_back(run_bare(server, alone, pairs, our_pair));
    w["holdfast"].push_back(run_holdfast(server, alone, pairs));
  });
  return {w.compare("holdfast", "bare", &pair_cost::p50_us)};
}

std::vector<finding> rate(const plan& p, const real_redis& server, const std::string& name, int width) {
  const int pairs = static_cast<int>(p.scaled(100'000));
  ways w;
  p.rounds(name, [&] {
    w["blocking"].push_back(run_blocking(server, many, pairs));
    w["holdfast"].push_back(run_holdfast(server, width, pairs));
  });
  return {w.compare("holdfast", "blocking", &pair_cost::rate)};
}

std::vector<finding> server_cpu(const plan& p, const real_redis& server) {
  const int pairs = static_cast<int>(p.scaled(100'000));
  test::raw_client admin(server);
  const redisson_scripts redisson(admin);
  ways w;
  p.rounds("pair-server", [&] {
    w["ours"].push_back(run_bare(server, many, pairs, our_pair));
    w["redisson"].push_back(run_bare(server, many, pairs, [&](int slot) { return redisson.pair(slot); }));
    w["plain"].push_back(run_bare(server, many, pairs, [&](int slot) { return redisson.plain_pair(slot); }));
  });
  return {w.compare("ours", "redisson", &pair_cost::server_us), w.compare("ours", "plain", &pair_cost::server_us)};
}

/// A simple lock's pair, with one of the ways to acquire.
sequence simple_pair(int slot, decltype(detail::kind::acquire) by) {
  const auto name = name_of(slot);
  const detail::lock_keys keys(detail::simple_lock, name);
  const auto field = field_of(slot);
  std::string acquire, release;
  by.make(keys, default_ttl, field).append_to(acquire, false);
  detail::simple_lock.release.make(keys, field).append_to(release, false);
  return {std::move(acquire), std::move(release)};
}

std::vector<finding> simple_server_cpu(const plan& p, const real_redis& server) {
  const int pairs = static_cast<int>(p.scaled(100'000));
  test::raw_client admin(server);
  loaded(admin, detail::lua::simple_acquire.body);
  loaded(admin, detail::lua::simple_release.body);
  ways w;
  p.rounds("simple-server", [&] {
    w["plain"].push_back(run_bare(server, many, pairs, our_pair));
    for (const auto& [way, step] :
         {std::pair("set", detail::simple_lock.first_acquire), {"script", detail::simple_lock.acquire}})
      w[way].push_back(run_bare(server, many, pairs, [by = step](int slot) { return simple_pair(slot, by); }));
  });
  return {w.compare("set", "plain", &pair_cost::server_us), w.compare("script", "plain", &pair_cost::server_us)};
}

std::vector<finding> client_cpu(const plan& p, const real_redis& server) {
  const int pairs = static_cast<int>(p.scaled(100'000));
  ways w;
  p.rounds("pair-client", [&] {
    w["holdfast"].push_back(run_holdfast(server, many, pairs));
    w["bare"].push_back(run_bare(server, many, pairs, our_pair, bare::commands));
  });
  return {w.compare("holdfast", "bare", &pair_cost::client_us)};
}

template <class Measure>
scenario pair_of(std::vector<bound> bounds, Measure measure) {
  return {bounds[0].target, bounds, [measure](const plan& p) {
            const real_redis server;
            load_scripts(server);
            return measure(p, server);
          }};
}

scenario rate_of(const std::string& name, int width) {
  return pair_of({{name, "pairs a second / blocking loop of prepared bytes", at_least(0.95)}},
                 [=](const plan& p, const real_redis& server) { return rate(p, server, name, width); });
}

}  // namespace

std::vector<scenario> pair_scenarios() {
  return {pair_of({{"pair-c1", "p50 of a pair, us / bare client", at_most(1.05)}}, c1),
          rate_of("pair-c256", many),
          rate_of("pair-c4096", most),
          pair_of({{"pair-server", "server CPU of a pair, us / Redisson's commands", at_most(0.65)},
                   {"pair-server/plain", "server CPU of a pair, us / plain 3 + 4 calls", at_most(0.85)}},
                  server_cpu),
          pair_of({{"simple-server", "server CPU of a simple lock's pair, us / the plain lock's", at_most(0.7)},
                   {"simple-server/script", "the same where the script acquires", at_most(0.9)}},
                  simple_server_cpu),
          pair_of({{"pair-client", "client CPU of a pair, us / bare client that formats and parses", at_most(3.5)}},
                  client_cpu)};
}

}  // namespace holdfast::bench
