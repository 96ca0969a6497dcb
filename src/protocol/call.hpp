// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lua_scripts.hpp"
#include "protocol/keys.hpp"
#include "protocol/owner_field.hpp"
#include "redis/request.hpp"
#include "redis/resp.hpp"

namespace holdfast::redis {
struct votes;
}

namespace holdfast::detail {

using std::chrono::milliseconds;

/// The answer of one of several independent primaries to a command. none: neither a yes nor a no.
enum class vote : std::uint8_t { yes, no, none };

/// The TTL that a command gives the key of a hold. `ttl` is for a key that has less. `if_none` is for a key that has
/// lost its TTL; it is at least `ttl`, and is sent only if it is longer. No command shortens a TTL.
struct key_ttl {
  milliseconds ttl, if_none = ttl;
};

/// The place of a client in the queue of a shared mutex, for an acquire that finds it busy.
enum class standing : std::uint8_t {
  none,   // it does not wait
  last,   // it waits behind the others
  front,  // it was asked to write, and waits before the others
};

/// The end of a field of a shared mutex. `leave` and `again` exclude each other.
struct departure {
  bool leave = false;        // no caller of this client waits to read, or to write, any more
  bool again = false;        // of a write hold: another caller of this client waits to write
  milliseconds reserve{20};  // how long the lock is kept for the clients that are asked
};

/// One hold to confirm: the names of its lock, its owner field and the TTL wanted. Or the hold of a fair mutex that
/// follows a release.
struct renewal {
  const lock_keys* at;
  owner_field field;
  key_ttl wanted;
};

/// One command about a lock: a script, or a command of Redis. Its bytes are made when they are written. Until then it
/// refers to its operands, which must live that long.
class call {
 public:
  struct operands {
    const lock_keys* at = nullptr;
    const owner_field* field = nullptr;  // of several: the first one
    key_ttl ttl{};
    unsigned count = 0;                 // of leases, of the fields of one semaphore, or of all its permits
    bool stands = false;                // of a semaphore: a door keeps others out until the first field has its permits
    standing place = standing::none;    // of a shared mutex
    bool leave = false, again = false;  // see departure; its `reserve` is `ttl`
    std::span<const renewal> holds{};
    const std::vector<shared_keys>* several = nullptr;  // of one kind
    const std::string* vote = nullptr;                  // the marker that a primary needs for its vote
    const std::string* key = nullptr;                   // of a command about no lock; null: the marker
    const std::string* word = nullptr;                  // of a fair mutex: the suspect; or of a command about no lock
    milliseconds token_ttl{};                           // of the counters of fencing tokens; 0: unchanged

    std::span<const owner_field> each_field() const noexcept { return {field, several->size()}; }
  };
  class writer;
  enum class effect {
    other,
    takes,   // a lock: only primaries with a vote are asked, and the TTL counts from before the first one
    asks,    // a question: all answers together are better than those of a majority
    writes,  // before any answer but an error, so only a primary can answer
  };
  /// Makes the bytes of a call. `evalsha` is "EVALSHA" and the digest of `body` in RESP. If it is empty, `body` is a
  /// command of Redis.
  struct recipe {
    constexpr recipe(std::string_view evalsha_, std::string_view body_, void (*write_)(writer&, const operands&),
                     vote (*count_)(const redis::reply&) = nullptr, effect does_ = effect::other,
                     bool (*settled_)(const redis::votes&) noexcept = nullptr)
        : name{evalsha_.empty() ? body_ : lua::name_of(evalsha_), !evalsha_.empty()}, evalsha(evalsha_), body(body_),
          write(write_), count(count_), does(does_), settled(settled_) {}

    redis::command_name name;
    std::string_view evalsha, body;
    void (*write)(writer&, const operands&);
    /// Reads the vote in a reply, for several primaries. Null: only one server ever answers this command.
    vote (*count)(const redis::reply&);
    effect does;
    /// Of a question whose yes has a value: whether the missing answers cannot change it. Null: a majority of equal
    /// votes settles the question.
    bool (*settled)(const redis::votes&) noexcept;
  };

  call() = default;
  call(const recipe& form, const operands& operands) noexcept : recipe_(&form), operands_(operands) {}

  /// Appends the call in RESP: a script by digest, or by text for a server that does not know it.
  void append_to(std::string& out, bool by_text) const;
  /// The first key, which decides about the server.
  std::string_view key() const noexcept;

  // For several primaries.
  auto count() const noexcept { return recipe_->count; }
  /// The owner field. Empty: the call has none.
  owner_field field() const noexcept { return operands_.field ? *operands_.field : owner_field(); }
  /// The same call with an equal owner field that lives longer.
  call of_field(const owner_field& field) const noexcept;
  /// The same call with this config::token_ttl. It has no effect on a kind without tokens.
  call&& with_token_ttl(milliseconds ttl) && noexcept;
  /// The name of the script or command, which lives as long as the program. Null: an empty call.
  const redis::command_name* name() const noexcept { return recipe_ ? &recipe_->name : nullptr; }
  /// Identifies the script or command without its operands.
  const void* step() const noexcept { return recipe_; }
  bool acquires() const noexcept { return recipe_->does == effect::takes; }
  bool asks_all() const noexcept { return recipe_->does == effect::asks; }
  /// False: a majority has voted, and the missing answers can still change the result.
  bool settled_by(const redis::votes& votes) const noexcept { return !recipe_->settled || recipe_->settled(votes); }
  /// True: only a primary can give this answer. A replica can say that a lock is taken, and can answer a command that
  /// only reads.
  bool shows_primary(const redis::reply& reply) const noexcept;
  /// The copy of an acquire for a primary that is asked `later` than the first. The primary votes if its marker is
  /// `vote`. Null: it votes with any marker.
  call copy_for(milliseconds later, const std::string* vote) const noexcept;

 private:
  const recipe* recipe_ = nullptr;
  operands operands_;
};

/// Writes the operands of one call: the numbers of keys and arguments first, then the keys and arguments.
class call::writer {
 public:
  writer(std::string& out, const recipe& form, bool by_text) : bytes_(out), recipe_(form), by_text_(by_text) {}

  void begin(std::size_t keys, std::size_t arguments);
  void add(std::string_view word) { bytes_.add(word); }
  void add(std::span<const std::string_view> parts) { bytes_.add(parts); }
  void add(const owner_field& field) { bytes_.add(std::string_view(field.to_text())); }
  void add(std::int64_t number) { bytes_.add(number); }
  void add(milliseconds ttl) { bytes_.add(ttl.count()); }
  void end() { bytes_.flush(); }

 private:
  redis::command_writer bytes_;
  const recipe& recipe_;
  const bool by_text_;
};

}  // namespace holdfast::detail
