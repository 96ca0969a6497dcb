// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/slots.hpp"

#include <array>

#include "topology/topology.hpp"

namespace holdfast::detail {
namespace {

constexpr std::array<std::uint16_t, 256> crc_of_byte = [] {
  constexpr unsigned polynomial = 0x1021;
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? crc << 1 ^ polynomial : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

constexpr std::string_view hashed_part(std::string_view key) noexcept {
  const auto open = key.find('{');
  if (open == key.npos) return key;
  const auto close = key.find('}', open + 1);
  return close == key.npos || close == open + 1 ? key : key.substr(open + 1, close - open - 1);
}

constexpr std::uint16_t crc16(std::string_view bytes) noexcept {
  std::uint16_t crc = 0;
  for (const char byte : bytes)
    crc = static_cast<std::uint16_t>(crc << 8 ^ crc_of_byte[crc >> 8 ^ static_cast<unsigned char>(byte)]);
  return crc;
}
static_assert(crc16("123456789") == 0x31C3);

}  // namespace

slot_number slot_of(std::string_view key) noexcept { return crc16(hashed_part(key)) % slot_count; }

// Here, so that the rooms above know groups of keys and no slots.
key_group topology::smallest_group_of(std::string_view key) noexcept { return slot_of(key); }

}  // namespace holdfast::detail
