// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/resp.hpp"

namespace holdfast::cli {

/// A process that holds or waits for locks, by the name of its connections: <client_name>:<uuid>:<process id>@<host>.
struct process_facts {
  std::string client, pid, host;
  bool operator==(const process_facts&) const = default;
};

/// One hold of a lock, one permit of a semaphore, or one read hold of a shared mutex.
struct hold_facts {
  std::string holder;                      // the owner field, the text of a simple lock, or that of permit_holder()
  long long ttl = 0;                       // milliseconds; -1: none
  std::optional<process_facts> process{};  // empty: not known
  bool operator==(const hold_facts&) const = default;
};

/// The permits of a semaphore. A permit whose time is over counts as left.
struct permit_facts {
  long long out = 0;
  std::optional<long long> left{};  // negative: more are out than set_permits() allows; empty: the counter is missing
  bool operator==(const permit_facts&) const = default;
};

/// One lock or semaphore as a server has it.
struct lock_facts {
  std::string name;  // without key_prefix
  std::string_view kind;
  std::vector<hold_facts> holds;          // of a lock one; of several at most most_holds, sorted by their ends
  long long count = 1;                    // how often a lock is held; permits that are out; read holds
  std::optional<std::uint64_t> token{};   // the newest of any holder
  std::optional<long long> waiters{};     // clients, or places of a queue; empty: the server does not tell
  std::optional<long long> since{};       // milliseconds of the Unix epoch; empty: the holder keeps no notes
  std::optional<std::string> note{};      // what the holder does, if it says so
  std::size_t votes = 1, primaries = 1;   // of a red_lock: primaries that have this holder
  std::optional<permit_facts> permits{};  // of a semaphore
  bool is_fair = false;                   // a fair mutex with a queue: without one it is like a mutex
  bool is_shared = false;                 // a shared mutex: it is read, or written by one holder
  bool is_read = false;
  std::optional<std::string> leader{};  // of an election: the value of its leader, whose term is the token

  bool operator==(const lock_facts&) const = default;
  const hold_facts& first() const { return holds.front(); }
  bool is_written() const noexcept { return is_shared && !is_read; }
  /// Its holds stand beside each other, and each ends by itself.
  bool has_several() const noexcept { return permits || is_read; }
  /// The number of holds that are not shown.
  long long hidden() const noexcept { return has_several() ? count - static_cast<long long>(holds.size()) : 0; }
};
/// The permits of one semaphore, or the read holds of one shared mutex, that are read and shown. The first permits to
/// end are shown. Redis has no order for read holds, so any of them are shown.
inline constexpr std::size_t most_holds = 100;

/// The stems of the channels for releases, and for the leaders of elections.
namespace channels {
inline constexpr std::string_view mutex = "redisson_lock__channel", simple_mutex = "holdfast_simple",
                                  semaphore = "redisson_sc", shared_mutex = "redisson_rwlock", wake = "holdfast_wake",
                                  election = "holdfast_election",
                                  all[] = {mutex, simple_mutex, semaphore, shared_mutex, wake, election};
}  // namespace channels

/// The contents of one key.
struct key_facts {
  std::string key;
  std::string type;  // as TYPE says; "none": there is no such key; empty: this server does not have it, or refuses
  std::string refusal{};
  std::optional<lock_facts> lock{};    // empty: no lock
  std::optional<long long> counter{};  // of a string that is an integer: perhaps a semaphore's
  bool has_fields = false;             // a hash of several fields: perhaps a shared mutex or an election
  std::optional<long long> waiters{};  // subscribers to the channel of a mutex of this name
};

/// Pure: the shape of a hash or a string that is a lock.
///
/// Decision: a list shows what holdfast and Redisson write, `<uuid>:<number>`. A string of another program may be a
/// simple lock or a cached page, and nothing tells them apart. So those are shown on demand only, and with a TTL only.
bool is_owner_field(std::string_view text) noexcept;
/// `fields`: the answer to HSCAN. Empty: the hash is no lock of one holder.
std::optional<lock_facts> lock_of_hash(const redis::reply& fields);
/// The lock is a fair mutex if callers stand in the queue beside it. `places`: LLEN of that queue.
void add_queue(lock_facts& lock, const redis::reply& places);
/// The key in the name of a channel of a mutex: the channel of a place in the queue ends with the place.
std::string_view without_place(std::string_view key) noexcept;
std::optional<lock_facts> lock_of_string(const redis::reply& text, long long ttl, bool of_any_program);

/// `mode`: HGET of that field; `size`: HLEN; `fields`: the answer to HSCAN. The TTLs of readers are missing. Empty: the
/// hash is no shared mutex.
std::optional<lock_facts> shared_lock_of(const redis::reply& mode, const redis::reply& size,
                                         const redis::reply& fields);

/// `size`: HLEN; `fields`: the answer to HSCAN. Empty: the hash is no election that has a leader.
std::optional<lock_facts> election_of(const redis::reply& size, const redis::reply& fields);

/// The number of a counter; empty: it is none.
std::optional<long long> counter_of_string(const redis::reply& text);
/// The semaphore with this counter, if permits are out. `all`: ZCARD of its permits; `out`: ZCOUNT of those that end
/// after `now`, in milliseconds of the Unix epoch; `first`: ZRANGEBYSCORE of the first of these with their scores.
///
/// Decision: a semaphore is known by its sorted set, which has the permits that are out. Without the set it is a number
/// as an RSemaphore or any counter has it, and is shown as no lock.
std::optional<lock_facts> semaphore_of(std::optional<long long> counter, const redis::reply& all,
                                       const redis::reply& out, const redis::reply& first, long long now);
/// The holder of a permit by its 16 bytes. Of a holdfast client: the first half of its uuid, and the number of the
/// permit, as "535b0cc8-ab8d-8f7a:7". Of another: 32 hexadecimal digits, as Redisson shows it.
std::string permit_holder(std::string_view id);

/// Adds since and note if `text`, the key beside the lock, is the note of its holder. Any program may write that key.
void add_note(lock_facts& lock, const redis::reply& text);

/// The part of CLIENT LIST that a lock needs: processes by the uuid of their client.
class process_table {
 public:
  void add(std::string_view client_list);
  /// By the uuid that the holder begins with, or by the first half of it.
  std::optional<process_facts> find(std::string_view holder) const;

 private:
  struct entry {
    std::string uuid;
    process_facts process;
  };
  std::vector<entry> entries_;  // sorted by uuid
};

/// The text of a glob pattern that matches these bytes alone.
std::string literal_pattern(std::string_view bytes);

}  // namespace holdfast::cli
