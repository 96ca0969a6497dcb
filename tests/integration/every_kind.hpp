// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "integration/red_world.hpp"

/// What the contract of every kind of lock has to know of each. The test "kinds" finds a kind that is not here.
namespace holdfast::test {

/// Looks at all servers of a lock at once, and at the first where they may differ.
class eyes {
 public:
  explicit eyes(std::deque<raw_client>& each) : each_(each) {}

  template <class... Arguments>
  value operator()(const Arguments&... arguments) {
    std::optional<value> first;
    for (auto& eye : each_) {
      auto v = eye(arguments...);
      if (!first) first = std::move(v);
    }
    return *first;
  }
  value call(const std::vector<std::string>& argv) {
    std::optional<value> first;
    for (auto& eye : each_) {
      auto v = eye.call(argv);
      if (!first) first = std::move(v);
    }
    return *first;
  }
  /// What a majority says, one after the other.
  template <class Ask>
  std::string majority(Ask ask) {
    std::map<std::string, std::size_t> votes;
    for (auto& eye : each_)
      if (auto said = ask(eye); ++votes[said] > each_.size() / 2) return said;
    return "no majority";
  }

 private:
  std::deque<raw_client>& each_;
};

/// The servers of one kind of lock; those that vote have their markers.
struct lock_world : red_world {
  explicit lock_world(std::size_t servers, bool with_turns = true) : red_world(servers), eye(eyes), turns(with_turns) {
    if (servers == 1) return;
    for (auto& one : eyes) {
      const auto info = one("INFO", "server").to_string();
      one("SET", "holdfast:redlock", info.substr(info.find("\nrun_id:") + 8, 40) + " 60000");
    }
  }

  config settings() {
    auto c = red_world::settings();
    c.turns = turns;
    if (size() == 1) c.url = std::exchange(c.red_lock.primaries, {}).front();
    return c;
  }
  template <class Change>
  client make(Change change) {
    auto c = settings();
    change(c);
    return client(io.get_executor(), std::move(c));
  }
  client make() {
    return make([](config&) {});
  }
  /// Of all servers: a minority may hear of an unlock when its caller has been answered.
  std::vector<std::string> locks() {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (true) {
      std::vector<std::string> all;
      for (auto& one : eyes)
        for (auto& key : one("KEYS", "*").strings())
          if (is_lock(key) && !is_counter(one, key)) all.push_back(key);
      if (all.empty() || size() == 1 || std::chrono::steady_clock::now() >= end) return all;
      pass(1ms);
    }
  }

  /// Of a semaphore: it stays.
  static bool is_counter(raw_client& one, const std::string& key) {
    return one("TYPE", key) == "string" && one("PTTL", key) == -1;
  }

  test::eyes eye;
  const bool turns;  // of its clients
};

inline std::string stored_as_is(std::string_view id) { return std::string(id); }
inline long long ttl_of_key(raw_client& redis) { return redis("PTTL", "m").integer(); }

struct lock_kind {
  const char* name;
  std::size_t servers;
  bool turns;  // its clients take them
  mutex (*of)(const client&, std::string_view name, std::optional<owner>);
  const char* channel;  // of the lock "m"; null: each waiter has one
  enum class nesting { enters, refuses, anew } nested;
  /// Kinds with the same are the same lock to each other.
  const char* stored_as;
  bool reentrant() const noexcept { return nested == nesting::enters; }
  /// One permit of a semaphore of one.
  bool is_permit() const noexcept { return nested == nesting::anew; }
  bool is_side() const noexcept { return std::string_view(stored_as) == "readers and a writer"; }
  bool leads() const noexcept { return std::string_view(stored_as) == "leader"; }
  bool is_hash() const noexcept { return is_side() || leads() || std::string_view(stored_as) == "hash"; }

  // What another client does by hand with the lock "m".
  void (*taken_by_stranger)(eyes&, std::chrono::milliseconds ttl);
  void (*freed_by_stranger)(eyes&);
  /// The owner in the key; empty: it is free.
  std::string (*owner_in)(raw_client&);
  /// Makes the key something that no lock of this kind is.
  void (*spoilt)(eyes&);
  /// The owner in the key, and for holder(), of the lease with this id.
  std::string (*stored_owner)(std::string_view id) = stored_as_is;
  /// Of the hold, as Redis keeps it.
  long long (*ttl_in)(raw_client&) = ttl_of_key;
  const char* key_of_hold = "m";
  /// Each is one character.
  std::string_view messages_of_release = "0";
  bool shares = false;    // two owners hold it together
  bool in_order = false;  // each waiter has a place in one queue of all clients, and a channel of its own

  std::string owner_of(eyes& all) const { return all.majority(owner_in); }

  mutex operator()(const client& c, std::string_view lock = "m", std::optional<owner> who = {}) const {
    return of(c, lock, who);
  }
};

namespace by_hand {

constexpr auto* stranger = "57a9e700-0000-8000-8000-000000000000:1";  // as a holdfast client's: it takes turns

inline void take_hash(eyes& redis, std::chrono::milliseconds ttl) {
  redis("DEL", "m");
  redis("HSET", "m", stranger, 1);
  if (ttl > 0ms) redis("PEXPIRE", "m", ttl.count());
}
inline void free_hash(eyes& redis) {
  redis("HDEL", "m", stranger);
  redis("PUBLISH", "redisson_lock__channel:{m}", "0");
}
// As Redisson's RFairLock: the head of the queue is told.
inline void free_in_order(eyes& redis) {
  redis("HDEL", "m", stranger);
  const auto places = redis("LRANGE", "redisson_lock_queue:{m}", 0, 0).strings();
  if (!places.empty()) redis("PUBLISH", "redisson_lock__channel:{m}:" + places.front(), "0");
}
inline std::string owner_in_hash(raw_client& redis) {
  const auto fields = redis("HKEYS", "m").strings();
  return fields.empty() ? std::string() : fields.front();
}
inline void spoil_hash(eyes& redis) { redis("SET", "m", "text"); }

inline void take_string(eyes& redis, std::chrono::milliseconds ttl) {
  if (ttl > 0ms)
    redis("SET", "m", stranger, "PX", ttl.count());
  else
    redis("SET", "m", stranger);
}
// As most clients do: without a message.
inline void free_string(eyes& redis) {
  redis("EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0", 1, "m",
        stranger);
}
inline std::string owner_in_string(raw_client& redis) {
  const auto value = redis("GET", "m");
  return value.is_nil() ? std::string() : value.to_string();
}
inline void spoil_string(eyes& redis) {
  redis("DEL", "m");
  redis("HSET", "m", "id", "42");
}

/// A permit's id in hexadecimal digits, by the id of its lease.
inline std::string permit_of(std::string_view id) {
  const auto colon = id.find(':');
  std::string hex;
  for (const char c : id.substr(0, 18))
    if (c != '-') hex += c;
  std::array<char, 17> number;
  std::snprintf(number.data(), number.size(), "%016llx", std::stoull(std::string(id.substr(colon + 1))));
  return hex + number.data();
}
inline std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}
constexpr auto* permits = "{m}:timeout";
inline long long now_in(eyes& redis) { return redis("EVAL", "return redis.call('time')[1] * 1000", 0).integer(); }
inline void take_permit(eyes& redis, std::chrono::milliseconds ttl) {
  redis("DEL", "m", permits);
  redis("SET", "m", 0);
  redis("ZADD", permits, now_in(redis) + 1000 + ttl.count(), bytes_of(permit_of(stranger)));
}
inline void free_permit(eyes& redis) {
  redis("SET", "m", redis("ZREM", permits, bytes_of(permit_of(stranger))).integer());
  redis("PUBLISH", "redisson_sc:{m}", 1);
}
inline std::string permit_in(raw_client& redis) {
  const auto ids = redis("ZRANGE", permits, 0, -1).strings();
  std::string hex;
  for (const char c : ids.empty() ? std::string() : ids.front()) {
    std::array<char, 3> digits;
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(c));
    hex += digits.data();
  }
  return hex;
}
inline void spoil_permits(eyes& redis) { redis("SET", permits, "text"); }
inline long long ttl_of_permit(raw_client& redis) {
  return redis("EVAL", "return redis.call('zrange', KEYS[1], 0, 0, 'withscores')[2] - redis.call('time')[1] * 1000", 1,
               permits)
      .integer();
}

// A stranger writes: that keeps readers out, too.
constexpr auto* stranger_writes = "57a9e700-0000-8000-8000-000000000000:1:write";
inline void take_to_write(eyes& redis, std::chrono::milliseconds ttl) {
  redis("DEL", "m");
  redis("HSET", "m", "mode", "write", stranger_writes, 1);
  if (ttl > 0ms) redis("PEXPIRE", "m", ttl.count());
}
// As Redisson's writer does, if the stranger has not been broken meanwhile.
inline void free_to_write(eyes& redis) {
  if (redis("HDEL", "m", stranger_writes) == 1) redis("DEL", "m");
  redis("PUBLISH", "redisson_rwlock:{m}", "0");
}
/// The owner on either side.
inline std::string owner_of_side(raw_client& redis) {
  for (auto field : redis("HKEYS", "m").strings())
    if (field != "mode") return field.substr(0, field.find(":write"));
  return {};
}

inline void take_lead(eyes& redis, std::chrono::milliseconds ttl) {
  take_hash(redis, ttl);
  redis("HSET", "m", "leader", "value", "term", 1);
}
inline void free_lead(eyes& redis) {
  if (redis("HDEL", "m", stranger) == 1) redis("DEL", "m");
  redis("PUBLISH", "redisson_lock__channel:{m}", "0");
}
inline std::string leader_in(raw_client& redis) {
  for (auto field : redis("HKEYS", "m").strings())
    if (field.find(':') != field.npos) return field;
  return {};
}

}  // namespace by_hand

inline const std::vector<lock_kind>& every_kind() {
  using maybe = std::optional<owner>;
  static constexpr auto *redisson = "redisson_lock__channel:{m}", *simple = "holdfast_simple:{m}";
  static constexpr auto plain = [](const client& c, std::string_view n, maybe who) {
    return who ? c.mutex(n, *who) : c.mutex(n);
  };
  static constexpr auto fenced = [](const client& c, std::string_view n, maybe who) -> mutex {
    return who ? c.fenced_mutex(n, *who) : c.fenced_mutex(n);
  };
  static constexpr auto simply = [](const client& c, std::string_view n, maybe who) -> mutex {
    return who ? c.simple_mutex(n, *who) : c.simple_mutex(n);
  };
  static constexpr auto red = [](const client& c, std::string_view n, maybe who) -> mutex {
    return who ? c.red_lock(n, *who) : c.red_lock(n);
  };
  static constexpr auto red_simply = [](const client& c, std::string_view n, maybe who) -> mutex {
    constexpr auto nested = reentrancy::not_reentrant;
    return who ? c.red_lock(n, *who, nested) : c.red_lock(n, nested);
  };
  static constexpr auto permit = [](const client& c, std::string_view n, maybe) -> mutex {
    return c.expirable_semaphore(n, 1).as_mutex();
  };
  static constexpr auto to_write = [](const client& c, std::string_view n, maybe who) -> mutex {
    return (who ? c.shared_mutex(n, *who) : c.shared_mutex(n)).writer();
  };
  static constexpr auto to_read = [](const client& c, std::string_view n, maybe who) -> mutex {
    return (who ? c.shared_mutex(n, *who) : c.shared_mutex(n)).reader();
  };
  static constexpr auto candidate = [](const client& c, std::string_view n, maybe who) -> mutex {
    return (who ? c.election(n, *who) : c.election(n)).candidate("value");
  };
  static constexpr auto fairly = [](const client& c, std::string_view n, maybe who) -> mutex {
    return who ? c.fair_mutex(n, *who) : c.fair_mutex(n);
  };
  static constexpr auto *sides = "redisson_rwlock:{m}", *as_sides = "readers and a writer";
  using enum lock_kind::nesting;
  static const std::vector<lock_kind> all{
      {"plain_lock", 1, true, plain, redisson, enters, "hash", by_hand::take_hash, by_hand::free_hash,
       by_hand::owner_in_hash, by_hand::spoil_hash},
      {"plain_lock without turns", 1, false, plain, redisson, enters, "hash", by_hand::take_hash, by_hand::free_hash,
       by_hand::owner_in_hash, by_hand::spoil_hash},
      {"fenced_lock_in_turns", 1, true, fenced, redisson, enters, "hash", by_hand::take_hash, by_hand::free_hash,
       by_hand::owner_in_hash, by_hand::spoil_hash},
      {"fenced_lock", 1, false, fenced, redisson, enters, "hash", by_hand::take_hash, by_hand::free_hash,
       by_hand::owner_in_hash, by_hand::spoil_hash},
      {"simple_lock", 1, true, simply, simple, refuses, "string", by_hand::take_string, by_hand::free_string,
       by_hand::owner_in_string, by_hand::spoil_string},
      {"simple_lock without turns", 1, false, simply, simple, refuses, "string", by_hand::take_string,
       by_hand::free_string, by_hand::owner_in_string, by_hand::spoil_string},
      {"permit_lock", 1, true, permit, "redisson_sc:{m}", anew, "permits", by_hand::take_permit, by_hand::free_permit,
       by_hand::permit_in, by_hand::spoil_permits, by_hand::permit_of, by_hand::ttl_of_permit, by_hand::permits, "1"},
      {"permit_lock without turns", 1, false, permit, "redisson_sc:{m}", anew, "permits", by_hand::take_permit,
       by_hand::free_permit, by_hand::permit_in, by_hand::spoil_permits, by_hand::permit_of, by_hand::ttl_of_permit,
       by_hand::permits, "1"},
      {"election_lock", 1, true, candidate, redisson, refuses, "leader", by_hand::take_lead, by_hand::free_lead,
       by_hand::leader_in, by_hand::spoil_hash},
      {"election_lock without turns", 1, false, candidate, redisson, refuses, "leader", by_hand::take_lead,
       by_hand::free_lead, by_hand::leader_in, by_hand::spoil_hash},
      {"fair_lock", 1, true, fairly, nullptr, enters, "hash", by_hand::take_hash, by_hand::free_in_order,
       by_hand::owner_in_hash, by_hand::spoil_hash, stored_as_is, ttl_of_key, "m", "0", false, true},
      {"fair_lock without turns", 1, false, fairly, nullptr, enters, "hash", by_hand::take_hash, by_hand::free_in_order,
       by_hand::owner_in_hash, by_hand::spoil_hash, stored_as_is, ttl_of_key, "m", "0", false, true},
      {"shared_writer", 1, true, to_write, sides, enters, as_sides, by_hand::take_to_write, by_hand::free_to_write,
       by_hand::owner_of_side, by_hand::spoil_hash, stored_as_is, ttl_of_key, "m", "01"},
      {"shared_writer without turns", 1, false, to_write, sides, enters, as_sides, by_hand::take_to_write,
       by_hand::free_to_write, by_hand::owner_of_side, by_hand::spoil_hash, stored_as_is, ttl_of_key, "m", "01"},
      {"shared_reader", 1, true, to_read, sides, enters, as_sides, by_hand::take_to_write, by_hand::free_to_write,
       by_hand::owner_of_side, by_hand::spoil_hash, stored_as_is, ttl_of_key, "m", "01", true},
      {"red_plain_lock", 5, true, red, redisson, enters, "hash", by_hand::take_hash, by_hand::free_hash,
       by_hand::owner_in_hash, by_hand::spoil_hash},
      {"red_plain_lock without turns", 5, false, red, redisson, enters, "hash", by_hand::take_hash, by_hand::free_hash,
       by_hand::owner_in_hash, by_hand::spoil_hash},
      {"red_simple_lock", 5, true, red_simply, simple, refuses, "string", by_hand::take_string, by_hand::free_string,
       by_hand::owner_in_string, by_hand::spoil_string},
      {"red_simple_lock without turns", 5, false, red_simply, simple, refuses, "string", by_hand::take_string,
       by_hand::free_string, by_hand::owner_in_string, by_hand::spoil_string}};
  return all;
}

/// Each kind in a world of its own.
template <class Test>
void in_worlds(const std::vector<lock_kind>& kinds, Test test) {
  for (const auto& k : kinds) {
    INFO(k.name);
    lock_world w(k.servers, k.turns);
    test(k, w);
  }
}
/// The kinds that every function of the library takes. any_of takes no permits, sides of a shared mutex, candidates or
/// locks in order.
inline std::vector<lock_kind> kinds_of_locks() {
  auto all = every_kind();
  std::erase_if(all, [](const lock_kind& k) { return k.is_permit() || k.is_side() || k.leads() || k.in_order; });
  return all;
}
/// Locks, permits, and both sides of a shared mutex.
template <class Test>
void of_all(Test test) {
  in_worlds(every_kind(), test);
}
/// The kinds whose locks have one holder at a time.
template <class Test>
void of_all_that_exclude(Test test) {
  auto kinds = every_kind();
  std::erase_if(kinds, [](const lock_kind& k) { return k.shares; });
  in_worlds(kinds, test);
}
/// The kinds whose releases are told to all waiters on one channel.
template <class Test>
void of_all_with_one_channel(Test test) {
  auto kinds = every_kind();
  std::erase_if(kinds, [](const lock_kind& k) { return k.shares || k.in_order; });
  in_worlds(kinds, test);
}
/// The kinds whose holders are owners. A permit has none.
template <class Test>
void of_all_with_an_owner(Test test) {
  auto kinds = every_kind();
  std::erase_if(kinds, [](const lock_kind& k) { return k.is_permit(); });
  in_worlds(kinds, test);
}
template <class Test>
void of_every_kind(Test test) {
  in_worlds(kinds_of_locks(), test);
}

/// Those that one server grants, wherever that is; of clients as they are by default.
template <class Test>
void each_kind_of_one_server(Test test) {
  for (const auto& k : kinds_of_locks()) {
    if (k.servers > 1 || !k.turns) continue;
    INFO(k.name);
    test(k);
  }
}
/// The same, each in a world of its own, and with and without turns.
template <class Test>
void of_every_kind_of_one_server(Test test) {
  auto kinds = kinds_of_locks();
  std::erase_if(kinds, [](const lock_kind& k) { return k.servers > 1; });
  in_worlds(kinds, test);
}
template <class Test>
void of_all_of_one_server(Test test) {
  auto kinds = every_kind();
  std::erase_if(kinds, [](const lock_kind& k) { return k.servers > 1; });
  in_worlds(kinds, test);
}

}  // namespace holdfast::test
