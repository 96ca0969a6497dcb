// SPDX-License-Identifier: BSL-1.0
#include "bench/baselines.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <iterator>
#include <list>
#include <memory>
#include <stdexcept>
#include <utility>

#include "bench/scenario.hpp"
#include "bench/work.hpp"
#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "support/child_process.hpp"
#include "support/net.hpp"
#include "support/redisson_peer.hpp"
#include "support/redisson_scripts.hpp"

namespace holdfast::bench {
namespace {

using boost::system::error_code;
using test::redisson_peer;
namespace scripts = test::redisson;

constexpr auto ttl_text = "30000";  // ms
constexpr long in_a_script = 100;   // so many locks are renewed together

/// Redisson 3's, without a latch. KEYS: lock, channel. ARGV: message, ttl, owner.
constexpr auto plain_unlock_script = R"(
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return false end
if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[1])
return 1)";

std::string loaded(test::raw_client& to, std::string_view script) { return to("SCRIPT", "LOAD", script).to_string(); }

/// Runs what is ready, and what comes, until `done()`.
template <class Done>
void run_until(asio::io_context& io, Done done) {
  while (!done())
    if (io.run_one() == 0) throw std::runtime_error("the server has gone");
}

/// The renewal of the locks `first` and so many after it, of `n` from `from` on, as one command.
std::string renewal_command(long from, long first, long count, long n, milliseconds ttl) {
  std::list<detail::lock_keys> names;
  std::vector<detail::renewal> holds;
  for (long i = 0; i < count; ++i) {
    const auto lock = from + (first + i) % n;
    holds.push_back({&names.emplace_back(detail::plain_lock, name_of(lock)), field_of(lock), {ttl}});
  }
  std::string bytes;
  detail::plain_lock.renew.make(holds).append_to(bytes, false);
  return bytes;
}

asio::awaitable<void> wait_for(asio::steady_timer& event) {
  error_code cancelled;
  co_await event.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

void forget(std::deque<asio::steady_timer*>& all, asio::steady_timer& which) {
  if (const auto found = std::find(all.begin(), all.end(), &which); found != all.end()) all.erase(found);
}

}  // namespace

// ---- pairs

sequence our_pair(int slot) { return {acquire_command(slot), release_command(slot)}; }

hiredis_sequences::hiredis_sequences(int slots) {
  for (int s = 0; s < slots; ++s) {
    auto& its = words_.emplace_back();
    const auto pair = our_pair(s);
    for (std::size_t step = 0; step < its.size(); ++step) {
      test::value words;
      test::parse_value(pair[step], words);
      std::ranges::move(words.strings(), std::back_inserter(its[step]));
    }
  }
}

sequence hiredis_sequences::pair(int slot) const {
  const auto field = field_of(slot).to_text();  // the last word of both
  sequence made;
  for (const auto& words : words_[static_cast<std::size_t>(slot)]) {
    std::array<const char*, 16> argv;
    std::array<std::size_t, 16> sizes;
    for (std::size_t n = 0; n < words.size(); ++n) {
      const std::string_view word = n + 1 < words.size() ? std::string_view(words[n]) : std::string_view(field);
      argv[n] = word.data();
      sizes[n] = word.size();
    }
    char* bytes = nullptr;
    const auto size = ::redisFormatCommandArgv(&bytes, static_cast<int>(words.size()), argv.data(), sizes.data());
    if (size < 0) throw std::bad_alloc();
    made.emplace_back(bytes, static_cast<std::size_t>(size));
    ::redisFreeCommand(bytes);
  }
  return made;
}

redisson_sequences::redisson_sequences(test::raw_client& to)
    : acquire_(loaded(to, scripts::acquire_script)), plain_release_(loaded(to, plain_unlock_script)),
      release_(loaded(to, scripts::unlock_script)) {}

sequence redisson_sequences::plain_pair(int slot) const {
  const auto keys = keys_of(slot);
  const auto owner = field_of(slot).to_text();
  return {
      redis::make_command({"EVALSHA", acquire_, "1", keys.lock, ttl_text, owner}),
      redis::make_command({"EVALSHA", plain_release_, "2", keys.lock, detail::channel_of(keys), "0", ttl_text, owner})};
}

sequence redisson_sequences::pair(int slot) const {
  const auto keys = keys_of(slot);
  const auto owner = field_of(slot).to_text();
  const auto latch = redisson_peer::latch_key(keys.lock, "00112233445566778899aabbccddeeff");
  return {redis::make_command({"EVALSHA", acquire_, "1", keys.lock, ttl_text, owner}),
          redis::make_command({"EVALSHA", release_, "3", keys.lock, detail::channel_of(keys), latch, "0", ttl_text,
                               owner, "publish", std::to_string(scripts::latch_ttl)}),
          redis::make_command({"DEL", latch})};
}

pair_cost bare_pairs(const std::string& path, int width, long pairs, const make_sequence& make, bare how) {
  asio::io_context io(1);
  bare_client client(io, path, how == bare::commands);
  test::raw_client admin(path);
  std::vector<sequence> slots;
  for (int s = 0; s < width; ++s) slots.push_back(make(s));
  const auto steps = slots[0].size();
  const auto all = steps * static_cast<std::size_t>(pairs);
  laps each;
  if (width == 1) each.reserve(static_cast<std::size_t>(pairs));
  // Who waits for which step: replies come in the order of the commands.
  std::vector<std::pair<int, std::size_t>> order;
  order.reserve(all);
  std::size_t replies = 0;
  auto to_start = pairs;
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
    if (width == 1) each.push_back(lap_us(begun));
    if (--to_start >= 0) send(slot, 0);
  });
  for (int s = 0; s < width && to_start > 0; ++s, --to_start) send(s, 0);
  io.run();
  return per_pair(m.stop(), pairs, std::move(each));
}

pair_cost blocking_pairs(const std::string& path, int width, long pairs) {
  const auto socket = test::connect_unix(path);
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
  test::raw_client admin(path);
  meter m(admin);
  const auto batches_of_each = std::max(1L, pairs / width);
  for (long b = 0; b < batches_of_each; ++b)
    for (const auto& batch : batches) exchange(batch);
  return per_pair(m.stop(), batches_of_each * width);
}

burst_times bare_burst(const std::string& path, long n) {
  asio::io_context io(1);
  bare_client client(io, path, true);
  long replies = 0;
  client.start([&] { ++replies; });
  const auto send_all = [&](auto make) {
    const auto begun = clock::now();
    replies = 0;
    for (long i = 0; i < n; ++i) client.send(make(i));
    run_until(io, [&] { return replies == n; });
    return seconds_since(begun);
  };
  const auto acquires = send_all(acquire_command);
  return {acquires, send_all(release_command)};
}

pair_cost hiredis_pairs(const std::string& path, long pairs) {
  const std::unique_ptr<redisContext, void (*)(redisContext*)> to(::redisConnectUnix(path.c_str()), ::redisFree);
  const auto ask = [&](const std::string& command) {
    void* said = nullptr;
    if (::redisAppendFormattedCommand(to.get(), command.data(), command.size()) != REDIS_OK ||
        ::redisGetReply(to.get(), &said) != REDIS_OK)
      throw std::runtime_error("the server has gone");
    ::freeReplyObject(said);
  };
  const auto pair = our_pair(0);
  test::raw_client admin(path);
  laps each;
  each.reserve(static_cast<std::size_t>(pairs));
  meter m(admin);
  auto begun = clock::now();
  for (long i = 0; i < pairs; ++i) {
    for (const auto& command : pair) ask(command);
    each.push_back(lap_us(begun));
  }
  return per_pair(m.stop(), pairs, std::move(each));
}

// ---- round trips

double redis_benchmark_rate(const std::string& path, const std::string& command, long n) {
  constexpr auto program = "redis-benchmark";
  std::vector<std::string> argv{program, "-s", path, "-c", "1", "-n", std::to_string(n), "--csv"};
  test::value words;
  test::parse_value(command, words);
  std::ranges::move(words.strings(), std::back_inserter(argv));
  test::child_process child({.executable = program, .argv = std::move(argv)});
  child.close_input();
  const auto said = child.read_all(plan::patience);
  const auto last = said.rfind('\n', said.size() - 2) + 1;  // "test","rps", …
  const auto rate = said.find("\",\"", last);
  if (child.wait(std::chrono::seconds(5)) != 0 || rate == said.npos) throw not_finished("redis-benchmark says " + said);
  return std::stod(said.substr(rate + 3));
}

bare_trips::bare_trips(std::uint16_t port, sequence steps) : client_(io_, port, false), steps_(std::move(steps)) {
  client_.start([this] { ++replies_; });
}

void bare_trips::live(long pairs, laps& all) {
  auto begun = clock::now();
  for (long i = 0; i < pairs; ++i) {
    for (const auto& step : steps_) {
      client_.send(step);
      run_until(io_, [this, before = replies_] { return replies_ != before; });
    }
    all.push_back(lap_us(begun));
  }
}

double bare_round_trip(const std::string& path, long trips) {
  const auto command = acquire_command(0);
  return bare_pairs(path, 1, trips, [&](int) { return sequence{command}; }).p50_us;
}

idle_trips bare_trips_now_and_then(const std::string& path, clock::time_point begin, clock::time_point end) {
  constexpr auto now_and_then = std::chrono::milliseconds(10);
  asio::io_context io(1);
  bare_client client(io, path, false);
  asio::steady_timer next(io);
  const auto pair = our_pair(0);
  laps took;
  std::size_t answered = 0;
  auto begun = clock::now();
  const std::function<void()> wait = [&] {
    if (clock::now() >= end) return client.stop();
    next.expires_after(now_and_then);
    next.async_wait([&](auto) {
      begun = clock::now();
      answered = 0;
      client.send(pair[0]);
    });
  };
  client.start([&] {
    if (++answered < pair.size()) return client.send(pair[answered]);
    took.push_back(lap_us(begun));
    wait();
  });
  next.expires_at(begin);
  next.async_wait([&](auto) { wait(); });
  io.run();
  return {std::ssize(took), median(took)};
}

laps bare_majority(const std::vector<std::string>& paths, const std::vector<sequence>& pair_of_each,
                   std::size_t majority, long pairs) {
  asio::io_context io(1);
  std::deque<bare_client> each;
  for (const auto& path : paths) each.emplace_back(io, path, false);
  laps all;
  long step = 0;  // so many were answered by a majority
  std::vector<long> replies(paths.size());
  std::size_t answered = 0;
  auto begun = clock::now();
  const auto send = [&] {
    answered = 0;
    for (std::size_t n = 0; n < each.size(); ++n) each[n].send(pair_of_each[n][static_cast<std::size_t>(step % 2)]);
  };
  for (std::size_t n = 0; n < each.size(); ++n)
    each[n].start([&, n] {
      if (++replies[n] != step + 1 || ++answered < majority) return;
      ++step;
      if (step % 2 == 0) all.push_back(lap_us(begun));
      if (step < 2 * pairs) return send();
      for (auto& one : each) one.stop();
    });
  send();
  io.run();
  return all;
}

// ---- renewals

double bare_renewals(const std::string& path, long n, milliseconds ttl, long commands, pace how) {
  constexpr long under_way = 16;
  test::raw_client admin(path);
  loaded(admin, detail::lua::renew.body);
  asio::io_context io(1);
  bare_client client(io, path, true);
  long sent = 0, answered = 0;
  const auto send = [&] { client.send(renewal_command(0, sent++ * in_a_script, in_a_script, n, ttl)); };
  const auto period = clock::duration(ttl) / 3;
  asio::steady_timer due(io, clock::now());
  std::function<void(error_code)> send_when_due = [&](error_code) {
    send();
    if (sent == commands) return;
    due.expires_at(due.expiry() + period * in_a_script / n);
    due.async_wait(send_when_due);
  };
  const auto begun = own_cpu();
  client.start([&] {
    if (++answered == commands) return client.stop();
    if (how == pace::as_answered && sent < commands) send();
  });
  if (how == pace::when_due) {
    due.async_wait(send_when_due);
  } else {
    while (sent < std::min(under_way, commands)) send();
  }
  io.run();
  return own_cpu() - begun;
}

double bare_confirmation(const std::string& path, long n) {
  asio::io_context io(1);
  bare_client client(io, path, true);
  long replies = 0;
  client.start([&] { ++replies; });
  const auto await = [&](long wanted) {
    run_until(io, [&] { return replies >= wanted; });
    replies = 0;
  };
  for (long i = 0; i < n; ++i) client.send(acquire_command(n + i));
  await(n);
  const auto begun = clock::now();
  for (long done = 0; done < n; done += in_a_script)
    client.send(renewal_command(n, done, std::min(in_a_script, n - done), n, default_ttl));
  await((n + in_a_script - 1) / in_a_script);
  return seconds_since(begun);
}

// ---- Redisson's waiting protocol

redisson_process::wire::wire(asio::io_context& io, const std::string& path) : socket(io) {
  socket.connect(asio::local::stream_protocol::endpoint(path));
}

redisson_process::redisson_process(asio::io_context& io, const std::string& path, std::string name)
    : io_(io), name_(std::move(name)), channel_(redisson_peer::channel(name_)), uuid_(redisson_peer::new_uuid()),
      commands_(io, path), messages_(io, path) {
  listen(commands_, [this](const redis::reply& r) {
    auto* const q = asked_.front();
    asked_.pop_front();
    if (!q) return;
    q->reply = r;
    q->answered.cancel();
  });
  listen(messages_, [this](const redis::reply& r) { hear_message(r); });
}

void redisson_process::stop() {
  commands_.socket.close();
  messages_.socket.close();
}

template <class Hear>
void redisson_process::listen(wire& on, Hear hear) {
  on.socket.async_read_some(asio::buffer(on.in), [this, &on, hear](error_code failed, std::size_t size) {
    if (failed) return;
    on.replies.feed({on.in.data(), size});
    while (const auto r = on.replies.next()) {
      if (r->is_error()) throw std::runtime_error(r->text);
      hear(*r);
    }
    listen(on, hear);
  });
}

void redisson_process::send(wire& on, const std::string& command) {
  on.out += command;
  flush(on);
}

void redisson_process::flush(wire& on) {
  if (!on.writing.empty() || on.out.empty()) return;
  std::swap(on.writing, on.out);
  asio::async_write(on.socket, asio::buffer(on.writing), [this, &on](error_code failed, std::size_t) {
    if (failed) return;
    on.writing.clear();
    flush(on);
  });
}

asio::awaitable<redis::reply> redisson_process::ask(std::string command) {
  question q{timer(io_, timer::time_point::max()), {}};
  asked_.push_back(&q);
  send(commands_, command);
  co_await wait_for(q.answered);
  co_return std::move(q.reply);
}

// Empty: acquired. Else the holder's TTL.
asio::awaitable<std::optional<long long>> redisson_process::acquire(const std::string& owner) {
  auto command = redis::make_command({"EVAL", scripts::acquire_script, "1", name_, ttl_text, owner});
  const auto said = co_await ask(std::move(command));
  if (said.type == redis::reply::kind::nil) co_return std::nullopt;
  co_return said.integer;
}

asio::awaitable<void> redisson_process::lock(int thread) {
  const auto me = owner(thread);
  if (!co_await acquire(me)) co_return;
  if (waiting_++ == 0) {
    confirmed_ = false;
    send(messages_, redis::make_command({"SUBSCRIBE", channel_}));
  }
  co_await subscribed();
  for (;;) {
    const auto busy_for = co_await acquire(me);
    if (!busy_for) break;
    co_await wait_for_message(*busy_for);
  }
  if (--waiting_ > 0) co_return;
  permits_ = 0;
  send(messages_, redis::make_command({"UNSUBSCRIBE", channel_}));
}

asio::awaitable<void> redisson_process::unlock(int thread) {
  const auto latch = redisson_peer::latch_key(name_, redisson_peer::new_request());
  const auto latch_ttl = std::to_string(scripts::latch_ttl);
  const auto me = owner(thread);
  auto command = redis::make_command(
      {"EVAL", scripts::unlock_script, "3", name_, channel_, latch, "0", ttl_text, me, "publish", latch_ttl});
  co_await ask(std::move(command));
  asked_.push_back(nullptr);  // nobody waits for it
  send(commands_, redis::make_command({"DEL", latch}));
}

asio::awaitable<void> redisson_process::subscribed() {
  if (confirmed_) co_return;
  timer event(io_, timer::time_point::max());
  confirming_.push_back(&event);
  co_await wait_for(event);
}

asio::awaitable<void> redisson_process::wait_for_message(long long at_most_ms) {
  if (permits_ > 0) {
    --permits_;
    co_return;
  }
  timer event(io_);
  event.expires_after(std::chrono::milliseconds(at_most_ms));
  parked_.push_back(&event);
  co_await wait_for(event);
  forget(parked_, event);
}

void redisson_process::hear_message(const redis::reply& what) {
  const auto& word = what.elements.at(0).text;
  if (word == "subscribe") {
    confirmed_ = true;
    for (auto* event : std::exchange(confirming_, {})) event->cancel();
  } else if (word == "message") {
    if (parked_.empty()) {
      ++permits_;
    } else {
      auto* const next = parked_.front();
      parked_.pop_front();
      next->cancel();
    }
  }
}

}  // namespace holdfast::bench
