// SPDX-License-Identifier: BSL-1.0
// interop_agent: holdfast's side of the interop tests. agents.py has the commands.
#include <holdfast/holdfast.hpp>

#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::string percent_decoded(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '%') {
      bytes += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      bytes += text[i];
    }
  return bytes;
}

/// The words of a command. One that is missing is an error of the test.
struct command {
  std::vector<std::string> words;

  const std::string& number() const { return words.at(0); }
  const std::string& task() const { return words.at(1); }
  const std::string& verb() const { return words.at(2); }
  const std::string& place() const { return words.at(3); }
  const std::string& kind() const { return words.at(4); }
  std::string name() const { return percent_decoded(words.at(5)); }
  std::string lock() const { return place() + ' ' + kind() + ' ' + words.at(5); }
  holdfast::lock_options options() const {
    holdfast::lock_options terms;
    if (words.at(6) != "-") terms.ttl = milliseconds(std::stoll(words[6]));
    return terms;
  }
};

std::optional<std::uint64_t> token_of(const holdfast::lease& lease) { return lease.token(); }
std::optional<std::uint64_t> token_of(const holdfast::multi_lease&) { return std::nullopt; }

template <class Lease>
std::string granted(const Lease& lease) {
  const auto token = token_of(lease);
  return token ? "ok " + std::to_string(*token) : "ok";
}

/// A number in a file. Only the lock protects it: two holders at once lose a count.
class witness {
 public:
  explicit witness(std::string path) : path_(std::move(path)) {}

  long long read() const {
    long long number = 0;
    if (std::ifstream in(path_); !(in >> number)) throw std::runtime_error("the witness is torn");
    return number;
  }
  void write(long long number) const { std::ofstream(path_) << number; }
  void note(std::uint64_t token) const { std::ofstream(path_ + ".tokens", std::ios::app) << token << '\n'; }

 private:
  std::string path_;
};

/// A writer counts the number up. A reader sees it unchanged.
template <class Lock>
asio::awaitable<std::string> stress(Lock lock, bool writes, holdfast::lock_options terms, long long rounds,
                                    milliseconds lasts, witness counter) {
  asio::steady_timer inside(co_await asio::this_coro::executor);
  const auto end = steady_clock::now() + lasts;
  long long done = 0;
  for (; done < rounds && steady_clock::now() < end; ++done) {
    auto held = co_await lock.lock(terms);
    const auto before = counter.read();
    inside.expires_after(1ms);
    co_await inside.async_wait(asio::use_awaitable);
    if (!writes && counter.read() != before) throw std::runtime_error("a writer was beside a reader");
    if (writes) counter.write(before + 1);
    if (const auto token = token_of(held)) counter.note(*token);
    co_await held.unlock();
  }
  co_return "ok " + std::to_string(done);
}

/// What every lock has.
template <class Lock, class Lease>
asio::awaitable<std::string> obey(const command& c, Lock lock, std::vector<Lease>& held) {
  if (c.verb() == "lock") {
    held.push_back(co_await lock.lock(c.options()));
    co_return granted(held.back());
  }
  if (c.verb() == "try") {
    auto lease = co_await lock.try_lock(c.options());
    if (!lease) co_return "busy";
    held.push_back(std::move(*lease));
    co_return granted(held.back());
  }
  if (c.verb() == "unlock") {
    if (held.empty()) throw std::invalid_argument("nothing is held");
    auto last = std::move(held.back());
    held.pop_back();
    co_await last.unlock();
    co_return "ok";
  }
  if (c.verb() == "renew") {
    co_await held.back().renew(c.options().ttl.value_or(0ms));
    co_return "ok";
  }
  if (c.verb() == "stress")
    co_return co_await stress(lock, c.kind() != "read", c.options(), std::stoll(c.words.at(7)),
                              milliseconds(std::stoll(c.words.at(8))), witness(percent_decoded(c.words.at(9))));
  throw std::invalid_argument("unknown command");
}

/// What a latch has.
asio::awaitable<std::string> count(const command& c, holdfast::latch latch) {
  if (c.verb() == "set") {
    const bool set = co_await latch.try_set(static_cast<std::uint32_t>(std::stoul(c.words.at(6))));
    co_return set ? "yes" : "no";
  }
  if (c.verb() == "left") {
    const auto left = co_await latch.count();
    co_return std::to_string(left);
  }
  if (c.verb() == "down")
    co_await latch.count_down();
  else if (c.verb() == "wait")
    co_await latch.wait();
  else
    throw std::invalid_argument("unknown command");
  co_return "ok";
}

class agent {
 public:
  asio::awaitable<void> read_commands() {
    asio::posix::stream_descriptor input(io_, ::dup(STDIN_FILENO));
    for (std::string buffer;;) {
      const auto [failed, size] = co_await asio::async_read_until(input, asio::dynamic_buffer(buffer), '\n',
                                                                  asio::as_tuple(asio::use_awaitable));
      if (failed) break;
      asio::co_spawn(io_, answer({split(buffer.substr(0, size - 1), ' ')}), asio::detached);
      buffer.erase(0, size);
    }
    io_.stop();
  }

  void run() {
    asio::co_spawn(io_, read_commands(), asio::detached);
    io_.run();
  }

 private:
  struct task {
    holdfast::owner owner;
    std::map<std::string, std::vector<holdfast::lease>> leases;
    std::map<std::string, std::vector<holdfast::multi_lease>> several;
  };

  asio::awaitable<void> answer(command c) {
    std::string reply;
    try {
      reply = co_await perform(c);
    } catch (const holdfast::error& e) {
      reply = e.code() == holdfast::errc::lost               ? "lost"
              : e.code() == holdfast::errc::corrupt_lock     ? "corrupt"
              : e.code() == holdfast::errc::already_held     ? "already"
              : e.code() == holdfast::errc::unconfirmed      ? "unconfirmed"
              : e.code() == holdfast::condition::retry_later ? "later"
                                                             : std::string("error ") + e.what();
    } catch (const std::exception& e) {
      reply = std::string("error ") + e.what();
    }
    std::cout << c.number() << ' ' << reply << std::endl;
  }

  asio::awaitable<std::string> perform(const command& c) {
    if (c.verb() == "connect") {
      connect(c);
      co_return "ok";
    }
    const auto& client = clients_.at(c.place());
    if (c.verb() == "initialise") {
      co_await holdfast::red_lock::initialise(client);
      co_return "ok";
    }
    if (c.kind() == "countdown") co_return co_await count(c, client.latch(c.name()));
    auto& own = tasks_[c.task()];
    if (c.kind() == "multi") {
      const std::vector<holdfast::mutex> parts{client.mutex(c.name() + ":1", own.owner),
                                               client.mutex(c.name() + ":2", own.owner)};
      co_return co_await obey(c, holdfast::multi_lock(parts), own.several[c.lock()]);
    }
    const auto lock = mutex(client, c, own.owner);
    if (c.verb() == "force") co_return co_await lock.force_unlock() ? "yes" : "no";
    if (c.verb() == "locked") co_return co_await lock.is_locked() ? "yes" : "no";
    if (c.verb() == "holder") {
      const auto holder = co_await lock.holder();
      co_return holder ? holder->id + ' ' + std::to_string(holder->count) : "none";
    }
    auto& leases = own.leases[c.lock()];
    if (c.verb() == "downgrade") {
      co_await client.shared_mutex(c.name(), own.owner).downgrade(leases.back());
      co_return "ok";
    }
    co_return co_await obey(c, lock, leases);
  }

  static holdfast::mutex mutex(const holdfast::client& client, const command& c, holdfast::owner owner) {
    if (c.kind() == "permit") return client.expirable_semaphore(c.name(), 1).as_mutex();
    if (c.kind() == "permits") return client.expirable_semaphore(c.name(), 3).as_mutex();
    if (c.kind() == "read") return client.shared_mutex(c.name(), owner).reader();
    if (c.kind() == "write") return client.shared_mutex(c.name(), owner).writer();
    if (c.kind() == "in_order") return client.fair_mutex(c.name(), owner);
    if (c.kind() == "leader") return client.election(c.name(), owner).candidate("an address");
    if (c.kind() == "fenced") return client.fenced_mutex(c.name(), owner);
    if (c.kind() == "simple") return client.simple_mutex(c.name(), owner);
    if (c.kind() == "red") return client.red_lock(c.name(), owner, holdfast::reentrancy::not_reentrant);
    return client.mutex(c.name(), owner);  // also beside another kind of Redisson's
  }

  // connect PLACE one|sentinel|cluster|several HOSTS TTL POLL PUBSUB PUSH
  void connect(const command& c) {
    const auto &topology = c.words.at(4), &hosts = c.words.at(5);
    holdfast::config settings;
    if (topology == "one") settings.url = "redis://" + hosts + "?push=" + c.words.at(9);
    if (topology == "sentinel") settings.url = "redis+sentinel://" + hosts + "/mymaster";
    if (topology == "cluster") settings.url = "redis+cluster://" + hosts;
    if (topology == "cluster") settings.url += "?pubsub=" + c.words.at(8);
    if (topology == "several")
      for (const auto& host : split(hosts, ',')) settings.red_lock.primaries.push_back("redis://" + host);
    settings.ttl = milliseconds(std::stoll(c.words.at(6)));
    settings.poll_cap = milliseconds(std::stoll(c.words.at(7)));
    settings.command_timeout = 10s;  // a busy machine is no outage
    settings.red_lock.longest_ttl = topology == "several" ? 60s : 0s;
    settings.quiet = true;
    clients_.insert_or_assign(c.place(), holdfast::client(io_, settings));
  }

  asio::io_context io_{1};
  std::map<std::string, holdfast::client> clients_;
  std::map<std::string, task> tasks_;
};

}  // namespace

int main() { agent().run(); }
