// SPDX-License-Identifier: BSL-1.0
#include "protocol/call.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace holdfast::detail {

void call::append_to(std::string& out, bool by_text) const {
  writer to(out, *recipe_, by_text);
  recipe_->write(to, operands_);
  to.end();
}

std::string_view call::key() const noexcept {
  // All keys of a call belong to one server, so its first key is enough to find it.
  if (operands_.at) return operands_.at->lock;
  if (operands_.several) return operands_.several->front()->lock;
  if (!operands_.holds.empty()) return operands_.holds.front().at->lock;
  return operands_.key ? std::string_view(*operands_.key) : vote_marker;
}

call call::of_field(const owner_field& field) const noexcept {
  auto copy = *this;
  if (copy.operands_.field) {
    HOLDFAST_ASSERT(*copy.operands_.field == field);
    copy.operands_.field = &field;
  }
  return copy;
}

call&& call::with_token_ttl(milliseconds ttl) && noexcept {
  // A counter must outlive the lock that it numbers, so it gets at least twice that TTL.
  if (ttl != milliseconds{}) operands_.token_ttl = std::max(ttl, 2 * operands_.ttl.ttl);
  return std::move(*this);
}

bool call::shows_primary(const redis::reply& reply) const noexcept {
  if (reply.is_error() || !recipe_) return false;
  // An acquire that finds the lock taken has written nothing, so a replica could have answered it.
  using kind = redis::reply::kind;
  const auto& state = reply.type == kind::array && !reply.elements.empty() ? reply.elements.front() : reply;
  const bool busy = state.type == kind::integer && (&state == &reply || state.integer <= 0);
  return recipe_->does == effect::writes || (recipe_->does == effect::takes && !busy);
}

call call::copy_for(milliseconds later, const std::string* vote) const noexcept {
  auto copy = *this;
  // The scripts refuse a TTL of 0.
  auto& ttl = copy.operands_.ttl;
  ttl.ttl = ttl.if_none = std::max(ttl.ttl - later, milliseconds(1));
  copy.operands_.vote = vote;
  return copy;
}

void call::writer::begin(std::size_t keys, std::size_t arguments) {
  // A command of Redis has no number of keys.
  if (recipe_.evalsha.empty()) {
    bytes_.begin(1 + keys + arguments);
    return bytes_.add(recipe_.body);
  }
  bytes_.begin(3 + keys + arguments);
  if (by_text_) {
    bytes_.add("EVAL");
    bytes_.add(recipe_.body);
  } else {
    bytes_.add_encoded(recipe_.evalsha);
  }
  bytes_.add(static_cast<std::int64_t>(keys));
}

}  // namespace holdfast::detail
