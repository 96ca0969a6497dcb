// SPDX-License-Identifier: BSL-1.0
#include "protocol/kind.hpp"

namespace holdfast::detail {
namespace {

std::optional<failure> why_withheld(const redis::outcome& o) {
  if (o.error || o.reply.type != redis::reply::kind::string) return std::nullopt;
  auto why = classify(o.reply.text);
  why.detail.insert(0, "a release is not published: ");
  return why;
}

}  // namespace

std::optional<failure> refusal_in(const redis::outcome& o) {
  if (o.error) return redis::failure_of(o);
  return o.reply.is_error() ? std::optional(classify(o.reply.text)) : std::nullopt;
}

std::optional<failure> withheld_message(const redis::outcome& o) {
  if (!o.of_each) return why_withheld(o);
  std::optional<failure> why;
  for (const auto& one : o.of_each->said)
    if (one && !why) why = why_withheld(*one);
  return why;
}

}  // namespace holdfast::detail
