// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fnmatch.h>

#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/lock_text.hpp"
#include "cli/output.hpp"
#include "cli/server/lock_reader.hpp"
#include "cli/server/permissions.hpp"

/// Decision: messages and polls, and nothing is written. A poll tells the holder; a message tells that it released the
/// lock, and that it is time to look. A lock that ends without a message has expired or was deleted. A hold that begins
/// and ends between two polls is seen by its message alone. A permit's is not seen then, if other permits are out.
///
/// Decision: a message about a shared mutex tells only that it is time to look. A writer that gives up its wait sends
/// one while another writes, and one release may send two. So a hold ends when it is missing, and a hold of a shared
/// mutex that begins and ends between two looks is not seen. The same holds for an election, whose terms tell one hold
/// from the next. Its observers' message of a term comes after an end that nobody has told.
///
/// Decision: patterns (PSUBSCRIBE), because a subscription to each channel would count as a waiter. Sharded channels
/// have no patterns, so a cluster is polled alone. Publishers count this program as a client that received a release.
/// An ACL allows a pattern only if it has the same text: where that of the watched names is refused, those of
/// `holdfast acl` follow.
namespace holdfast::cli {
namespace {

using clock = std::chrono::steady_clock;

/// The meaning of a message: a hold has ended; something may have changed; or somebody leads, perhaps with a new value.
enum class notice { release, change, leader };

notice notice_of(std::string_view channel, std::string_view text) {
  const auto stem = channel.substr(0, channel.find(':'));
  if (stem == channels::election) return text == "0" ? notice::change : notice::leader;
  return stem == channels::shared_mutex || stem == channels::wake ? notice::change : notice::release;
}

bool is_election(const lock_facts* lock) { return lock && lock->leader; }

class watching {
 public:
  watching(const watch_options& options, const detail::settings& settings, network& over)
      : options_(options), settings_(settings), over_(over),
        one_name_(options.pattern.find_first_of("*?[\\") == std::string::npos) {}

  asio::awaitable<void> run() {
    bool away = false;
    while (!is_over()) {
      try {
        co_await connect();
        if (std::exchange(away, false)) report_server("connected", "");
        do {  // a short watch looks once
          co_await poll();
          co_await listen();
        } while (!is_over());
      } catch (const error& failed) {
        if (first_) throw;
        if (!std::exchange(away, true)) report_server("unreachable", failed.what());
      }
      if (away) {
        asio::steady_timer alarm(co_await asio::this_coro::executor, options_.every);
        co_await alarm.async_wait(asio::use_awaitable);
      }
    }
  }

 private:
  bool is_over() const { return options_.duration && clock::now() - begin_ >= *options_.duration; }

  asio::awaitable<void> connect() {
    reader_ = co_await lock_reader::open(over_, settings_);
    listener_.reset();
    if (settings_.kind == detail::deployment::cluster) co_return;
    auto& server = reader_->server(0);
    listener_ = co_await session::open(over_, server.node(), milliseconds(2'000));
    const auto name = one_name_ ? literal_pattern(options_.pattern) : options_.pattern;
    bool listens = false;
    for (const auto stem : channels::all) {
      const auto& prefix = settings_.values.key_prefix;
      const std::vector<words> choices{{reader_->channel_pattern(stem, name)},
                                       channel_patterns(stem, prefix, true),
                                       channel_patterns(stem, prefix, false)};
      bool allowed = false;
      for (auto choice = choices.begin(); !allowed && choice != choices.end(); ++choice)
        for (const auto& pattern : *choice) allowed |= co_await subscribe(pattern);
      listens |= allowed;
    }
    if (!listens) listener_.reset();  // polls alone
  }

  /// False: an ACL withholds it.
  asio::awaitable<bool> subscribe(std::string pattern) {
    words command{"PSUBSCRIBE", std::move(pattern)};
    const auto reply = co_await listener_->ask(std::move(command));
    co_return !reply.is_error();
  }

  asio::awaitable<void> poll() {
    std::map<std::string, lock_facts> now;
    if (one_name_) {
      auto key = co_await reader_->read(options_.pattern);
      if (key.lock) now.emplace(key.lock->name, std::move(*key.lock));
    } else {
      const lock_reader::finder keep = [&](const lock_facts& lock) { now.insert_or_assign(lock.name, lock); };
      co_await reader_->scan(options_.pattern, keep);
    }
    co_await reader_->list_processes();
    for (auto& [name, lock] : now) reader_->name_processes(lock);
    const auto told = co_await notices();
    for (const auto& [name, lock] : now)
      if (!told.contains(name)) compare(known_.contains(name) ? &known_.at(name) : nullptr, &lock);
    for (const auto& [name, lock] : known_)
      if (!told.contains(name) && !now.contains(name)) compare(&lock, nullptr);
    for (const auto& [name, notice] : told) {
      now.erase(name);
      if (auto known = known_.extract(name)) now.insert(std::move(known));
    }
    known_ = std::move(now);
    first_ = false;
    for (const auto& [name, notice] : told) co_await look_at(name, notice);
  }

  /// The names whose messages came during a poll, with the first one of each: it is about the hold that is known. A
  /// poll that sees the end of their holds must not call it an end without a message.
  asio::awaitable<std::map<std::string, notice>> notices() {
    std::map<std::string, notice> names;
    while (listener_) {
      const auto message = co_await listener_->next(milliseconds(0));
      if (!message) break;
      if (const auto name = name_in(*message)) names.emplace(*name, notice_in(*message));
    }
    co_return names;
  }

  static notice notice_in(const redis::reply& message) {
    return notice_of(message.elements[2].text, message.elements[3].text);
  }

  /// Empty: it is no message about a name that is watched.
  std::optional<std::string> name_in(const redis::reply& message) const {
    if (message.elements.size() != 4) return std::nullopt;
    auto name = reader_->name_of_channel(message.elements[2].text);
    return name && is_watched(*name) ? name : std::nullopt;
  }

  bool is_watched(const std::string& name) const {
    return one_name_ ? name == options_.pattern : ::fnmatch(options_.pattern.c_str(), name.c_str(), 0) == 0;
  }

  /// Messages, until it is time for the next poll.
  asio::awaitable<void> listen() {
    const auto until = clock::now() + options_.every;
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(until - clock::now());
      if (left <= milliseconds(0) || is_over()) co_return;
      if (!listener_) {
        asio::steady_timer alarm(co_await asio::this_coro::executor, left);
        co_await alarm.async_wait(asio::use_awaitable);
        co_return;
      }
      const auto message = co_await listener_->next(left);
      const auto name = message ? name_in(*message) : std::nullopt;
      if (name) co_await look_at(*name, notice_in(*message));
    }
  }

  /// After a message about this name.
  asio::awaitable<void> look_at(std::string name, notice received) {
    auto key = co_await reader_->read(name);
    const auto is_known = [](const hold_facts& hold) { return hold.process.has_value(); };
    if (key.lock && !std::all_of(key.lock->holds.begin(), key.lock->holds.end(), is_known)) {
      co_await reader_->list_processes();  // perhaps a client that has come since
      reader_->name_processes(*key.lock);
    }
    auto before = known_.extract(name);
    const auto* lock = before ? &before.mapped() : nullptr;
    const auto* now = key.lock ? &*key.lock : nullptr;
    if (received != notice::release || (now && now->has_several()) || is_election(lock) || is_election(now)) {
      report_ends(received == notice::leader ? "ended" : "released", lock, now);
    } else {  // the hold before the message has ended, even if its holder has the lock again
      lock ? report_ends("released", lock, nullptr) : report("released", nullptr, nullptr, name);
      lock = nullptr;
    }
    if (!now) co_return;
    report_begins(lock, now);
    known_.insert_or_assign(name, std::move(*key.lock));
  }

  void compare(const lock_facts* before, const lock_facts* now) {
    report_ends("ended", before, now);
    report_begins(before, now);
  }

  void report_ends(std::string_view happened, const lock_facts* before, const lock_facts* now) {
    for (const auto& hold : gone(before, now)) report(happened, before, &hold, before->name);
  }

  void report_begins(const lock_facts* before, const lock_facts* now) {
    for (const auto& hold : gone(now, before)) report(first_ ? "held" : "acquired", now, &hold, now->name);
    const auto waiters = [](const lock_facts* lock) { return lock && lock->waiters ? *lock->waiters : 0; };
    if (is_election(before) && is_election(now) && before->token == now->token && before->leader != now->leader)
      report("proclaimed", now, nullptr, now->name);
    if (now && waiters(before) != waiters(now)) report("waiters", now, nullptr, now->name);
  }

  /// The holds of `from` that `in` does not have. A downgrade keeps the holder and ends the hold, and so does another
  /// term of one leader. Some permits or read holds may not be shown: then one that is missing may be one of them.
  static std::vector<hold_facts> gone(const lock_facts* from, const lock_facts* in) {
    if (!from) return {};
    if (!in || in->is_read != from->is_read) return from->holds;
    if (is_election(from) && in->token != from->token) return from->holds;
    std::vector<hold_facts> missing;
    if (from->hidden() > 0 || in->hidden() > 0) return missing;
    for (const auto& hold : from->holds) {
      const auto is_same = [&](const hold_facts& other) { return other.holder == hold.holder; };
      if (std::none_of(in->holds.begin(), in->holds.end(), is_same)) missing.push_back(hold);
    }
    return missing;
  }

  void report(std::string_view happened, const lock_facts* lock, const hold_facts* hold, const std::string& name) {
    if (options_.access.json) {
      json::object line = lock ? json_of(*lock) : json::object();
      if (hold) put_hold(line, *hold);
      if (!lock) put_bytes(line, "name", name);
      line["event"] = happened;
      print(line);
      return;
    }
    std::string line(happened);
    line.append(line.size() < 9 ? 9 - line.size() : 0, ' ').append(" ").append(shown(name));
    if (lock && happened == "waiters")
      line += "  " + std::to_string(lock->waiters.value_or(0));
    else if (hold)
      line += "  " + shown(hold->holder) + "  " + process_text(hold->process);
    if (is_election(lock) && happened != "waiters") line += "  " + leader_text(*lock->leader);
    print(line);
  }

  void report_server(const char* happened, const std::string& text) {
    if (!options_.access.json) {
      print(std::string(happened) + (text.empty() ? "" : "  " + text));
      return;
    }
    json::object line;
    line["event"] = happened;
    line["text"] = text;
    print(line);
  }

  const watch_options& options_;
  const detail::settings& settings_;
  network& over_;
  const bool one_name_;
  const clock::time_point begin_ = clock::now();
  std::unique_ptr<lock_reader> reader_;
  std::unique_ptr<session> listener_;  // null: polls alone
  std::map<std::string, lock_facts> known_;
  bool first_ = true;
};

}  // namespace

asio::awaitable<int> watch(watch_options options) {
  const auto settings = detail::resolve(config_of(options.access));
  network over(co_await asio::this_coro::executor);
  watching watched(options, settings, over);
  co_await watched.run();
  co_return done;
}

}  // namespace holdfast::cli
