// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/commands.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "testing/sim/lists.hpp"
#include "testing/sim/sorted_sets.hpp"

namespace holdfast::sim {
namespace {

using kind = reply::kind;

/// The hash at a key for reading: `absent` when there is none.
template <class Use>
reply with_hash(database& db, const std::string& key, reply absent, Use use) {
  const auto* entry = db.keys.find(key);
  if (!entry) return absent;
  const auto* hash = entry->hash();
  return hash ? use(*hash) : wrong_type();
}

reply exists(database& db, const arguments& args) {
  return integer_reply(
      std::count_if(args.begin() + 1, args.end(), [&](const auto& key) { return db.keys.find(key) != nullptr; }));
}

reply del(database& db, const arguments& args) {
  return integer_reply(
      std::count_if(args.begin() + 1, args.end(), [&](const auto& key) { return db.keys.erase(key); }));
}

reply type(database& db, const arguments& args) {
  const auto* entry = db.keys.find(args[1]);
  return status_reply(!entry            ? "none"
                      : entry->hash()   ? "hash"
                      : entry->sorted() ? "zset"
                      : entry->list()   ? "list"
                                        : "string");
}

reply get(database& db, const arguments& args) {
  const auto* entry = db.keys.find(args[1]);
  if (!entry) return {};
  const auto* text = entry->text();
  return text ? string_reply(*text) : wrong_type();
}

reply getrange(database& db, const arguments& args) {
  long long first = 0, last = 0;
  if (!to_integer(args[2], first) || !to_integer(args[3], last)) return not_an_integer();
  const auto* entry = db.keys.find(args[1]);
  if (!entry) return string_reply("");
  if (!entry->text()) return wrong_type();
  const auto& text = *entry->text();
  const auto size = static_cast<long long>(text.size());
  if (first < 0 && last < 0 && first > last) return string_reply("");
  if (first < 0) first = std::max(0LL, size + first);
  if (last < 0) last = std::max(0LL, size + last);
  last = std::min(last, size - 1);
  if (first > last || size == 0) return string_reply("");
  return string_reply(text.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1)));
}

reply set(database& db, const arguments& args) {
  bool only_new = false, only_old = false, keep_ttl = false;
  const std::string* px = nullptr;
  for (std::size_t i = 3; i < args.size(); ++i) {
    const auto option = lower(args[i]);
    if (option == "nx" && !only_old) {
      only_new = true;
    } else if (option == "xx" && !only_new) {
      only_old = true;
    } else if (option == "px" && i + 1 < args.size() && !px && !keep_ttl) {
      px = &args[++i];
    } else if (option == "keepttl" && !px) {
      keep_ttl = true;
    } else {
      return syntax_error();
    }
  }
  long long ms = 0;
  if (px && !to_integer(*px, ms)) return not_an_integer();
  if (px && (ms <= 0 || ms > std::numeric_limits<long long>::max() - db.keys.now()))
    return error_reply("ERR invalid expire time in 'set' command");
  const auto* const before = db.keys.find(args[1]);
  if ((only_new && before) || (only_old && !before)) return {};
  const auto expires = px                   ? std::optional<wall_ms>(db.keys.now() + ms)
                       : keep_ttl && before ? before->expires
                                            : std::nullopt;
  db.keys.put(args[1], args[2]).expires = expires;
  return status_reply("OK");
}

reply add(database& db, const std::string& key, long long by) {
  auto* entry = db.keys.find(key);
  const auto* text = entry ? entry->text() : nullptr;
  if (entry && !text) return wrong_type();
  long long n = 0;
  if (text && !to_integer(*text, n)) return not_an_integer();
  if (__builtin_add_overflow(n, by, &n)) return error_reply("ERR increment or decrement would overflow");
  if (entry)
    entry->value = std::to_string(n);
  else
    db.keys.put(key, std::to_string(n));
  return integer_reply(n);
}

reply incr(database& db, const arguments& args) { return add(db, args[1], 1); }

reply incrby(database& db, const arguments& args) {
  long long by = 0;
  return to_integer(args[2], by) ? add(db, args[1], by) : not_an_integer();
}

reply decrby(database& db, const arguments& args) {
  long long by = 0;
  if (!to_integer(args[2], by)) return not_an_integer();
  if (by == std::numeric_limits<long long>::min()) return error_reply("ERR decrement would overflow");
  return add(db, args[1], -by);
}

reply hget(database& db, const arguments& args) {
  return with_hash(db, args[1], {}, [&](const hash_value& hash) {
    const auto* value = hash.find(args[2]);
    return value ? string_reply(*value) : reply{};
  });
}

reply hmget(database& db, const arguments& args) {
  const reply missing{kind::array, 0, {}, std::vector<reply>(args.size() - 2)};
  return with_hash(db, args[1], missing, [&](const hash_value& hash) {
    auto all = missing;
    for (std::size_t i = 2; i < args.size(); ++i)
      if (const auto* value = hash.find(args[i])) all.elements[i - 2] = string_reply(*value);
    return all;
  });
}

reply hexists(database& db, const arguments& args) {
  return with_hash(db, args[1], integer_reply(0),
                   [&](const hash_value& hash) { return integer_reply(hash.find(args[2]) != nullptr); });
}

reply hlen(database& db, const arguments& args) {
  return with_hash(db, args[1], integer_reply(0),
                   [](const hash_value& hash) { return integer_reply(static_cast<long long>(hash.fields().size())); });
}

reply hgetall(database& db, const arguments& args) {
  const reply none{kind::array, 0, {}, {}};
  return with_hash(db, args[1], none, [&](const hash_value& hash) {
    auto all = none;
    for (const auto& [name, value] : hash.fields()) {
      all.elements.push_back(string_reply(name));
      all.elements.push_back(string_reply(value));
    }
    return all;
  });
}

reply hset(database& db, const arguments& args) {
  if (args.size() % 2 != 0) return wrong_number_of_arguments("hset");
  auto* hash = db.keys.to_write<hash_value>(args[1]);
  if (!hash) return wrong_type();
  long long fresh = 0;
  for (std::size_t i = 2; i < args.size(); i += 2) fresh += hash->set(args[i], args[i + 1]);
  return integer_reply(fresh);
}

reply hdel(database& db, const arguments& args) {
  auto* entry = db.keys.find(args[1]);
  if (!entry) return integer_reply(0);
  auto* hash = std::get_if<hash_value>(&entry->value);
  if (!hash) return wrong_type();
  const auto gone = std::count_if(args.begin() + 2, args.end(), [&](const auto& name) { return hash->erase(name); });
  if (hash->fields().empty()) db.keys.erase(args[1]);
  return integer_reply(gone);
}

reply hincrby(database& db, const arguments& args) {
  long long by = 0, n = 0;
  if (!to_integer(args[3], by)) return not_an_integer();
  auto* hash = db.keys.to_write<hash_value>(args[1]);
  if (!hash) return wrong_type();
  const auto* old = hash->find(args[2]);
  if (old && !to_integer(*old, n)) return error_reply("ERR hash value is not an integer");
  if (__builtin_add_overflow(n, by, &n)) return error_reply("ERR increment or decrement would overflow");
  hash->set(args[2], std::to_string(n));
  return integer_reply(n);
}

reply pexpire(database& db, const arguments& args) {
  long long ttl = 0;
  if (!to_integer(args[2], ttl)) return not_an_integer();
  if (ttl > std::numeric_limits<long long>::max() - db.keys.now())
    return error_reply("ERR invalid expire time in 'pexpire' command");
  auto* entry = db.keys.find(args[1]);
  if (!entry) return integer_reply(0);
  if (ttl <= 0)
    db.keys.erase(args[1]);
  else
    entry->expires = db.keys.now() + ttl;
  return integer_reply(1);
}

reply pttl(database& db, const arguments& args) {
  const auto* entry = db.keys.find(args[1]);
  if (!entry) return integer_reply(-2);
  return integer_reply(entry->expires ? *entry->expires - db.keys.now() : -1);
}

reply persist(database& db, const arguments& args) {
  auto* entry = db.keys.find(args[1]);
  if (!entry || !entry->expires) return integer_reply(0);
  entry->expires.reset();
  return integer_reply(1);
}

reply time(database& db, const arguments&) {
  constexpr std::int64_t second = 1'000'000;
  return {kind::array,
          0,
          {},
          {string_reply(std::to_string(db.time_us / second)), string_reply(std::to_string(db.time_us % second))}};
}

reply publish(database& db, const arguments& args) { return integer_reply(db.publish(args[1], args[2], false)); }
reply spublish(database& db, const arguments& args) { return integer_reply(db.publish(args[1], args[2], true)); }

/// NUMSUB and SHARDNUMSUB alone.
reply pubsub(database& db, const arguments& args) {
  const auto verb = lower(args[1]);
  if (verb != "numsub" && verb != "shardnumsub")
    return error_reply("ERR unknown subcommand '" + args[1] + "'. Try PUBSUB HELP.");
  reply all{kind::array, 0, {}, {}};
  for (auto channel = args.begin() + 2; channel != args.end(); ++channel) {
    all.elements.push_back(string_reply(*channel));
    all.elements.push_back(integer_reply(db.subscribers(*channel, verb == "shardnumsub")));
  }
  return all;
}

reply flushall(database& db, const arguments& args) {
  if (args.size() > 1 && lower(args[1]) != "async" && lower(args[1]) != "sync") return syntax_error();
  db.keys.clear();
  return status_reply("OK");
}

struct command {
  int arity;  // with the name; negative: at least
  enum { reads, writes, grows } form;
  reply (*run)(database&, const arguments&);
};

const std::map<std::string, command, std::less<>>& table() {
  using namespace lists;
  using namespace sorted_sets;
  static const std::map<std::string, command, std::less<>> all{
      {"decrby", {3, command::grows, decrby}},     {"del", {-2, command::writes, del}},
      {"exists", {-2, command::reads, exists}},    {"flushall", {-1, command::writes, flushall}},
      {"get", {2, command::reads, get}},           {"getrange", {4, command::reads, getrange}},
      {"hdel", {-3, command::writes, hdel}},       {"hexists", {3, command::reads, hexists}},
      {"hget", {3, command::reads, hget}},         {"hgetall", {2, command::reads, hgetall}},
      {"hincrby", {4, command::grows, hincrby}},   {"hlen", {2, command::reads, hlen}},
      {"hmget", {-3, command::reads, hmget}},      {"hset", {-4, command::grows, hset}},
      {"incr", {2, command::grows, incr}},         {"incrby", {3, command::grows, incrby}},
      {"lindex", {3, command::reads, lindex}},     {"llen", {2, command::reads, llen}},
      {"lpop", {2, command::writes, lpop}},        {"lrange", {4, command::reads, lrange}},
      {"lrem", {4, command::writes, lrem}},        {"persist", {2, command::writes, persist}},
      {"pexpire", {3, command::writes, pexpire}},  {"pttl", {2, command::reads, pttl}},
      {"publish", {3, command::reads, publish}},   {"pubsub", {-2, command::reads, pubsub}},
      {"rpush", {-3, command::grows, rpush}},      {"set", {-3, command::grows, set}},
      {"spublish", {3, command::reads, spublish}}, {"time", {1, command::reads, time}},
      {"type", {2, command::reads, type}},         {"zadd", {-4, command::grows, zadd}},
      {"zcard", {2, command::reads, zcard}},       {"zcount", {4, command::reads, zcount}},
      {"zincrby", {4, command::grows, zincrby}},   {"zpopmin", {2, command::writes, zpopmin}},
      {"zrange", {-4, command::reads, zrange}},    {"zrangebyscore", {-4, command::reads, zrangebyscore}},
      {"zrank", {3, command::reads, zrank}},       {"zrem", {-3, command::writes, zrem}},
      {"zscore", {3, command::reads, zscore}},
  };
  return all;
}

/// A write changes its key for Redis, also where the value stays. A write to members of a sorted set is the exception.
bool has_changed(const command& command, const reply& reply) {
  if (reply.is_error() || reply.type == kind::nil) return false;
  if (command.form == command::grows) return true;
  if (reply.type == kind::array) return !reply.elements.empty();
  return reply.type == kind::string || reply.integer > 0;
}

reply run_write(database& db, const command& command, const std::string& name, const arguments& args) {
  auto keys = keys_of(args).keys;
  if (name == "del") std::erase_if(keys, [&](const auto& key) { return db.keys.find(key) == nullptr; });
  db.stayed = false;
  auto reply = command.run(db, args);
  if (name == "flushall" && !reply.is_error()) db.on_flush();
  if (has_changed(command, reply) && !db.stayed) std::for_each(keys.begin(), keys.end(), db.on_change);
  return reply;
}

reply run_read(database& db, const command& command, const arguments& args) {
  auto reply = command.run(db, args);
  if (const auto [keys, channels] = keys_of(args); !channels) std::for_each(keys.begin(), keys.end(), db.on_read);
  return reply;
}

bool refuses_writes(refusal refusal) { return refusal != refusal::none && refusal != refusal::out_of_memory; }

}  // namespace

reply run_command(database& db, const arguments& args) {
  const auto name = lower(args.front());
  const auto found = table().find(name);
  if (found == table().end()) return error_reply("ERR unknown command '" + args.front() + "'");
  const auto& command = found->second;
  const auto given = static_cast<int>(args.size());
  if (command.arity > 0 ? given != command.arity : given < -command.arity) return wrong_number_of_arguments(name);
  const bool full = db.refuses == refusal::out_of_memory && command.form == command::grows && !db.wrote;
  if (full || (command.form != command::reads && refuses_writes(db.refuses))) {
    db.on_refused(text_of(db.refuses));
    return error_reply(std::string(text_of(db.refuses)));
  }
  const bool writes = command.form != command::reads;
  db.wrote |= writes;
  if (!db.tracked) return command.run(db, args);
  if (const auto [keys, channels] = keys_of(args); !channels) std::for_each(keys.begin(), keys.end(), db.on_access);
  return writes ? run_write(db, command, name, args) : run_read(db, command, args);
}

keys_of_command keys_of(const arguments& args) {
  const auto name = lower(args.front());
  if (args.size() < 2) return {};
  if (name == "eval" || name == "evalsha") {
    long long keys = 0;
    const bool fits =
        args.size() > 2 && to_integer(args[2], keys) && keys > 0 && keys <= static_cast<long long>(args.size()) - 3;
    return fits ? keys_of_command{{args.begin() + 3, args.begin() + 3 + static_cast<std::ptrdiff_t>(keys)}}
                : keys_of_command{};
  }
  if (name == "ssubscribe" || name == "sunsubscribe") return {{args.begin() + 1, args.end()}, true};
  if (name == "spublish") return {{args[1]}, true};
  if (!is_data_command(name) || name == "publish" || name == "pubsub" || name == "flushall" || name == "time")
    return {};
  if (name == "del" || name == "exists") return {{args.begin() + 1, args.end()}};
  return {{args[1]}};
}

bool is_data_command(std::string_view name) { return table().contains(name); }

}  // namespace holdfast::sim
