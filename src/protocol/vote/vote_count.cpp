// SPDX-License-Identifier: BSL-1.0
#include "protocol/vote/vote_count.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/escape.hpp"
#include "protocol/replies.hpp"

namespace holdfast::detail {
namespace {

constexpr std::size_t longest_cause = 160;

redis::failure failure_in(const redis::outcome& outcome) {
  return outcome.error ? redis::failure_of(outcome) : classify(outcome.reply.text);
}

}  // namespace

vote_count::vote_count(const redis::votes& of, vote (*count)(const redis::reply&)) noexcept
    : of_(of), needed_(majority(of.outcomes.size())) {
  for (std::size_t n = 0; n < of.outcomes.size(); ++n) {
    const auto& outcome = of.outcomes[n];
    if (!outcome) {
      ++open_;
      open_of_ |= only(n);
    } else if (outcome->error) {
      // An unconfirmed copy was written, so it may have run. Every other error means that it did not.
      if (outcome->error == errc::unconfirmed) ran_ |= only(n);
    } else {
      const auto cast = count(outcome->reply);
      if (cast == vote::yes) {
        ++yes_;
        yes_of_ |= only(n);
        ran_ |= only(n);
      } else if (cast == vote::no) {
        ++no_;
        no_of_ |= only(n);
      }
    }
  }
}

// If the causes of a majority need an administrator, the code of the cause is used instead of quorum_failed.
redis::failure vote_count::why() const {
  error_code code = errc::quorum_failed;
  std::string text = std::to_string(yes_) + " of " + std::to_string(of_.outcomes.size()) + " primaries, and " +
                     std::to_string(needed_) + " are needed";
  std::size_t lasting = 0;
  for (std::size_t n = 0; n < of_.outcomes.size(); ++n) {
    if ((yes_of_ & only(n)) != 0) continue;
    const auto& outcome = of_.outcomes[n];
    std::string cause = "no answer yet";
    if ((no_of_ & only(n)) != 0) {
      cause = "no";
    } else if (outcome) {
      const auto failure = failure_in(*outcome);
      cause = outcome->error ? failure.detail : escaped(outcome->reply.text, longest_cause);
      if (!failure.mends_itself() && failure.code != errc::protocol_error && failure.code != errc::overloaded &&
          ++lasting >= needed_)
        code = failure.code;
    }
    const auto& where = n < of_.where.size() ? of_.where[n] : std::to_string(n);
    text += "; ";
    if (!cause.starts_with(where)) text += where + ": ";
    text += cause;
  }
  return {code, std::move(text), may_have_run_at() != 0};
}

}  // namespace holdfast::detail
