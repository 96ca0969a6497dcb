// SPDX-License-Identifier: BSL-1.0
#include "protocol/call.hpp"

namespace holdfast::detail {

void call::append_to(std::string& out, bool by_text) const {
  writer to(out, *how_, by_text);
  how_->write(to, what_);
  to.end();
}

std::string_view call::key() const noexcept {
  if (what_.at) return what_.at->lock;
  return what_.any ? what_.any->front()->lock : what_.holds.front().lock;
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
