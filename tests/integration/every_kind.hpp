// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "integration/world.hpp"

/// What the contract of every kind of lock has to know of each. The test "kinds" finds a kind that is not here.
namespace holdfast::test {

struct lock_kind {
  const char* name;
  mutex (*of)(const client&, std::string_view name, std::optional<owner>);
  const char* channel;  // of the lock "m"
  bool reentrant;
  /// Kinds with the same are the same lock to each other.
  const char* stored_as;

  // What another client does by hand with the lock "m".
  void (*taken_by_stranger)(raw_client&, std::chrono::milliseconds ttl);
  void (*freed_by_stranger)(raw_client&);
  /// The owner in the key; empty: it is free.
  std::string (*owner_of)(raw_client&);
  /// Makes the key something that no lock of this kind is.
  void (*spoilt)(raw_client&);

  mutex operator()(const client& c, std::string_view lock = "m", std::optional<owner> who = {}) const {
    return of(c, lock, who);
  }
};

namespace by_hand {

constexpr auto* stranger = "stranger:1";

inline void take_hash(raw_client& redis, std::chrono::milliseconds ttl) {
  redis("DEL", "m");
  redis("HSET", "m", stranger, 1);
  if (ttl > 0ms) redis("PEXPIRE", "m", ttl.count());
}
inline void free_hash(raw_client& redis) {
  redis("HDEL", "m", stranger);
  redis("PUBLISH", "redisson_lock__channel:{m}", "0");
}
inline std::string owner_in_hash(raw_client& redis) {
  const auto fields = redis("HKEYS", "m").strings();
  return fields.empty() ? std::string() : fields.front();
}
inline void spoil_hash(raw_client& redis) { redis("SET", "m", "text"); }

inline void take_string(raw_client& redis, std::chrono::milliseconds ttl) {
  if (ttl > 0ms)
    redis("SET", "m", stranger, "PX", ttl.count());
  else
    redis("SET", "m", stranger);
}
// As most clients do: without a message.
inline void free_string(raw_client& redis) {
  redis("EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0", 1, "m",
        stranger);
}
inline std::string owner_in_string(raw_client& redis) {
  const auto value = redis("GET", "m");
  return value.is_nil() ? std::string() : value.to_string();
}
inline void spoil_string(raw_client& redis) {
  redis("DEL", "m");
  redis("HSET", "m", "id", "42");
}

}  // namespace by_hand

inline const std::vector<lock_kind>& every_kind() {
  using maybe = std::optional<owner>;
  static constexpr auto *redisson = "redisson_lock__channel:{m}", *simple = "holdfast_simple:{m}";
  static const std::vector<lock_kind> all{
      {"plain_lock", [](const client& c, std::string_view n, maybe who) { return who ? c.mutex(n, *who) : c.mutex(n); },
       redisson, true, "hash", by_hand::take_hash, by_hand::free_hash, by_hand::owner_in_hash, by_hand::spoil_hash},
      {"fenced_lock",
       [](const client& c, std::string_view n, maybe who) -> mutex {
         return who ? c.fenced_mutex(n, *who) : c.fenced_mutex(n);
       },
       redisson, true, "hash", by_hand::take_hash, by_hand::free_hash, by_hand::owner_in_hash, by_hand::spoil_hash},
      {"simple_lock",
       [](const client& c, std::string_view n, maybe who) -> mutex {
         return who ? c.simple_mutex(n, *who) : c.simple_mutex(n);
       },
       simple, false, "string", by_hand::take_string, by_hand::free_string, by_hand::owner_in_string,
       by_hand::spoil_string}};
  return all;
}

/// Each kind in a world of its own.
template <class Test>
void of_every_kind(Test test) {
  for (const auto& k : every_kind()) {
    INFO(k.name);
    world w;
    test(k, w);
  }
}

}  // namespace holdfast::test
