// SPDX-License-Identifier: BSL-1.0
#include "metrics/label.hpp"

#include <array>

namespace holdfast::detail {
namespace {

unsigned char byte_at(std::string_view bytes, std::size_t index) { return static_cast<unsigned char>(bytes[index]); }

/// Of the character that begins there; 0: it is none that may be printed. Overlong forms, surrogates and what is beyond
/// U+10FFFF are none (Unicode's table 3-7); nor are the control characters of C0 and C1.
std::size_t size_of_character(std::string_view bytes) {
  struct form {
    unsigned char first, last;             // the leading byte
    unsigned char second_min, second_max;  // all later ones: 80 to BF
    std::size_t size;
  };
  static constexpr std::array forms{form{0x20, 0x7e, 0, 0, 1},       form{0xc2, 0xc2, 0xa0, 0xbf, 2},
                                    form{0xc3, 0xdf, 0x80, 0xbf, 2}, form{0xe0, 0xe0, 0xa0, 0xbf, 3},
                                    form{0xe1, 0xec, 0x80, 0xbf, 3}, form{0xed, 0xed, 0x80, 0x9f, 3},
                                    form{0xee, 0xef, 0x80, 0xbf, 3}, form{0xf0, 0xf0, 0x90, 0xbf, 4},
                                    form{0xf1, 0xf3, 0x80, 0xbf, 4}, form{0xf4, 0xf4, 0x80, 0x8f, 4}};
  const auto lead = byte_at(bytes, 0);
  for (const auto& form : forms) {
    if (lead < form.first || lead > form.last || bytes.size() < form.size) continue;
    if (form.size > 1 && (byte_at(bytes, 1) < form.second_min || byte_at(bytes, 1) > form.second_max)) continue;
    bool whole = true;
    for (std::size_t n = 2; n < form.size; ++n) whole = whole && byte_at(bytes, n) >= 0x80 && byte_at(bytes, n) <= 0xbf;
    if (whole) return form.size;
  }
  return 0;
}

}  // namespace

std::string label_of(std::string_view bytes) {
  static constexpr std::string_view digits = "0123456789abcdef", more = "\xe2\x80\xa6";
  std::string label;
  while (!bytes.empty()) {
    const auto size = size_of_character(bytes);
    const auto byte = byte_at(bytes, 0);
    const std::array as_hex{'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    const auto next = size > 0 ? bytes.substr(0, size) : std::string_view(as_hex.data(), as_hex.size());
    if (label.size() + next.size() > longest_label - more.size()) return label.append(more);
    label.append(next);
    bytes.remove_prefix(size > 0 ? size : 1);
  }
  return label;
}

void append_escaped(std::string& to, std::string_view label) {
  for (const char byte : label) {
    if (byte == '\\' || byte == '"') to += '\\';
    to += byte;
  }
}

}  // namespace holdfast::detail
