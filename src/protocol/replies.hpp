// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/failure.hpp"
#include "redis/outcome.hpp"
#include "redis/resp.hpp"

/// The answers to the calls, after a check of their form.
namespace holdfast::detail {

using redis::failure;
using std::chrono::milliseconds;

/// A failure or a value. `failed` goes before the value.
template <class T>
struct answer {
  std::optional<failure> failed;
  T value{};
};

struct acquire_answer {
  enum class kind { acquired, busy, busy_without_ttl } type = kind::acquired;
  /// Busy: empty if the answer has no TTL. Acquired: only if the next waiter of the party found it busy.
  std::optional<milliseconds> holder_ttl{};
  std::optional<std::uint64_t> token{};  // of a fenced hold
  std::uint16_t spare_tokens = 0;        // the tokens after it, for later holds of the same claim
  std::uint8_t served = 1;               // acquired: of the waiters of a party, so many
  bool barging = false;                  // busy: the holder is no holdfast client, so it takes no turns
  bool open = false;                     // acquired to read: no client and no peer waits to write
  bool reserved = false;                 // busy: the lock is free, and kept for others
  std::optional<std::uint8_t> rank{};    // busy to write: so many clients are before this one in the queue
  std::string turn{};                    // reserved, of a fair mutex: the place whose turn it is
  std::optional<std::uint8_t> place{};   // acquired, of a fair mutex: the place of this client that left the queue
  /// Busy, but some of several primaries have granted the lock: perhaps it is free. The value is the response time
  /// of the slowest primary.
  std::optional<std::chrono::nanoseconds> split{};
};
/// For several locks. `number` is the index of the acquired lock. Empty: all are busy.
struct acquire_any_answer {
  std::optional<std::size_t> number{};
  std::optional<std::uint64_t> token{};  // of a fenced hold
};
/// For several locks, all or none. `hindered` is the first lock that is not free, and its state. Empty: all are
/// acquired.
struct acquire_all_answer {
  struct hindrance {
    std::size_t number;             // its index
    answer<acquire_answer> single;  // as if only this lock had been asked for
  };
  std::optional<hindrance> hindered{};
  std::vector<std::uint64_t> tokens{};  // one for each fenced hold
};
/// The number of subscribers that a release has notified. Empty: the lock was not this owner's. After a refused message
/// it is 0, see withheld_message().
using release_answer = std::optional<std::uint64_t>;
/// The state of the queue of a fair mutex.
struct stand_answer {
  std::optional<milliseconds> ttl{};  // of the lock; empty: it is free; milliseconds::max(): none
  unsigned standing = 0;              // places, those of all clients
};
/// The answer to a release that takes the lock for the next waiter of its client.
struct ride_answer {
  release_answer told{};                // empty: the lock was not this owner's
  bool rides = false;                   // `next` has the lock now; nobody was told
  std::optional<std::uint8_t> place{};  // rides: this place left the queue; empty: no place stood, or it is unknown
  std::string turn{};                   // does not ride: the place whose turn it is; empty: none
};
/// The answer for one hold of a renewal.
enum class renewal_answer : unsigned char {
  confirmed,
  denied,  // the key is gone, or another owner's
  shared,  // the hash has several fields: it is another kind of lock as well, or data
};
/// The state of a semaphore.
struct semaphore_state {
  long long left = 0;  // negative: more permits are out than the semaphore has by now
  unsigned long long out = 0;
  std::optional<milliseconds> next{};  // the time until the next permit ends; empty: none is out
  std::string first;                   // the id of that permit
  bool held = false;                   // the permit of the question is out
};
/// The state of a shared mutex. Nobody holds it: neither `writes` nor readers.
struct shared_state {
  bool writes = false;
  std::string owner;  // the writer, or one of the readers
  unsigned count = 0;
  milliseconds ttl{};    // milliseconds::max(): none
  unsigned readers = 0;  // read holds
};
/// The leader of an election.
struct leader_answer {
  milliseconds ttl{};      // milliseconds::max(): none
  std::uint64_t term = 0;  // of another lock's holder: the newest fencing token; 0: none
  std::string field;
  std::optional<std::string> value{};  // empty: the holder is no candidate
};
struct holder_answer {
  std::string field;
  unsigned count;
  milliseconds ttl;  // milliseconds::max(): none
};

answer<acquire_answer> read_acquire(const redis::reply&);
answer<acquire_answer> read_acquire_fenced(const redis::reply&);
answer<acquire_any_answer> read_acquire_any(const redis::reply&, std::size_t sent);
answer<acquire_any_answer> read_acquire_any_fenced(const redis::reply&, std::size_t sent);
answer<acquire_all_answer> read_acquire_all(const redis::reply&, std::size_t sent);
answer<acquire_all_answer> read_acquire_all_fenced(const redis::reply&, std::size_t sent);
answer<acquire_answer> read_set(const redis::reply&);                                   // of SET NX
answer<bool> read_flag(const redis::reply&);                                            // 1 or 0
answer<std::vector<renewal_answer>> read_renew(const redis::reply&, std::size_t sent);  // one for each hold
answer<release_answer> read_release(const redis::reply&);
answer<unsigned> read_force_release(const redis::reply&);                    // how many holds were broken
answer<std::optional<holder_answer>> read_holder(const redis::reply&);       // empty: free
answer<unsigned> read_count(const redis::reply&);                            // of HGET: nil is 0
answer<acquire_answer> read_permits(const redis::reply&, std::size_t sent);  // of a party
answer<release_answer> read_permits_release(const redis::reply&);
answer<long long> read_permits_number(const redis::reply&);  // left, or broken
answer<semaphore_state> read_semaphore(const redis::reply&);
// Of a shared mutex. A reader's release returns the number of notified subscribers, a writer's the number of waiting
// clients.
answer<acquire_answer> read_reader_acquire(const redis::reply&);
answer<acquire_answer> read_writer_acquire(const redis::reply&);
answer<release_answer> read_reader_release(const redis::reply&);
answer<release_answer> read_writer_release(const redis::reply&);
answer<bool> read_downgrade(const redis::reply&);
answer<shared_state> read_shared_state(const redis::reply&);
// Of a fair mutex.
answer<acquire_answer> read_fair_acquire(const redis::reply&);
answer<stand_answer> read_stand(const redis::reply&);
answer<ride_answer> read_ride(const redis::reply&);
answer<release_answer> read_fair_release(const redis::reply&);
answer<unsigned> read_waiters(const redis::reply&);                     // of LLEN
answer<std::optional<leader_answer>> read_leader(const redis::reply&);  // empty: nobody leads
answer<bool> read_latch_set(const redis::reply&);                       // true: it is set now
answer<release_answer> read_count_down(const redis::reply&);
answer<std::uint32_t> read_latch_count(const redis::reply&);           // of GET: nil is 0
answer<std::optional<std::uint64_t>> read_token(const redis::reply&);  // of GET: nil is empty
answer<std::optional<milliseconds>> read_ttl(const redis::reply&);     // of PTTL: -2 nothing, -1 milliseconds::max()

/// NOSCRIPT: the server does not know the digest.
bool is_unknown_script(const redis::reply&) noexcept;
/// TRYAGAIN: a slot is moving to another server, and only a part of the command's keys is there. A command of one key
/// works. If the topology gave up after many attempts, the text says so.
bool wants_one_key(const redis::outcome&) noexcept;
/// CROSSSLOT: the command had keys of several slots.
bool wants_one_slot(const redis::outcome&) noexcept;
/// The meaning of an error reply for the caller.
failure classify(std::string_view error_text);

}  // namespace holdfast::detail
