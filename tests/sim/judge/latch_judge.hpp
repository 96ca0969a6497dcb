// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/keys.hpp"
#include "sim/judge/counted_latch.hpp"
#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promises of a latch:
///   - Each call that changes the count changes it once, however often its command runs. Its mark lives long enough.
///     A slot moves key by key, so a latch is not judged by that while its slot moves.
///   - A call that was confirmed has run. Each answer about the count was true since its call began.
///   - A caller is let in within a journey when the latch is open, and after a trouble within retries and reconnection.
class latch_judge {
 public:
  explicit latch_judge(evidence& known) : known_(known) {}

  void add(const detail::lock_keys& keys) { latches_.try_emplace(keys.lock); }
  /// The key of the mark that a call leaves under its field.
  static std::string mark_of(const detail::lock_keys& keys, const detail::owner_field& field);

  // Answers of the nodes.
  enum class change { set, count_down };
  /// A script of the library has changed this latch, or has refused to.
  void ran(std::size_t machine, change kind, const arguments& command, const reply& answer);
  /// A GET.
  void read(const std::string& key, const reply& answer);
  // Clients without the library, which talk to the node without delay.
  void peer_set(const std::string& name, long long count);
  void peer_counted_down(const std::string& name);

  // Answers of the library, before the record of the call is over.
  void set(std::uint64_t call, const std::string& name, const std::string& mark, bool was_open);
  void counted_down(std::uint64_t call, const std::string& mark);
  void count_read(std::uint64_t call, const std::string& name, long long count);
  void let_in(std::uint64_t call, const std::string& name) { count_read(call, name, 0); }

  // Faults.
  /// A server with other data, or another clock, has this latch or all (empty) now.
  void disturbed(const std::string& name = {});
  void promoted(const keyspace& from, const keyspace& to);
  /// After each instant.
  void note_disturbed();
  /// Every glance.
  void look();

 private:
  struct latch_record {
    counted_latch counted{};
    bool judged = false;  // the node has a count, and `counted` follows it
    bool disturbed = true;
    std::size_t machine = 0;
    time_point compared{};
    std::optional<time_point> open_since{};
    std::map<long long, time_point> read{};  // when a node last answered with this count
    std::optional<time_point> refused_set{};
  };

  /// The count at the server that has this latch; nothing: no count is there.
  std::optional<long long> stored_count(const std::string& name) const;
  bool is_disturbed(const std::string& name, const latch_record&) const;
  void begin_again(const std::string& name, latch_record&);
  time_point mark_end(std::size_t machine, const std::string& mark) const;
  void compare(const std::string& name, latch_record&);
  void note_open(const std::string& name, latch_record&);
  void accuse(std::uint64_t call, const std::string& deed);

  evidence& known_;
  std::map<std::string, latch_record, std::less<>> latches_;
  std::set<std::string, std::less<>> ran_;  // marks: a node has answered without an error
};

}  // namespace holdfast::sim
