// SPDX-License-Identifier: BSL-1.0
#include "protocol/call.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace holdfast::detail {

void call::append_to(std::string& out, bool by_text) const {
  writer to(out, *how_, by_text);
  how_->write(to, what_);
  to.end();
}

std::string_view call::key() const noexcept {
  if (what_.at) return what_.at->lock;
  if (what_.several) return what_.several->front()->lock;
  if (!what_.holds.empty()) return what_.holds.front().lock;
  return what_.key ? std::string_view(*what_.key) : vote_marker;
}

call call::of_field(const owner_field& field) const noexcept {
  auto copy = *this;
  if (copy.what_.field) {
    HOLDFAST_ASSERT(*copy.what_.field == field);
    copy.what_.field = &field;
  }
  return copy;
}

call&& call::with_token_ttl(milliseconds ttl) && noexcept {
  if (ttl != milliseconds{}) what_.token_ttl = std::max(ttl, 2 * what_.ttl.ttl);
  return std::move(*this);
}

bool call::shows_primary(const redis::reply& r) const noexcept {
  if (r.is_error() || !how_) return false;
  const bool busy = r.type == redis::reply::kind::integer;
  return how_->does == effect::writes || (how_->does == effect::takes && !busy);
}

call call::copy_for(milliseconds later, const std::string* vote) const noexcept {
  auto copy = *this;
  auto& its = copy.what_.ttl;
  its.ttl = its.if_none = std::max(its.ttl - later, milliseconds(1));
  copy.what_.vote = vote;
  return copy;
}

void call::writer::begin(std::size_t keys, std::size_t arguments) {
  if (how_.evalsha.empty()) {
    bytes_.begin(1 + keys + arguments);
    return bytes_.add(how_.body);
  }
  bytes_.begin(3 + keys + arguments);
  if (by_text_) {
    bytes_.add("EVAL");
    bytes_.add(how_.body);
  } else {
    bytes_.add_encoded(how_.evalsha);
  }
  bytes_.add(static_cast<std::int64_t>(keys));
}

}  // namespace holdfast::detail
