// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/sha1.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace holdfast::sim {
namespace {

using word = std::uint32_t;
constexpr std::size_t block_size = 64, length_size = 8;

/// FIPS 180-4, 6.1.2.
void mix(std::array<word, 5>& h, const char* block) {
  std::array<word, 80> w;
  for (std::size_t t = 0; t < 16; ++t) {
    w[t] = 0;
    for (std::size_t i = 0; i < 4; ++i) w[t] = (w[t] << 8) | static_cast<unsigned char>(block[4 * t + i]);
  }
  for (std::size_t t = 16; t < w.size(); ++t) w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  auto [a, b, c, d, e] = h;
  for (std::size_t t = 0; t < w.size(); ++t) {
    const auto [f, k] = t < 20   ? std::pair((b & c) | (~b & d), word{0x5a827999})
                        : t < 40 ? std::pair(b ^ c ^ d, word{0x6ed9eba1})
                        : t < 60 ? std::pair((b & c) | (b & d) | (c & d), word{0x8f1bbcdc})
                                 : std::pair(b ^ c ^ d, word{0xca62c1d6});
    const auto next = std::rotl(a, 5) + f + e + k + w[t];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  h[0] += a;
  h[1] += b;
  h[2] += c;
  h[3] += d;
  h[4] += e;
}

}  // namespace

std::string sha1_of(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  padded.append((2 * block_size - length_size - padded.size() % block_size) % block_size, '\0');
  const auto bits = std::uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(bits >> shift);
  std::array<word, 5> h{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  for (std::size_t at = 0; at < padded.size(); at += block_size) mix(h, padded.data() + at);
  std::string hex;
  for (const auto each : h)
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[(each >> shift) & 15];
  return hex;
}

}  // namespace holdfast::sim
