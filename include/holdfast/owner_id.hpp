// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <compare>
#include <cstdint>

namespace holdfast {

/// What tells one owner from another: 8 bytes, unique in this process, never on the wire. Events name owners by it;
/// every `owner` is one, and can be made of one.
class owner_id {
 public:
  friend auto operator<=>(const owner_id&, const owner_id&) = default;

 private:
  friend class owner;
  explicit owner_id(std::uint64_t value) noexcept : value_(value) {}

  std::uint64_t value_;
};

}  // namespace holdfast
