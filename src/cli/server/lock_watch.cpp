// SPDX-License-Identifier: BSL-1.0
#include "cli/server/lock_watch.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

#include <fnmatch.h>

#include "cli/server/permissions.hpp"
#include "config/numbers.hpp"

namespace holdfast::cli {
namespace {

notice notice_in(const redis::reply& message) {
  using enum notice::meaning;
  const std::string_view channel = message.elements[2].text;
  const auto stem = channel.substr(0, channel.find(':'));
  const bool calls_first = stem == channels::mutex && without_place(channel) != channel;
  if (stem != channels::election)
    return {calls_first || stem == channels::shared_mutex || stem == channels::wake ? change : release};
  const auto term = detail::parse_number(message.elements[3].text).value_or(0);
  return term > 0 ? notice{leader, static_cast<std::uint64_t>(term)} : notice{change};
}

bool is_election(const lock_facts* lock) { return lock && lock->leader; }

/// The leader of the message was seen before, and another leads: later messages say how that one ended.
bool is_late(const notice& received, const lock_facts* before, const lock_facts* now) {
  return received.means == notice::meaning::leader && is_election(before) && before->token >= received.term &&
         !(is_election(now) && now->token == before->token);
}

const lock_facts* find(const lock_map& locks, const std::string& name) {
  const auto found = locks.find(name);
  return found == locks.end() ? nullptr : &found->second;
}

/// The holds of `from` that `in` does not have. A downgrade keeps the holder and ends the hold, and so does another
/// term of one leader. Some permits or read holds may not be shown: then one that is missing may be one of them.
std::vector<hold_facts> gone(const lock_facts* from, const lock_facts* in) {
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

}  // namespace

lock_watch::lock_watch(std::string pattern, const detail::settings& settings, network& over, lock_watcher& watcher)
    : pattern_(std::move(pattern)), settings_(settings), over_(over), watcher_(watcher),
      one_name_(pattern_.find_first_of("*?[\\") == std::string::npos) {}

asio::awaitable<void> lock_watch::run() {
  bool away = false;
  while (!watcher_.is_over()) {
    try {
      co_await connect();
      if (std::exchange(away, false)) watcher_.on_event({"connected"});
      do {  // a short watch looks once
        co_await poll();
        co_await listen();
      } while (!watcher_.is_over());
    } catch (const error& failed) {
      if (first_) throw;
      const std::string text = failed.what();
      if (!std::exchange(away, true)) watcher_.on_event({.happened = "unreachable", .text = text});
    }
    if (away) {
      asio::steady_timer alarm(co_await asio::this_coro::executor, watcher_.pause());
      co_await alarm.async_wait(asio::use_awaitable);
    }
  }
}

asio::awaitable<void> lock_watch::connect() {
  reader_ = co_await lock_reader::open(over_, settings_);
  listener_.reset();
  if (settings_.kind == detail::deployment::cluster) co_return;
  auto& server = reader_->server(0);
  listener_ = co_await session::open(over_, server.node(), milliseconds(2'000));
  const auto name = one_name_ ? literal_pattern(pattern_) : pattern_;
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
asio::awaitable<bool> lock_watch::subscribe(std::string pattern) {
  words command{"PSUBSCRIBE", std::move(pattern)};
  const auto reply = co_await listener_->ask(std::move(command));
  co_return !reply.is_error();
}

asio::awaitable<void> lock_watch::poll() {
  const auto unread = std::exchange(unread_, {});  // messages that are older than this poll
  lock_map now;
  if (one_name_) {
    auto key = co_await reader_->read(pattern_);
    if (key.lock) now.emplace(key.lock->name, std::move(*key.lock));
  } else {
    const lock_reader::finder keep = [&](const lock_facts& lock) { now.insert_or_assign(lock.name, lock); };
    co_await reader_->scan(pattern_, keep);
  }
  co_await reader_->list_processes();
  for (auto& [name, lock] : now) reader_->name_processes(lock);
  const auto received = co_await notices(unread);
  report_polled(now, received, unread);
  for (const auto& [name, notice] : received) {
    now.erase(name);
    if (auto known = known_.extract(name)) now.insert(std::move(known));
  }
  known_ = std::move(now);
  first_ = false;
  watcher_.on_poll(known_);
  report_work();
  for (const auto& [name, notice] : received) co_await on_message(name, notice);
  ended_elections_.clear();
}

void lock_watch::report_polled(const lock_map& now, const notice_map& received, const notice_map& unread) {
  const auto is_plain = [&](const std::string& name) { return !received.contains(name) && !unread.contains(name); };
  for (const auto& [name, lock] : now)
    if (is_plain(name)) compare(find(known_, name), &lock);
  for (const auto& [name, lock] : known_)
    if (is_plain(name) && !now.contains(name)) compare(&lock, nullptr);
  for (const auto& [name, notice] : unread)
    if (!received.contains(name)) report_message(name, notice, find(known_, name), find(now, name));
}

/// The names whose messages came during a poll, with the first one of each: it is about the hold that is known. A poll
/// that sees the end of their holds must not call it an end without a message.
asio::awaitable<notice_map> lock_watch::notices(const notice_map& unread) {
  notice_map names;
  while (listener_) {
    const auto message = co_await listener_->next(milliseconds(0));
    if (!message) break;
    const auto name = name_in(*message);
    if (!name) continue;
    if (const auto older = unread.find(*name); older != unread.end()) names.insert(*older);
    keep(names, *name, notice_in(*message));
  }
  co_return names;
}

/// Keeps the first message of each name. A message about a leader that is known says less than one that comes later.
void lock_watch::keep(notice_map& in, const std::string& name, const notice& received) const {
  const auto [kept, is_first] = in.try_emplace(name, received);
  if (is_first) return;
  auto& first = kept->second;
  const auto* known = find(known_, name);
  const bool is_late = first.means == notice::meaning::leader && is_election(known) && known->token >= first.term;
  if (is_late && received.means != notice::meaning::leader) first = received;
}

/// Empty: it is no message about a name that is watched.
std::optional<std::string> lock_watch::name_in(const redis::reply& message) const {
  if (message.elements.size() != 4) return std::nullopt;
  auto name = reader_->name_of_channel(message.elements[2].text);
  return name && is_watched(*name) ? name : std::nullopt;
}

bool lock_watch::is_watched(const std::string& name) const {
  return one_name_ ? name == pattern_ : ::fnmatch(pattern_.c_str(), name.c_str(), 0) == 0;
}

/// Messages, until it is time for the next poll.
asio::awaitable<void> lock_watch::listen() {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + watcher_.pause();
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - clock::now());
    if (left <= milliseconds(0) || watcher_.is_over()) co_return;
    if (!listener_) {
      asio::steady_timer alarm(co_await asio::this_coro::executor, left);
      co_await alarm.async_wait(asio::use_awaitable);
      co_return;
    }
    const auto message = co_await listener_->next(left);
    const auto name = message ? name_in(*message) : std::nullopt;
    if (name) co_await on_message(*name, notice_in(*message));
  }
}

/// Reads the lock, or leaves it to the next poll. The name of a lock that is not known is dropped then: that poll
/// reports its next hold, if there is one.
asio::awaitable<void> lock_watch::on_message(std::string name, notice received) {
  if (watcher_.may_read()) {
    co_await look_at(std::move(name), received);
    report_work();
  } else if (known_.contains(name)) {
    keep(unread_, name, received);
  }
}

asio::awaitable<void> lock_watch::look_at(std::string name, notice received) {
  auto key = co_await reader_->read(name);
  const auto is_known = [](const hold_facts& hold) { return hold.process.has_value(); };
  if (key.lock && !std::all_of(key.lock->holds.begin(), key.lock->holds.end(), is_known)) {
    co_await reader_->list_processes();  // perhaps a client that has come since
    reader_->name_processes(*key.lock);
  }
  const auto* now = key.lock ? &*key.lock : nullptr;
  if (is_late(received, find(known_, name), now)) co_return;
  const auto before = known_.extract(name);
  if (before && !now && is_election(&before.mapped())) ended_elections_.insert(name);
  report_message(name, received, before ? &before.mapped() : nullptr, now);
  watcher_.on_lock(name, now);
  if (key.lock) known_.insert_or_assign(std::move(name), std::move(*key.lock));
}

void lock_watch::report_message(const std::string& name, notice received, const lock_facts* before,
                                const lock_facts* now) {
  using enum notice::meaning;
  const bool is_of_election = is_election(before) || is_election(now) || ended_elections_.contains(name);
  const bool is_seen_alone = received.means != release || is_of_election;
  if (is_seen_alone || (now && now->has_several())) {
    report_ends(received.means == leader ? "ended" : "released", before, now);
  } else {  // the hold before the message has ended, even if its holder has the lock again
    before ? report_ends("released", before, nullptr) : watcher_.on_event({"released", name});
    before = nullptr;
  }
  if (now) report_begins(before, now);
}

void lock_watch::compare(const lock_facts* before, const lock_facts* now) {
  report_ends("ended", before, now);
  report_begins(before, now);
}

void lock_watch::report_ends(std::string_view happened, const lock_facts* before, const lock_facts* now) {
  for (const auto& hold : gone(before, now)) watcher_.on_event({happened, before->name, before, &hold});
}

void lock_watch::report_begins(const lock_facts* before, const lock_facts* now) {
  for (const auto& hold : gone(now, before)) watcher_.on_event({first_ ? "held" : "acquired", now->name, now, &hold});
  const auto waiters = [](const lock_facts* lock) { return lock && lock->waiters ? *lock->waiters : 0; };
  if (is_election(before) && is_election(now) && before->token == now->token && before->leader != now->leader)
    watcher_.on_event({"proclaimed", now->name, now});
  if (now && waiters(before) != waiters(now)) watcher_.on_event({"waiters", now->name, now});
}

void lock_watch::report_work() { watcher_.on_work(reader_->take_work()); }

}  // namespace holdfast::cli
