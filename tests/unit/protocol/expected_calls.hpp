// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "protocol/kind.hpp"
#include "support/catch.hpp"
#include "support/fake_topology.hpp"

/// Calls of scripts as words, to compare with the expected ones.
namespace holdfast::test {

using words = std::vector<std::string>;

inline const detail::uuid some_client(0, 0);
inline const detail::owner_field u1(some_client, 1), u2(some_client, 2), u3(some_client, 3);

// With "u" for the client's UUID.
inline words decoded(const detail::call& c, bool by_text) {
  std::string bytes;
  c.append_to(bytes, by_text);
  auto all = decode_commands(bytes);
  REQUIRE(all.size() == 1);
  const auto text = some_client.text();
  for (auto& word : all[0])
    if (word.starts_with(text)) word.replace(0, text.size(), "u");
  return all[0];
}
inline words by_digest(const detail::call& c) { return decoded(c, false); }
inline words by_text(const detail::call& c) { return decoded(c, true); }

// What follows the script: count of keys, keys, arguments.
inline words operands(const detail::call& c) {
  auto argv = by_digest(c);
  return {argv.begin() + 2, argv.end()};
}

}  // namespace holdfast::test
