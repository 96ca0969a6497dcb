// SPDX-License-Identifier: BSL-1.0
#include "protocol/owner_field.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::detail {

uuid::uuid(std::uint64_t high, std::uint64_t low) noexcept {
  high = (high & ~0xF000ULL) | 0x8000ULL;               // version 8
  low = (low & 0x3FFF'FFFF'FFFF'FFFFULL) | 1ULL << 63;  // RFC 9562 variant
  auto* to = text_.data();
  const auto put = [&to](std::uint64_t half, int first, int last) {
    constexpr std::string_view digits = "0123456789abcdef";
    for (int byte = first; byte <= last; ++byte) {
      const auto value = half >> (56 - byte * 8) & 0xFF;
      *to++ = digits[value >> 4];
      *to++ = digits[value & 15];
    }
  };
  put(high, 0, 3);
  *to++ = '-';
  put(high, 4, 5);
  *to++ = '-';
  put(high, 6, 7);
  *to++ = '-';
  put(low, 0, 1);
  *to++ = '-';
  put(low, 2, 7);
}

std::uint64_t uuid::high() const noexcept {
  std::uint64_t bits = 0;
  for (std::size_t place = 0, digits = 0; digits < 16; ++place) {
    const char digit = text_[place];
    if (digit == '-') continue;
    bits = bits << 4 | static_cast<std::uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    ++digits;
  }
  return bits;
}

owner_field::permit_id owner_field::permit(std::uint8_t index) const noexcept {
  permit_id id;
  const std::uint64_t halves[] = {client_->high(), number() + index};
  for (std::size_t byte = 0; byte < id.size(); ++byte)
    id[byte] = static_cast<char>(halves[byte / 8] >> (56 - byte % 8 * 8) & 0xFF);
  return id;
}

owner_field::text owner_field::to_text() const noexcept {
  text out;
  if (empty()) return out;
  auto* to = std::copy_n(client_->text().data(), uuid::text_size, out.bytes_.data());
  *to++ = ':';
  to = std::to_chars(to, out.bytes_.data() + out.bytes_.size(), number()).ptr;
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

}  // namespace holdfast::detail
