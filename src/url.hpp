// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::detail {

/// What a URL says; see config::url for the grammar.
struct url_parts {
  enum class scheme { tcp, tls, unix_socket };

  struct value {
    std::string key, text;  // text is decoded
  };
  struct span {
    std::size_t begin, length;
  };

  scheme kind = scheme::tcp;
  std::string host;  // IPv6 without brackets
  std::uint16_t port = 6379;
  std::string unix_path;
  std::vector<value> values;  // the query's, and "user", "password", "db" wherever they stood; no key twice
  std::vector<span> secrets;  // where user information stands in the text

  const std::string* find(std::string_view key) const noexcept;
};

/// Throws holdfast::error(invalid_config). Its text quotes nothing of the URL but the names of its query keys, and
/// those only where no mistake can have moved a piece of a password there.
url_parts parse_url(std::string_view url);

/// Decimal digits alone, no sign; nothing on anything else and on overflow.
std::optional<long long> parse_number(std::string_view digits) noexcept;

}  // namespace holdfast::detail
