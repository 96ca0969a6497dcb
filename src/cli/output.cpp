// SPDX-License-Identifier: BSL-1.0
#include "cli/output.hpp"

#include <boost/json/serialize.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "base/escape.hpp"

namespace holdfast::cli {
namespace {

/// The number of bytes of the UTF-8 character that the text begins with; 0: it begins with none.
std::size_t character_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  if (byte(0) < 0x80) return 1;
  if (byte(0) >= 0xC2 && byte(0) < 0xE0) return follows(1) ? 2 : 0;
  if (byte(0) >= 0xE0 && byte(0) < 0xF0) {
    if (!follows(1) || !follows(2) || (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xED && byte(1) >= 0xA0))
      return 0;
    return 3;
  }
  if (byte(0) >= 0xF0 && byte(0) < 0xF5) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if ((byte(0) == 0xF0 && byte(1) < 0x90) || (byte(0) == 0xF4 && byte(1) >= 0x90)) return 0;
    return 4;
  }
  return 0;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto size = character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace

std::string shown(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text.append(byte == '\\' ? 2 : 1, byte);
  return detail::escaped(text, std::string_view::npos);
}

void put_bytes(json::object& into, std::string_view key, std::string_view bytes) {
  if (is_utf8(bytes)) {
    into[key] = bytes;
    return;
  }
  into[key] = shown(bytes);
  into[std::string(key) + "_hex"] = hex(bytes);
}

std::string duration_text(long long milliseconds) {
  if (milliseconds < 0) return "none";
  if (milliseconds < 60'000) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(milliseconds) / 1000);
    return text;
  }
  const auto seconds = milliseconds / 1000;
  if (seconds < 3600) return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds / 60 % 60) + " min";
}

std::string painted(colour colour, std::string_view text) {
  static const bool wanted = [] {
    const char* refused = std::getenv("NO_COLOR");
    return (refused == nullptr || *refused == '\0') && ::isatty(STDOUT_FILENO) == 1;
  }();
  static constexpr const char* codes[] = {"", "\033[32m", "\033[33m", "\033[31m", "\033[2m"};
  if (!wanted || colour == colour::none) return std::string(text);
  return std::string(codes[static_cast<int>(colour)]).append(text).append("\033[0m");
}

void print(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

void print(const json::object& line) { print(json::serialize(line)); }

void complain(const std::string& line) { std::fputs(("holdfast: " + line + '\n').c_str(), stderr); }

bool output_is_complete() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace holdfast::cli
