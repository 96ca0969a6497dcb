// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "protocol/call.hpp"
#include "redis/failure.hpp"
#include "redis/outcome.hpp"

namespace holdfast::detail {

/// A set of primaries, one bit for each number.
using primary_set = std::uint32_t;
inline constexpr primary_set nowhere = 0, everywhere = ~primary_set{0};
constexpr primary_set only(std::size_t index) noexcept { return primary_set{1} << index; }

/// Pure: counts the votes of several independent primaries. A majority of the configured primaries decides, whether
/// they answer or not.
class vote_count {
 public:
  vote_count(const redis::votes& of, vote (*count)(const redis::reply&)) noexcept;

  static constexpr std::size_t majority(std::size_t all) noexcept { return all / 2 + 1; }

  std::size_t needed() const noexcept { return needed_; }
  bool carried() const noexcept { return yes_ >= needed_; }
  bool rejected() const noexcept { return no_ >= needed_; }
  /// At least one primary has voted no.
  bool disputed() const noexcept { return no_ > 0; }
  /// A majority has voted, yes and no together.
  bool answered() const noexcept { return yes_ + no_ >= needed_; }
  /// The missing answers cannot change the result.
  bool decided() const noexcept { return carried() || rejected() || (yes_ + open_ < needed_ && no_ + open_ < needed_); }

  /// The number of primaries without a vote, yes or no.
  std::size_t silent() const noexcept { return of_.outcomes.size() - yes_ - no_; }

  /// No answer is missing.
  bool complete() const noexcept { return open_ == 0; }

  primary_set in_favour() const noexcept { return yes_of_; }
  /// The primaries where the command has run, or still may.
  primary_set may_have_run_at() const noexcept { return ran_ | open_of_; }
  /// Why there is neither a yes nor a no. The text names the cause of each primary without a yes.
  redis::failure why() const;

 private:
  const redis::votes& of_;
  std::size_t yes_ = 0, no_ = 0, open_ = 0;
  const std::size_t needed_;
  primary_set yes_of_ = 0, no_of_ = 0, open_of_ = 0, ran_ = 0;
};

}  // namespace holdfast::detail
