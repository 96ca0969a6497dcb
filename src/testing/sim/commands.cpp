// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/commands.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>

namespace holdfast::sim {
namespace {

using kind = reply::kind;

reply wrong_type() { return error_reply("WRONGTYPE Operation against a key holding the wrong kind of value"); }
reply not_an_integer() { return error_reply("ERR value is not an integer or out of range"); }

/// The hash at a key for reading: `absent` when there is none.
template <class Use>
reply with_hash(database& d, const std::string& key, reply absent, Use use) {
  const auto* e = d.keys.find(key);
  if (!e) return absent;
  const auto* h = e->hash();
  return h ? use(*h) : wrong_type();
}

reply exists(database& d, const arguments& a) {
  return integer_reply(
      std::count_if(a.begin() + 1, a.end(), [&](const auto& key) { return d.keys.find(key) != nullptr; }));
}

reply del(database& d, const arguments& a) {
  return integer_reply(std::count_if(a.begin() + 1, a.end(), [&](const auto& key) { return d.keys.erase(key); }));
}

reply type(database& d, const arguments& a) {
  const auto* e = d.keys.find(a[1]);
  return status_reply(!e ? "none" : e->hash() ? "hash" : "string");
}

reply get(database& d, const arguments& a) {
  const auto* e = d.keys.find(a[1]);
  if (!e) return {};
  return e->hash() ? wrong_type() : string_reply(std::get<std::string>(e->value));
}

reply getrange(database& d, const arguments& a) {
  long long first = 0, last = 0;
  if (!to_integer(a[2], first) || !to_integer(a[3], last)) return not_an_integer();
  const auto* e = d.keys.find(a[1]);
  if (!e) return string_reply("");
  if (e->hash()) return wrong_type();
  const auto& text = std::get<std::string>(e->value);
  const auto size = static_cast<long long>(text.size());
  if (first < 0 && last < 0 && first > last) return string_reply("");
  if (first < 0) first = std::max(0LL, size + first);
  if (last < 0) last = std::max(0LL, size + last);
  last = std::min(last, size - 1);
  if (first > last || size == 0) return string_reply("");
  return string_reply(text.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1)));
}

reply set(database& d, const arguments& a) {
  bool only_new = false, only_old = false, keep_ttl = false;
  const std::string* px = nullptr;
  for (std::size_t i = 3; i < a.size(); ++i) {
    const auto option = lower(a[i]);
    if (option == "nx" && !only_old) {
      only_new = true;
    } else if (option == "xx" && !only_new) {
      only_old = true;
    } else if (option == "px" && i + 1 < a.size() && !px && !keep_ttl) {
      px = &a[++i];
    } else if (option == "keepttl" && !px) {
      keep_ttl = true;
    } else {
      return error_reply("ERR syntax error");
    }
  }
  long long ms = 0;
  if (px && !to_integer(*px, ms)) return not_an_integer();
  if (px && (ms <= 0 || ms > std::numeric_limits<long long>::max() - d.keys.now()))
    return error_reply("ERR invalid expire time in 'set' command");
  const auto* const before = d.keys.find(a[1]);
  if ((only_new && before) || (only_old && !before)) return {};
  const auto expires = px                   ? std::optional<wall_ms>(d.keys.now() + ms)
                       : keep_ttl && before ? before->expires
                                            : std::nullopt;
  d.keys.put(a[1], a[2]).expires = expires;
  return status_reply("OK");
}

reply incr(database& d, const arguments& a) {
  auto* e = d.keys.find(a[1]);
  if (e && e->hash()) return wrong_type();
  long long n = 0;
  if (e && !to_integer(std::get<std::string>(e->value), n)) return not_an_integer();
  if (n == std::numeric_limits<long long>::max()) return error_reply("ERR increment or decrement would overflow");
  ++n;
  if (e)
    e->value = std::to_string(n);
  else
    d.keys.put(a[1], std::to_string(n));
  return integer_reply(n);
}

reply hget(database& d, const arguments& a) {
  return with_hash(d, a[1], {}, [&](const hash_value& h) {
    const auto* v = h.find(a[2]);
    return v ? string_reply(*v) : reply{};
  });
}

reply hexists(database& d, const arguments& a) {
  return with_hash(d, a[1], integer_reply(0),
                   [&](const hash_value& h) { return integer_reply(h.find(a[2]) != nullptr); });
}

reply hlen(database& d, const arguments& a) {
  return with_hash(d, a[1], integer_reply(0),
                   [](const hash_value& h) { return integer_reply(static_cast<long long>(h.fields().size())); });
}

reply hgetall(database& d, const arguments& a) {
  const reply none{kind::array, 0, {}, {}};
  return with_hash(d, a[1], none, [&](const hash_value& h) {
    auto all = none;
    for (const auto& [name, value] : h.fields()) {
      all.elements.push_back(string_reply(name));
      all.elements.push_back(string_reply(value));
    }
    return all;
  });
}

reply hset(database& d, const arguments& a) {
  if (a.size() % 2 != 0) return wrong_number_of_arguments("hset");
  auto* h = d.keys.hash_to_write(a[1]);
  if (!h) return wrong_type();
  long long fresh = 0;
  for (std::size_t i = 2; i < a.size(); i += 2) fresh += h->set(a[i], a[i + 1]);
  return integer_reply(fresh);
}

reply hdel(database& d, const arguments& a) {
  auto* e = d.keys.find(a[1]);
  if (!e) return integer_reply(0);
  auto* h = std::get_if<hash_value>(&e->value);
  if (!h) return wrong_type();
  const auto gone = std::count_if(a.begin() + 2, a.end(), [&](const auto& name) { return h->erase(name); });
  if (h->fields().empty()) d.keys.erase(a[1]);
  return integer_reply(gone);
}

reply hincrby(database& d, const arguments& a) {
  long long by = 0, n = 0;
  if (!to_integer(a[3], by)) return not_an_integer();
  auto* h = d.keys.hash_to_write(a[1]);
  if (!h) return wrong_type();
  const auto* old = h->find(a[2]);
  if (old && !to_integer(*old, n)) return error_reply("ERR hash value is not an integer");
  if (__builtin_add_overflow(n, by, &n)) return error_reply("ERR increment or decrement would overflow");
  h->set(a[2], std::to_string(n));
  return integer_reply(n);
}

reply pexpire(database& d, const arguments& a) {
  long long ttl = 0;
  if (!to_integer(a[2], ttl)) return not_an_integer();
  if (ttl > std::numeric_limits<long long>::max() - d.keys.now())
    return error_reply("ERR invalid expire time in 'pexpire' command");
  auto* e = d.keys.find(a[1]);
  if (!e) return integer_reply(0);
  if (ttl <= 0)
    d.keys.erase(a[1]);
  else
    e->expires = d.keys.now() + ttl;
  return integer_reply(1);
}

reply pttl(database& d, const arguments& a) {
  const auto* e = d.keys.find(a[1]);
  if (!e) return integer_reply(-2);
  return integer_reply(e->expires ? *e->expires - d.keys.now() : -1);
}

reply persist(database& d, const arguments& a) {
  auto* e = d.keys.find(a[1]);
  if (!e || !e->expires) return integer_reply(0);
  e->expires.reset();
  return integer_reply(1);
}

reply time(database& d, const arguments&) {
  constexpr std::int64_t second = 1'000'000;
  return {kind::array,
          0,
          {},
          {string_reply(std::to_string(d.time_us / second)), string_reply(std::to_string(d.time_us % second))}};
}

reply publish(database& d, const arguments& a) { return integer_reply(d.publish(a[1], a[2], false)); }
reply spublish(database& d, const arguments& a) { return integer_reply(d.publish(a[1], a[2], true)); }

reply flushall(database& d, const arguments& a) {
  if (a.size() > 1 && lower(a[1]) != "async" && lower(a[1]) != "sync") return error_reply("ERR syntax error");
  d.keys.clear();
  return status_reply("OK");
}

struct command {
  int arity;  // with the name; negative: at least
  enum { reads, writes, grows } what;
  reply (*run)(database&, const arguments&);
};

const std::map<std::string, command, std::less<>>& table() {
  static const std::map<std::string, command, std::less<>> all{
      {"del", {-2, command::writes, del}},           {"exists", {-2, command::reads, exists}},
      {"flushall", {-1, command::writes, flushall}}, {"get", {2, command::reads, get}},
      {"getrange", {4, command::reads, getrange}},   {"hdel", {-3, command::writes, hdel}},
      {"hexists", {3, command::reads, hexists}},     {"hget", {3, command::reads, hget}},
      {"hgetall", {2, command::reads, hgetall}},     {"hincrby", {4, command::grows, hincrby}},
      {"hlen", {2, command::reads, hlen}},           {"hset", {-4, command::grows, hset}},
      {"incr", {2, command::grows, incr}},           {"persist", {2, command::writes, persist}},
      {"pexpire", {3, command::writes, pexpire}},    {"pttl", {2, command::reads, pttl}},
      {"publish", {3, command::reads, publish}},     {"set", {-3, command::grows, set}},
      {"spublish", {3, command::reads, spublish}},   {"time", {1, command::reads, time}},
      {"type", {2, command::reads, type}},
  };
  return all;
}

bool refuses_writes(refusal r) { return r != refusal::none && r != refusal::out_of_memory; }

}  // namespace

reply run_command(database& d, const arguments& a) {
  const auto name = lower(a.front());
  const auto found = table().find(name);
  if (found == table().end()) return error_reply("ERR unknown command '" + a.front() + "'");
  const auto& c = found->second;
  const auto given = static_cast<int>(a.size());
  if (c.arity > 0 ? given != c.arity : given < -c.arity) return wrong_number_of_arguments(name);
  const bool full = d.refuses == refusal::out_of_memory && c.what == command::grows && !d.wrote;
  if (full || (c.what != command::reads && refuses_writes(d.refuses))) {
    d.on_refused(text_of(d.refuses));
    return error_reply(std::string(text_of(d.refuses)));
  }
  d.wrote |= c.what != command::reads;
  return c.run(d, a);
}

keys_of_command keys_of(const arguments& a) {
  const auto name = lower(a.front());
  if (a.size() < 2) return {};
  if (name == "eval" || name == "evalsha") {
    long long keys = 0;
    const bool fits =
        a.size() > 2 && to_integer(a[2], keys) && keys > 0 && keys <= static_cast<long long>(a.size()) - 3;
    return fits ? keys_of_command{{a.begin() + 3, a.begin() + 3 + static_cast<std::ptrdiff_t>(keys)}}
                : keys_of_command{};
  }
  if (name == "ssubscribe" || name == "sunsubscribe") return {{a.begin() + 1, a.end()}, true};
  if (name == "spublish") return {{a[1]}, true};
  if (!is_data_command(name) || name == "publish" || name == "flushall" || name == "time") return {};
  if (name == "del" || name == "exists") return {{a.begin() + 1, a.end()}};
  return {{a[1]}};
}

std::string_view text_of(refusal r) {
  switch (r) {
    case refusal::none: break;
    case refusal::out_of_memory: return "OOM command not allowed when used memory > 'maxmemory'.";
    case refusal::disk_failed:
      return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.";
    case refusal::no_replicas: return "NOREPLICAS Not enough good replicas to write.";
    case refusal::replica: return "READONLY You can't write against a read only replica.";
    case refusal::loading: return "LOADING Redis is loading the dataset in memory";
    case refusal::busy: return "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
  }
  return {};
}

bool is_data_command(std::string_view name) { return table().contains(name); }

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

reply error_reply(std::string text) { return {kind::error, 0, std::move(text), {}}; }
reply integer_reply(long long n) { return {kind::integer, n, {}, {}}; }
reply string_reply(std::string text) { return {kind::string, 0, std::move(text), {}}; }
reply status_reply(std::string text) { return {kind::status, 0, std::move(text), {}}; }

reply wrong_number_of_arguments(std::string_view name) {
  return error_reply("ERR wrong number of arguments for '" + std::string(name) + "' command");
}

bool to_integer(std::string_view text, long long& out) {
  if (text == "0") return out = 0, true;
  const auto digits = text.substr(text.starts_with('-'));
  if (digits.empty() || digits.front() < '1' || digits.front() > '9') return false;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc() && end == text.data() + text.size();
}

}  // namespace holdfast::sim
