// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <compare>
#include <cstdint>

namespace holdfast {

/// Identity of an owner: 8 bytes, unique in this process, never on the wire. Events name owners by it. Every `owner` is
/// an owner_id, and an `owner` can be made from one.
class owner_id {
 public:
  friend auto operator<=>(const owner_id&, const owner_id&) = default;

 private:
  friend class owner;
  explicit owner_id(std::uint64_t value) noexcept : value_(value) {}

  std::uint64_t value_;
};

}  // namespace holdfast
