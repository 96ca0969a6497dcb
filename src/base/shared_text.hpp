// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <string>
#include <string_view>

namespace holdfast::detail {

/// A text that never changes and that several objects refer to, on any thread. A reference takes one word: there may be
/// a hundred thousand waiters, and most have no text.
class shared_text final : public boost::intrusive_ref_counter<shared_text> {
 public:
  /// Null: the text is empty.
  static boost::intrusive_ptr<const shared_text> copy_of(std::string_view text) {
    return text.empty() ? nullptr : boost::intrusive_ptr<const shared_text>(new shared_text(text));
  }

  const std::string bytes;

 private:
  explicit shared_text(std::string_view text) : bytes(text) {}
};
using shared_text_ptr = boost::intrusive_ptr<const shared_text>;

/// An empty view if there is no text.
inline std::string_view text_of(const shared_text_ptr& shared) noexcept {
  return shared ? std::string_view(shared->bytes) : std::string_view();
}

}  // namespace holdfast::detail
