// SPDX-License-Identifier: BSL-1.0
#include "base/escape.hpp"

#include <cstddef>

namespace holdfast::detail {
namespace {

/// `marked`: bytes that get a backslash.
void append_escaped(std::string& out, std::string_view bytes, std::size_t limit, std::string_view marked) {
  constexpr char digits[] = "0123456789abcdef";
  for (const unsigned char byte : bytes.substr(0, limit)) {
    if (byte < 0x20 || byte >= 0x7f) {
      (out += "\\x").append({digits[byte >> 4], digits[byte & 0xf]});
      continue;
    }
    if (marked.find(static_cast<char>(byte)) != marked.npos) out += '\\';
    out += static_cast<char>(byte);
  }
  if (bytes.size() > limit) out += "…";
}

}  // namespace

std::string escaped(std::string_view bytes, std::size_t limit) {
  std::string out;
  append_escaped(out, bytes, limit, {});
  return out;
}

std::string in_quotes(std::string_view bytes, std::size_t limit, char quote) {
  std::string out(1, quote);
  append_escaped(out, bytes, limit, std::string({'\\', quote}));
  return out += quote;
}

}  // namespace holdfast::detail
