// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/server/lock_facts.hpp"
#include "cli/server/session.hpp"
#include "config/settings.hpp"

namespace holdfast::cli {

/// Reads locks from all servers that have them, and changes nothing.
///
/// Decision: SCAN, and two pipelines for each of its batches: the types, then the contents of hashes and strings. A
/// batch with counters takes a third one, for the number of permits below each, and one with permits a fourth. Hashes
/// of several fields, and the readers of a shared mutex, are read in the same way. So a list of any length needs the
/// memory of one batch. One of mutexes has no command for other kinds. A lock is shown twice if SCAN names its key
/// twice.
class lock_reader {
 public:
  static asio::awaitable<std::unique_ptr<lock_reader>> open(network& over, const detail::settings& settings);

  /// Also strings that other programs may have written.
  void include_any_string() { any_string_ = true; }

  /// Calls `found` for each lock whose name matches the pattern.
  using finder = std::function<void(const lock_facts& lock)>;
  asio::awaitable<void> scan(std::string pattern, const finder& found);
  /// The key of one lock, at the server that has it; of a red_lock, the holder that most servers have.
  asio::awaitable<key_facts> read(std::string name);

  /// Asks again for the clients of all servers: those that have come since.
  asio::awaitable<void> list_processes();
  /// Sets the process of each hold. A list that is younger than the hold has its client.
  void name_processes(lock_facts& lock) const;

  /// The sum of session::take_work().
  std::chrono::microseconds take_work() noexcept;

  std::size_t servers() const noexcept { return servers_.size(); }
  session& server(std::size_t number) { return *servers_[number]; }
  /// A pattern for the channels of releases of these names, with one of the stems `channels::all`.
  std::string channel_pattern(std::string_view stem, std::string_view pattern) const;
  /// Empty: it is no channel of a lock with our prefix.
  std::optional<std::string> name_of_channel(std::string_view channel) const;

 private:
  explicit lock_reader(const detail::settings& settings) : settings_(settings) {}

  asio::awaitable<std::vector<key_facts>> read_keys(session& server, const std::vector<std::string>& keys);
  asio::awaitable<void> complete(session& server, std::vector<key_facts>& keys);
  asio::awaitable<void> complete_semaphores(session& server, std::vector<key_facts>& keys);
  asio::awaitable<void> complete_hashes(session& server, std::vector<key_facts>& keys);
  asio::awaitable<void> read_readers(session& server, std::vector<key_facts*> locks);
  asio::awaitable<void> read_permits(session& server, std::vector<key_facts*> semaphores, long long now);
  asio::awaitable<void> show_batch(std::size_t server, std::vector<std::string> keys, const finder& found);
  std::size_t take_contents(key_facts& key, const std::vector<redis::reply>& replies, std::size_t at) const;
  words subscribers_of(std::string_view stem, std::string_view key) const;
  bool of_several() const noexcept { return settings_.kind == detail::deployment::primaries; }

  const detail::settings& settings_;
  std::vector<std::unique_ptr<session>> servers_;
  process_table processes_;
  bool any_string_ = false;
};

}  // namespace holdfast::cli
