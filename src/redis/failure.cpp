// SPDX-License-Identifier: BSL-1.0
#include "redis/failure.hpp"

#include <cstddef>

#include "base/escape.hpp"

namespace holdfast::redis {
namespace {

constexpr std::size_t longest_quote = 256;

}  // namespace

failure fail(const endpoint& node, error_code code, std::string_view cause) {
  return {code, node.to_string().append(": ").append(cause)};
}

std::string quoted(const endpoint& node, std::string_view words) {
  std::string text(words);
  if (!node.login.password.empty())
    for (auto at = text.find(node.login.password); at != std::string::npos; at = text.find(node.login.password, at + 3))
      text.replace(at, node.login.password.size(), "***");
  return detail::escaped(text, longest_quote);
}

}  // namespace holdfast::redis
