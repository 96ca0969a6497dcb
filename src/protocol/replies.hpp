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

/// What the answers to the calls say, once their form was checked.
namespace holdfast::detail {

using redis::failure;
using std::chrono::milliseconds;

/// `failed` wins over the value.
template <class T>
struct answer {
  std::optional<failure> failed;
  T value{};
};

struct acquire_answer {
  enum class kind { acquired, busy, busy_without_ttl } type = kind::acquired;
  std::optional<milliseconds> holder_ttl{};  // busy: empty where it was not told
  std::optional<std::uint64_t> token{};      // of a fenced hold
  std::uint16_t spare_tokens = 0;            // after that one, for those that the lock is passed on to
  /// Busy, and some of several primaries have granted it all the same: perhaps nobody has it. How long the slowest of
  /// them took to answer.
  std::optional<std::chrono::nanoseconds> split{};
};
/// Of several locks. `number`: which of them was acquired, from 0; empty: none, they are busy.
struct acquire_any_answer {
  std::optional<std::size_t> number{};
  std::optional<std::uint64_t> token{};  // of a fenced hold
};
/// Of several locks, all or none. `hindered`: the first that cannot be had, and what is with it; empty: all are
/// acquired.
struct acquire_all_answer {
  struct hindrance {
    std::size_t number;             // of them, from 0
    answer<acquire_answer> single;  // as if that one alone had been asked for
  };
  std::optional<hindrance> hindered{};
  std::vector<std::uint64_t> tokens{};  // of fenced holds, one each
};
/// How many subscribers of the server were told of a release; empty: the lock was not this owner's. If the message was
/// refused, nobody was told: withheld_message().
using release_answer = std::optional<std::uint64_t>;
/// Of each hold that is to be confirmed.
enum class renewal_answer : unsigned char {
  confirmed,
  denied,  // the key is gone, or another's
  shared,  // its field is one of several: the key is another kind of lock as well, or data
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
answer<bool> read_force_release(const redis::reply&);                   // somebody's hold was broken
answer<std::optional<holder_answer>> read_holder(const redis::reply&);  // empty: free
answer<unsigned> read_count(const redis::reply&);                       // of HGET: nil is 0
answer<std::optional<std::uint64_t>> read_token(const redis::reply&);   // of GET: nil is empty
answer<std::optional<milliseconds>> read_ttl(const redis::reply&);      // of PTTL: -2 nothing, -1 milliseconds::max()

/// NOSCRIPT: the server does not know the digest.
bool is_unknown_script(const redis::reply&) noexcept;
/// TRYAGAIN: a slot is on its way to another server, and some of its keys are there already. A command is done that
/// has one key. Where it was asked for so long that the topology has given up, its text says so.
bool wants_one_key(const redis::outcome&) noexcept;
/// CROSSSLOT: the command had keys of several slots.
bool wants_one_slot(const redis::outcome&) noexcept;
/// What an error reply to a call means for the caller.
failure classify(std::string_view error_text);

}  // namespace holdfast::detail
