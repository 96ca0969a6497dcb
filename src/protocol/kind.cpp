// SPDX-License-Identifier: BSL-1.0
#include "protocol/kind.hpp"

namespace holdfast::detail {

std::optional<failure> refusal_in(const redis::outcome& o) {
  if (o.error) return redis::failure_of(o);
  return o.reply.is_error() ? std::optional(classify(o.reply.text)) : std::nullopt;
}

}  // namespace holdfast::detail
