// SPDX-License-Identifier: BSL-1.0
#include "protocol/owner_field.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::detail {

uuid::uuid(std::uint64_t high, std::uint64_t low) noexcept
    : high_((high & ~0xF000ULL) | 0x8000ULL),                 // version 8
      low_((low & 0x3FFF'FFFF'FFFF'FFFFULL) | 1ULL << 63) {}  // RFC 9562 variant

char* uuid::write_to(char* to) const noexcept {
  static constexpr auto pairs = [] {
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<std::array<char, 2>, 256> all{};
    for (std::size_t byte = 0; byte < all.size(); ++byte) all[byte] = {digits[byte >> 4], digits[byte & 15]};
    return all;
  }();
  const auto put = [&to](std::uint64_t half, int first, int last) {
    for (int byte = first; byte <= last; ++byte) {
      const auto& pair = pairs[half >> (56 - byte * 8) & 0xFF];
      to = std::copy(pair.begin(), pair.end(), to);
    }
  };
  put(high_, 0, 3);
  *to++ = '-';
  put(high_, 4, 5);
  *to++ = '-';
  put(high_, 6, 7);
  *to++ = '-';
  put(low_, 0, 1);
  *to++ = '-';
  put(low_, 2, 7);
  return to;
}

owner_field::text owner_field::to_text() const noexcept {
  text out;
  if (empty()) return out;
  auto* to = client_.write_to(out.bytes_.data());
  *to++ = ':';
  to = std::to_chars(to, out.bytes_.data() + out.bytes_.size(), number_).ptr;
  out.size_ = static_cast<std::size_t>(to - out.bytes_.data());
  return out;
}

owner_field::text owner_field::hold_id(std::uint32_t passes) const noexcept {
  auto out = to_text();
  if (passes == 0) return out;
  auto* to = out.bytes_.data() + out.size_;
  *to++ = '/';
  to = std::to_chars(to, out.bytes_.data() + out.bytes_.size(), passes).ptr;
  out.size_ = static_cast<std::size_t>(to - out.bytes_.data());
  return out;
}

owner_fields::owner_fields(const uuid& client) : client_(client), text_(uuid::text_size, '\0') {
  client.write_to(text_.data());
}

}  // namespace holdfast::detail
