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
};

/// One lock as a server has it.
struct lock_facts {
  std::string name;  // without key_prefix
  std::string_view kind;
  std::string holder;                      // the owner field, or the text of a simple lock
  long long count = 1;                     // how often it is held
  long long ttl = 0;                       // milliseconds; -1: none
  std::optional<std::uint64_t> token{};    // the newest of any holder
  std::optional<long long> waiters{};      // clients that wait; empty: the server does not tell
  std::optional<process_facts> process{};  // empty: not known
  std::optional<long long> since{};        // milliseconds of the Unix epoch; empty: the holder keeps no notes
  std::optional<std::string> note{};       // what the holder does, if it says so
  std::size_t votes = 1, primaries = 1;    // of a red_lock: primaries that have this holder
};

/// The contents of one key.
struct key_facts {
  std::string key;
  std::string type;  // as TYPE says; "none": there is no such key; empty: this server does not have it, or refuses
  std::string refusal{};
  std::optional<lock_facts> lock{};  // empty: no lock
};

/// Pure: the shape of a hash or a string that is a lock.
///
/// Decision: a list shows what holdfast and Redisson write, `<uuid>:<number>`. A string of another program may be a
/// simple lock or a cached page, and nothing tells them apart. So those are shown on demand only, and with a TTL only.
bool is_owner_field(std::string_view text) noexcept;
/// `fields`: the answer to HSCAN. Empty: the hash is no lock of one holder.
std::optional<lock_facts> lock_of_hash(const redis::reply& fields);
std::optional<lock_facts> lock_of_string(const redis::reply& text, long long ttl, bool of_any_program);

/// Adds since and note if `text`, the key beside the lock, is the note of its holder. Any program may write that key.
void add_note(lock_facts& lock, const redis::reply& text);

/// The part of CLIENT LIST that a lock needs: processes by the uuid of their client.
class process_table {
 public:
  void add(std::string_view client_list);
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
