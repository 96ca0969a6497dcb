// SPDX-License-Identifier: BSL-1.0
#include "protocol/kind.hpp"

namespace holdfast::detail {
namespace {

std::optional<failure> why_withheld(const redis::outcome& outcome) {
  // A script that has freed a lock does not fail when PUBLISH is refused. It returns the refusal's text instead of a
  // number. A script that returns permits has this number behind theirs.
  using kind = redis::reply::kind;
  const auto& reply = outcome.reply;
  const auto& told = reply.type == kind::array && !reply.elements.empty() ? reply.elements.back() : reply;
  if (outcome.error || told.type != kind::string) return std::nullopt;
  auto why = classify(told.text);
  why.detail.insert(0, "a release is not published: ");
  return why;
}

}  // namespace

std::optional<failure> refusal_in(const redis::outcome& outcome) {
  if (outcome.error) return redis::failure_of(outcome);
  return outcome.reply.is_error() ? std::optional(classify(outcome.reply.text)) : std::nullopt;
}

std::optional<failure> withheld_message(const redis::outcome& outcome) {
  if (!outcome.of_each) return why_withheld(outcome);
  // The first refusal is enough: one event tells the administrator about the permission.
  std::optional<failure> why;
  for (const auto& one : outcome.of_each->outcomes)
    if (one && !why) why = why_withheld(*one);
  return why;
}

}  // namespace holdfast::detail
