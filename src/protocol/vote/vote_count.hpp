// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "protocol/call.hpp"
#include "redis/failure.hpp"
#include "redis/outcome.hpp"

namespace holdfast::detail {

/// Some of several primaries, by their numbers.
using primary_set = std::uint32_t;
inline constexpr primary_set nowhere = 0, everywhere = ~primary_set{0};
constexpr primary_set only(std::size_t index) noexcept { return primary_set{1} << index; }

/// Pure: what the answers of several independent primaries say together. A majority of those that are configured
/// decides, whether they answer or not.
class vote_count {
 public:
  vote_count(const redis::votes& of, vote (*count)(const redis::reply&)) noexcept;

  static constexpr std::size_t majority(std::size_t all) noexcept { return all / 2 + 1; }

  std::size_t needed() const noexcept { return needed_; }
  bool carried() const noexcept { return yes_ >= needed_; }
  bool rejected() const noexcept { return no_ >= needed_; }
  /// Somebody has said no.
  bool disputed() const noexcept { return no_ > 0; }
  /// A majority has answered, whatever.
  bool answered() const noexcept { return yes_ + no_ >= needed_; }
  /// What may still come changes nothing.
  bool decided() const noexcept { return carried() || rejected() || (yes_ + open_ < needed_ && no_ + open_ < needed_); }

  /// So many have said neither yes nor no.
  std::size_t silent() const noexcept { return of_.outcomes.size() - yes_ - no_; }

  /// Nothing is still to come.
  bool complete() const noexcept { return open_ == 0; }

  primary_set who_said_yes() const noexcept { return yes_of_; }
  /// Those where the command may have done its work, or may still.
  primary_set where_it_may_have_run() const noexcept { return ran_ | open_of_; }
  /// Why it is neither yes nor no; says of each primary that has not said yes why.
  redis::failure why() const;

 private:
  const redis::votes& of_;
  std::size_t yes_ = 0, no_ = 0, open_ = 0;
  const std::size_t needed_;
  primary_set yes_of_ = 0, no_of_ = 0, open_of_ = 0, ran_ = 0;
};

}  // namespace holdfast::detail
