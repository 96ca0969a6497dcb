// SPDX-License-Identifier: BSL-1.0
#include "cli/server/lock_reader.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/server/primaries.hpp"
#include "config/numbers.hpp"
#include "protocol/keys.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* batch = "500";  // keys that one SCAN looks at

/// Redisson's scheme for the names beside a key.
std::string beside(std::string_view stem, std::string_view key) {
  const bool braced = key.find('{') != key.npos;
  return std::string(stem).append(braced ? ":" : ":{").append(key).append(braced ? "" : "}");
}

/// Redisson's scheme for the sorted set of a semaphore.
std::string permits_below(const std::string& key) {
  return (key.find('{') != key.npos ? key : '{' + key + '}') + ":timeout";
}

/// Milliseconds of the Unix epoch, by TIME.
std::optional<long long> instant(const redis::reply& time) {
  if (time.elements.size() != 2) return std::nullopt;
  const auto seconds = detail::parse_number(time.elements[0].text),
             micros = detail::parse_number(time.elements[1].text);
  if (!seconds || !micros) return std::nullopt;
  return *seconds * 1000 + *micros / 1000;
}

std::optional<long long> subscribers(const redis::reply& reply) {
  if (reply.elements.size() != 2 || reply.elements[1].type != redis::reply::kind::integer) return std::nullopt;
  return reply.elements[1].integer;
}

/// A string with a TTL that is no lock: a note, a turn, the mark of a latch's call, or the TTL of a reader.
bool is_beside_lock(std::string_view key) {
  for (const auto stem : {detail::note_stem, std::string_view("holdfast_turn"), std::string_view("holdfast_done")})
    if (key.starts_with(stem) && key.substr(stem.size()).starts_with(':')) return true;
  return key.ends_with(":rwlock_timeout:1");
}

/// Redisson's scheme for the TTL of one read hold.
std::string deadline_of(const std::string& key, const std::string& owner) {
  return (key.find('{') != key.npos ? key : '{' + key + '}') + ':' + owner + ":rwlock_timeout:1";
}

/// One primary of a red_lock may lack the note that another one has.
void share_note(lock_facts& into, const lock_facts& from) {
  if (into.since) return;
  into.since = from.since;
  into.note = from.note;
}

bool is_moved(const redis::reply& reply) {
  return reply.is_error() && (reply.text.starts_with("MOVED") || reply.text.starts_with("ASK"));
}

}  // namespace

asio::awaitable<std::unique_ptr<lock_reader>> lock_reader::open(network& over, const detail::settings& settings) {
  std::unique_ptr<lock_reader> made(new lock_reader(settings));
  made->servers_ = co_await open_primaries(over, settings);
  co_await made->list_processes();
  co_return made;
}

std::string lock_reader::channel_pattern(std::string_view stem, std::string_view pattern) const {
  // Names with a brace have no braces around them: the star stands for either form.
  return std::string(stem) + ":*" + literal_pattern(settings_.values.key_prefix).append(pattern) + '*';
}

std::optional<std::string> lock_reader::name_of_channel(std::string_view channel) const {
  const auto stem = channel.find(':');
  if (stem == channel.npos) return std::nullopt;
  auto key = channel.substr(stem + 1);
  if (channel.substr(0, stem) == channels::wake) key = key.substr(0, key.rfind(':'));  // the client follows
  if (channel.substr(0, stem) == channels::mutex) key = without_place(key);
  if (key.starts_with('{') && key.ends_with('}') && key.find('{', 1) == key.npos) key = key.substr(1, key.size() - 2);
  if (!key.starts_with(settings_.values.key_prefix)) return std::nullopt;
  return std::string(key.substr(settings_.values.key_prefix.size()));
}

std::chrono::microseconds lock_reader::take_work() noexcept {
  std::chrono::microseconds work{};
  for (const auto& server : servers_) work += server->take_work();
  return work;
}

asio::awaitable<void> lock_reader::list_processes() {
  processes_ = {};
  for (const auto& server : servers_) {
    words command{"CLIENT", "LIST"};
    const auto reply = co_await server->ask(std::move(command));
    if (reply.type == redis::reply::kind::string) processes_.add(reply.text);  // else an ACL withholds it
  }
}

void lock_reader::name_processes(lock_facts& lock) const {
  for (auto& hold : lock.holds) hold.process = processes_.find(hold.holder);
}

asio::awaitable<void> lock_reader::scan(std::string pattern, const finder& found) {
  const auto match = literal_pattern(settings_.values.key_prefix) + pattern;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    std::string cursor = "0";
    do {
      words command{"SCAN", cursor, "MATCH", match, "COUNT", batch};
      const auto reply = co_await servers_[i]->ask(std::move(command));
      if (reply.is_error())
        throw error(reply.text.starts_with("NOPERM") ? errc::no_permission : errc::server_refused,
                    servers_[i]->node().to_string() + ": " + servers_[i]->words_of(reply));
      if (reply.elements.size() != 2) throw error(errc::protocol_error, "SCAN cannot be read");
      cursor = reply.elements[0].text;
      std::vector<std::string> keys;
      for (const auto& key : reply.elements[1].elements)
        if (!is_beside_lock(key.text)) keys.push_back(key.text);
      co_await show_batch(i, std::move(keys), found);
    } while (cursor != "0");
  }
}

asio::awaitable<void> lock_reader::show_batch(std::size_t server, std::vector<std::string> keys, const finder& found) {
  auto here = co_await read_keys(*servers_[server], keys);
  std::vector<std::vector<key_facts>> others;  // of a red_lock, at the other servers
  for (std::size_t i = 0; of_several() && i < servers_.size(); ++i) {
    if (i == server) continue;
    auto there = co_await read_keys(*servers_[i], keys);
    others.push_back(std::move(there));
  }
  for (std::size_t k = 0; k < here.size(); ++k) {
    if (!here[k].lock) continue;
    bool shown_before = false;
    for (std::size_t i = 0; i < others.size(); ++i) {
      const auto& lock = others[i][k].lock;
      if (!lock || lock->first().holder != here[k].lock->first().holder) continue;
      ++here[k].lock->votes;
      share_note(*here[k].lock, *lock);
      shown_before |= i < server;
    }
    if (!shown_before) found(*here[k].lock);
  }
}

asio::awaitable<key_facts> lock_reader::read(std::string name) {
  if (name.empty()) throw error(errc::invalid_name, "the name is empty");
  const std::vector<std::string> keys{settings_.values.key_prefix + name};
  std::vector<key_facts> seen;
  for (const auto& server : servers_) {
    auto there = co_await read_keys(*server, keys);
    if (!there.front().type.empty() || !there.front().refusal.empty()) seen.push_back(std::move(there.front()));
  }
  if (seen.empty()) throw error(errc::unreachable, "no server has the slot of this name");
  for (auto& key : seen) {
    if (!key.lock) continue;
    key.lock->votes = 0;
    for (const auto& other : seen) {
      if (!other.lock || other.lock->first().holder != key.lock->first().holder) continue;
      ++key.lock->votes;
      share_note(*key.lock, *other.lock);
    }
  }
  const auto votes = [](const key_facts& key) { return key.lock ? key.lock->votes : 0; };
  co_return *std::max_element(seen.begin(), seen.end(), [&](const key_facts& left, const key_facts& right) {
    return votes(left) < votes(right);
  });
}

asio::awaitable<std::vector<key_facts>> lock_reader::read_keys(session& server, const std::vector<std::string>& keys) {
  std::vector<words> commands;
  for (const auto& key : keys) commands.push_back({"TYPE", key});
  const auto types = co_await server.ask_all(std::move(commands));
  std::vector<key_facts> found;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    found.push_back({keys[i], types[i].is_error() ? std::string() : types[i].text});
    if (types[i].is_error() && !is_moved(types[i])) found.back().refusal = server.words_of(types[i]);
  }
  co_await complete(server, found);
  co_await complete_semaphores(server, found);
  co_await complete_hashes(server, found);
  co_return found;
}

asio::awaitable<void> lock_reader::complete(session& server, std::vector<key_facts>& keys) {
  std::vector<words> commands;
  for (const auto& key : keys) {
    const words note{"GETRANGE", beside(detail::note_stem, key.key), "0", "511"};
    if (key.type == "hash")
      commands.insert(commands.end(), {{"HSCAN", key.key, "0", "COUNT", "2"},
                                       {"PTTL", key.key},
                                       note,
                                       subscribers_of(channels::mutex, key.key),
                                       {"GET", beside("redisson_lock_token", key.key)},
                                       {"LLEN", beside("redisson_lock_queue", key.key)}});
    else if (key.type == "string")
      commands.insert(commands.end(), {{"GETRANGE", key.key, "0", "256"},
                                       {"PTTL", key.key},
                                       note,
                                       subscribers_of(channels::simple_mutex, key.key)});
  }
  const auto replies = co_await server.ask_all(std::move(commands));
  std::size_t at = 0;
  for (auto& key : keys) {
    if (key.type != "hash" && key.type != "string") continue;
    if (replies[at].is_error()) key.refusal = server.words_of(replies[at]);
    at += take_contents(key, replies, at);
  }
}

asio::awaitable<void> lock_reader::complete_semaphores(session& server, std::vector<key_facts>& keys) {
  // A semaphore has one server. A counter that was lost leaves the permits behind, so a missing key may be one.
  std::vector<key_facts*> found;
  for (auto& key : keys)
    if (!of_several() && (key.counter || key.type == "none")) found.push_back(&key);
  if (found.empty()) co_return;
  std::vector<words> sizes{{"TIME"}};
  for (const auto* key : found) sizes.push_back({"ZCARD", permits_below(key->key)});
  const auto counted = co_await server.ask_all(std::move(sizes));
  const auto now = instant(counted[0]);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& size = counted[i + 1];
    if (found[i]->counter && size.is_error() && size.text.starts_with("NOPERM"))
      found[i]->refusal = server.words_of(size);
    if (!now || size.type != redis::reply::kind::integer || size.integer == 0) found[i] = nullptr;
  }
  std::erase(found, nullptr);
  co_await read_permits(server, found, now.value_or(0));
}

asio::awaitable<void> lock_reader::read_permits(session& server, std::vector<key_facts*> semaphores, long long now) {
  const auto later = '(' + std::to_string(now);
  std::vector<words> commands;
  for (const auto* key : semaphores) {
    const auto permits = permits_below(key->key);
    // The counter once more: acquires since the first reading would change the sum.
    commands.insert(commands.end(),
                    {{"GETRANGE", key->key, "0", "256"},
                     {"ZCARD", permits},
                     {"ZCOUNT", permits, later, "+inf"},
                     {"ZRANGEBYSCORE", permits, later, "+inf", "WITHSCORES", "LIMIT", "0", std::to_string(most_holds)},
                     subscribers_of(channels::semaphore, key->key)});
  }
  const auto replies = co_await server.ask_all(std::move(commands));
  auto reply = replies.begin();
  for (auto* key : semaphores) {
    const auto counter = counter_of_string(reply[0]);
    if (auto semaphore = semaphore_of(counter, reply[1], reply[2], reply[3], now)) {
      semaphore->name = key->key.substr(settings_.values.key_prefix.size());
      semaphore->waiters = subscribers(reply[4]);
      name_processes(*semaphore);
      key->lock = std::move(semaphore);
    }
    reply += 5;
  }
}

asio::awaitable<void> lock_reader::complete_hashes(session& server, std::vector<key_facts>& keys) {
  std::vector<key_facts*> found;  // a shared mutex and an election have one server
  std::vector<words> commands;
  for (auto& key : keys) {
    if (of_several() || !key.has_fields) continue;
    found.push_back(&key);
    commands.insert(commands.end(),
                    {{"HGET", key.key, "mode"},
                     {"HLEN", key.key},
                     {"HSCAN", key.key, "0", "COUNT", std::to_string(2 * most_holds + 2)},  // names and values
                     {"PTTL", key.key},
                     {"GETRANGE", beside(detail::note_stem, key.key), "0", "511"},
                     subscribers_of(channels::shared_mutex, key.key)});
  }
  if (found.empty()) co_return;
  const auto replies = co_await server.ask_all(std::move(commands));
  auto reply = replies.begin();
  for (auto*& key : found) {
    key->lock = shared_lock_of(reply[0], reply[1], reply[2]);
    if (!key->lock) key->lock = election_of(reply[1], reply[2]);
    if (auto& lock = key->lock) {
      lock->name = key->key.substr(settings_.values.key_prefix.size());
      lock->holds.front().ttl = reply[3].integer;
      if (!lock->is_read) add_note(*lock, reply[4]);
      lock->waiters = lock->leader ? key->waiters : subscribers(reply[5]);
      name_processes(*lock);
    }
    if (!key->lock || !key->lock->is_read) key = nullptr;
    reply += 6;
  }
  std::erase(found, nullptr);
  if (!found.empty()) co_await read_readers(server, std::move(found));
}

asio::awaitable<void> lock_reader::read_readers(session& server, std::vector<key_facts*> locks) {
  std::vector<words> commands;
  for (const auto* key : locks)
    for (const auto& hold : key->lock->holds) commands.push_back({"PTTL", deadline_of(key->key, hold.holder)});
  const auto ttls = co_await server.ask_all(std::move(commands));
  auto ttl = ttls.begin();
  for (auto* key : locks) {
    auto& holds = key->lock->holds;
    const bool ends = holds.front().ttl >= 0;  // the TTL of the whole lock
    for (auto& hold : holds) {
      // A reader without a TTL of its own is dead: the next writer will find that out.
      hold.ttl = ends ? std::max(ttl->integer, 0LL) : -1;
      ++ttl;
    }
    std::ranges::stable_sort(holds, {}, [](const hold_facts& hold) { return hold.ttl; });
  }
}

words lock_reader::subscribers_of(std::string_view stem, std::string_view key) const {
  const bool cluster = settings_.kind == detail::deployment::cluster;
  return {"PUBSUB", cluster ? "SHARDNUMSUB" : "NUMSUB", beside(stem, key)};
}

std::size_t lock_reader::take_contents(key_facts& key, const std::vector<redis::reply>& replies, std::size_t at) const {
  const bool hash = key.type == "hash";
  const auto ttl = replies[at + 1].integer;
  key.lock = hash ? lock_of_hash(replies[at]) : lock_of_string(replies[at], ttl, any_string_);
  if (!hash) key.counter = counter_of_string(replies[at]);
  const auto& page = replies[at].elements;
  key.waiters = subscribers(replies[at + 3]);
  key.has_fields = hash && page.size() == 2 && (page[0].text != "0" || page[1].elements.size() > 2);
  if (key.lock) {
    key.lock->name = key.key.substr(settings_.values.key_prefix.size());
    key.lock->holds.front().ttl = ttl;
    name_processes(*key.lock);
    add_note(*key.lock, replies[at + 2]);
    key.lock->waiters = key.waiters;
    key.lock->primaries = of_several() ? settings_.servers.size() : 1;
    if (of_several()) key.lock->kind = "red_lock";
    if (const auto token = hash ? detail::parse_number(replies[at + 4].text) : std::nullopt) {
      key.lock->token = static_cast<std::uint64_t>(*token);
      if (!of_several()) key.lock->kind = "fenced_mutex";
    }
    if (hash && !of_several()) add_queue(*key.lock, replies[at + 5]);
  }
  return hash ? 6 : 4;
}

}  // namespace holdfast::cli
