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

namespace holdfast::detail {

using std::chrono::milliseconds;

/// How one of several independent primaries has answered a command. none: nothing that is a yes or a no.
enum class vote : std::uint8_t { yes, no, none };

/// What a command gives the key of a hold: `ttl` if it has less, `if_none` if somebody has taken its TTL away, where
/// any would do. Neither ever shortens one. `if_none` is `ttl` at least, and is sent where it is more.
struct key_ttl {
  milliseconds ttl, if_none = ttl;
};

/// One hold to confirm: the lock's key, its owner field and the TTL wanted.
struct renewal {
  std::string_view lock;
  owner_field field;
  key_ttl wanted;
};

/// One command about a lock, a script or one of Redis' own. Its bytes are made when they are written: until then it
/// refers to what it was made of.
class call {
 public:
  struct operands {
    const lock_keys* at = nullptr;
    const owner_field* field = nullptr;
    key_ttl ttl{};
    unsigned count = 0;  // of leases
    std::span<const renewal> holds{};
    const std::vector<shared_keys>* several = nullptr;  // of one kind
    const owner_field* fields = nullptr;                // of these, one each
    const std::string* vote = nullptr;                  // what the marker of a primary must be, for it to vote
    const std::string* key = nullptr;                   // of one that is about no lock; null: the marker
    const std::string* word = nullptr;                  // of one that is about no lock
    milliseconds token_ttl{};                           // of the counters of fencing tokens; 0: they keep theirs

    std::span<const owner_field> each_field() const noexcept { return {fields, several->size()}; }
  };
  class writer;
  enum class effect {
    other,
    takes,   // a lock: only who has a vote is asked, and the TTL counts from when the first primary was
    asks,    // a question, which more answers than a majority's answer better
    writes,  // before it answers anything but an error: a replica cannot answer so
  };
  /// How its bytes are made. `evalsha`: of a script, "EVALSHA" and the digest of `body` in RESP; empty: `body` is a
  /// command of Redis.
  struct recipe {
    constexpr recipe(std::string_view evalsha_, std::string_view body_, void (*write_)(writer&, const operands&),
                     vote (*count_)(const redis::reply&) = nullptr, effect does_ = effect::other)
        : name{evalsha_.empty() ? body_ : lua::name_of(evalsha_), !evalsha_.empty()}, evalsha(evalsha_), body(body_),
          write(write_), count(count_), does(does_) {}

    redis::command_name name;
    std::string_view evalsha, body;
    void (*write)(writer&, const operands&);
    /// What an answer says where several primaries vote; null: of a command that one server answers.
    vote (*count)(const redis::reply&);
    effect does;
  };

  call() = default;
  call(const recipe& recipe, const operands& operands) noexcept : recipe_(&recipe), operands_(operands) {}

  /// In RESP: a script by digest, or by text for a server that does not know it.
  void append_to(std::string& out, bool by_text) const;
  /// The first key: decides which server.
  std::string_view key() const noexcept;

  // Of one that several primaries vote on.
  auto count() const noexcept { return recipe_->count; }
  /// Empty where it has none.
  owner_field field() const noexcept { return operands_.field ? *operands_.field : owner_field(); }
  /// The same with another owner field, which lives longer.
  call of_field(const owner_field& field) const noexcept;
  /// The same of a client with this config::token_ttl. Without effect on a kind that has no tokens.
  call&& with_token_ttl(milliseconds ttl) && noexcept;
  /// Of the script, or of the command; null: there is none. Lives as long as the program.
  const redis::command_name* name() const noexcept { return recipe_ ? &recipe_->name : nullptr; }
  /// The script or command, without its operands.
  const void* step() const noexcept { return recipe_; }
  bool acquires() const noexcept { return recipe_->does == effect::takes; }
  bool asks_all() const noexcept { return recipe_->does == effect::asks; }
  /// This answer to it shows a primary. A replica can say that a lock is taken, and answer what only reads.
  bool shows_primary(const redis::reply& reply) const noexcept;
  /// The copy of one that acquires for a primary that is asked so much later than the first, and has a vote if its
  /// marker is `vote`; null: whatever that is.
  call copy_for(milliseconds later, const std::string* vote) const noexcept;

 private:
  const recipe* recipe_ = nullptr;
  operands operands_;
};

/// Writes the operands of one call: how many keys and arguments there are, then these.
class call::writer {
 public:
  writer(std::string& out, const recipe& recipe, bool by_text) : bytes_(out), recipe_(recipe), by_text_(by_text) {}

  void begin(std::size_t keys, std::size_t arguments);
  void add(std::string_view word) { bytes_.add(word); }
  void add(const key_parts& word) { bytes_.add(word); }
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
