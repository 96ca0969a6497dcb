// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <holdfast/error.hpp>

#include "redis/resp.hpp"

/// The data in Redis: keys, owner fields, channels, scripts and their replies. Byte for byte Redisson's, except the
/// texts of the scripts.
namespace holdfast::detail {

using std::chrono::milliseconds;

/// Where a lock lives. Made once for a mutex and shared by all that works on it.
struct lock_keys {
  explicit lock_keys(std::string_view name, std::string_view prefix = {});

  const std::string name;  // the user's, without prefix
  const std::string lock;  // N: the hash
};
using shared_keys = std::shared_ptr<const lock_keys>;

/// redisson_lock__channel:{N}, or without braces where N has an opening one: releases are published there. Made where
/// it is needed, and kept nowhere: there may be a million names.
std::string channel_of(const lock_keys&);
/// redisson_lock_token:{N}: the newest fencing token of a lock.
std::string token_key(const lock_keys&);

/// A UUID: 122 bits of somebody's choice, and version 8, which tells our fields from Redisson's (version 4).
class uuid {
 public:
  using text = std::array<char, 36>;

  uuid() = default;
  uuid(std::uint64_t high, std::uint64_t low) noexcept;
  text to_text() const noexcept;
  friend auto operator<=>(const uuid&, const uuid&) = default;

 private:
  std::uint64_t high_ = 0, low_ = 0;
};

/// Whose hold a field of the hash is: a client, and the number of the hold there. Numbers grow, so the fields of a
/// client are in the order of their age.
class owner_field {
 public:
  /// "<client uuid>:<decimal>"
  class text {
   public:
    operator std::string_view() const noexcept { return {bytes_.data(), size_}; }

   private:
    friend class owner_field;
    std::array<char, std::tuple_size_v<uuid::text> + 1 + 20> bytes_;
    std::size_t size_ = 0;
  };

  owner_field() = default;
  owner_field(const uuid& client, std::uint64_t number) noexcept : client_(client), number_(number) {}

  /// Of an empty one: an empty text.
  text to_text() const noexcept;
  bool empty() const noexcept { return number_ == 0; }
  void clear() noexcept { number_ = 0; }
  friend auto operator<=>(const owner_field&, const owner_field&) = default;

 private:
  uuid client_;
  std::uint64_t number_ = 0;
};

/// Makes owner fields. None is used for a second hold.
class owner_fields {
 public:
  explicit owner_fields(const uuid& client);
  owner_field next() noexcept { return {client_, ++last_}; }
  const std::string& client_uuid() const noexcept { return text_; }

 private:
  const uuid client_;
  const std::string text_;
  std::uint64_t last_ = 0;
};

/// What a command gives the key of a hold: `ttl` if it has less, `if_none` if somebody has taken its TTL away, where
/// any would do. Neither ever shortens one. `if_none` is `ttl` at least, and is sent where it is more.
struct key_ttl {
  milliseconds ttl, if_none = ttl;
};

/// One hold to confirm: the lock's hash, its owner field and the TTL wanted.
struct renewal {
  std::string_view lock;
  owner_field field;
  key_ttl wanted;
};

/// One call of a script. Its bytes are made when they are written: until then it refers to what it was made of.
class script_call {
 public:
  script_call() = default;

  /// In RESP: by digest, or by text for a server that does not know it.
  void append_to(std::string& out, bool by_text) const;
  /// The first key: decides which server.
  std::string_view key() const noexcept { return what_.at ? what_.at->lock : what_.holds->lock; }

 private:
  friend struct scripts;
  class writer;
  struct operands {
    const lock_keys* at = nullptr;
    const owner_field* field = nullptr;
    key_ttl ttl{};
    const renewal* holds = nullptr;
    unsigned count = 0;  // of leases, or of those holds
  };
  struct script {
    std::string_view evalsha, body;
    void (*write)(writer&, const operands&);
  };
  static void write_renewals(writer& to, std::span<const renewal> holds);

  script_call(const script& which, const operands& what) noexcept : which_(&which), what_(what) {}

  const script* which_ = nullptr;
  operands what_;
};

/// The calls, one for each .lua file beside this one, which say what they do.
struct scripts {
  static script_call acquire(const lock_keys&, milliseconds ttl, const owner_field&);
  static script_call acquire_fenced(const lock_keys&, milliseconds ttl, const owner_field&);
  static script_call reenter(const lock_keys&, key_ttl, const owner_field&, unsigned want);
  static script_call renew(std::span<const renewal>);  // one or more
  static script_call renew(const lock_keys&, const owner_field&, key_ttl);
  static script_call release(const lock_keys&, const owner_field&, unsigned count, key_ttl);
  static script_call force_release(const lock_keys&);
  static script_call holder(const lock_keys&);
};

/// What a server's answer says, once its form was checked. `error` wins over the rest.
struct server_error {
  error_code code;
  bool retry = false;  // the same command may succeed later without a change of program or server settings
  std::string text;    // the server's words, safe to print
};
template <class T>
struct answer {
  std::optional<server_error> error;
  T value{};
};

struct acquire_answer {
  enum class kind { acquired, busy, busy_without_ttl } what = kind::acquired;
  milliseconds holder_ttl{};
  std::optional<std::uint64_t> token;  // of a fenced hold
};
enum class release_answer { freed, still_held, not_yours };
struct holder_answer {
  std::string field;
  unsigned count;
  milliseconds ttl;  // milliseconds::max(): none
};

answer<acquire_answer> read_acquire(const redis::reply&);
answer<acquire_answer> read_acquire_fenced(const redis::reply&);
answer<bool> read_reenter(const redis::reply&);                               // false: lost
answer<std::vector<bool>> read_renew(const redis::reply&, std::size_t sent);  // confirmed, one for each hold
answer<release_answer> read_release(const redis::reply&);
answer<bool> read_force_release(const redis::reply&);                   // true: there was a hold
answer<std::optional<holder_answer>> read_holder(const redis::reply&);  // empty: free
answer<bool> read_exists(const redis::reply&);
answer<unsigned> read_count(const redis::reply&);                      // of HGET: nil is 0
answer<std::optional<std::uint64_t>> read_token(const redis::reply&);  // of GET: nil is empty
answer<std::optional<milliseconds>> read_ttl(const redis::reply&);     // of PTTL: -2 nothing, -1 milliseconds::max()

/// What tells one kind of lock from another. Waiting, re-entry, renewal and release do not know kinds.
struct primitive {
  script_call (*acquire)(const lock_keys&, milliseconds ttl, const owner_field&);
  answer<acquire_answer> (*read_acquire)(const redis::reply&);
  bool fenced;  // its holds have a fencing token
};
inline constexpr primitive plain_lock{scripts::acquire, detail::read_acquire, false};
inline constexpr primitive fenced_lock{scripts::acquire_fenced, detail::read_acquire_fenced, true};

/// NOSCRIPT: the server does not know the digest.
bool is_unknown_script(const redis::reply&) noexcept;
/// What an error reply means for the caller.
server_error classify(std::string_view error_text);

}  // namespace holdfast::detail
