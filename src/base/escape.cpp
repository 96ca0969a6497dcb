// SPDX-License-Identifier: BSL-1.0
#include "base/escape.hpp"

#include <cstddef>

namespace holdfast::detail {

std::string escaped(std::string_view bytes, std::size_t limit) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char c : bytes.substr(0, limit)) {
    if (c >= 0x20 && c < 0x7f)
      out += static_cast<char>(c);
    else
      (out += "\\x").append({digits[c >> 4], digits[c & 0xf]});
  }
  if (bytes.size() > limit) out += "…";
  return out;
}

}  // namespace holdfast::detail
