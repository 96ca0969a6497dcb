// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/lease_clock.hpp"

namespace holdfast::sim {

/// What happened, in order: a number that two runs of one seed must share, and, when asked for, text to read.
class trace {
 public:
  /// `out` null: the number alone.
  explicit trace(std::ostream* out) : out_(out) {}

  /// From now on `long_name` is written as `short_name`: client uuids, script digests.
  void abbreviate(std::string long_name, std::string short_name);
  void note(detail::time_point at, std::string_view actor, std::string_view act, std::string_view about = {});
  std::uint64_t hash() const noexcept { return hash_; }

 private:
  void mix(std::string_view text) noexcept;
  std::string shortened(std::string_view text) const;

  std::ostream* out_;
  std::uint64_t hash_ = 0xcbf29ce484222325;
  std::map<std::string, std::string> names_;
};

}  // namespace holdfast::sim
