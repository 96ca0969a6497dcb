// SPDX-License-Identifier: BSL-1.0
#include "cli/web/free_request.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>

#include "cli/output.hpp"

namespace holdfast::cli {
namespace {

std::optional<int> digit(char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  return std::nullopt;
}

std::optional<std::string> bytes_of_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const auto high = digit(text[i]), low = digit(text[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes += static_cast<char>(*high * 16 + *low);
  }
  return bytes;
}

std::optional<std::string> text_of(const json::value* value) {
  if (!value || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

std::optional<std::string> name_of(const json::object& body) {
  if (const auto* hex = body.if_contains("name_hex")) {
    const auto text = text_of(hex);
    return text ? bytes_of_hex(*text) : std::nullopt;
  }
  return text_of(body.if_contains("name"));
}

/// The holder as the JSON of a lock has it.
std::string shown_holder(const hold_facts& hold) {
  json::object object;
  put_bytes(object, "holder", hold.holder);
  return std::string(object["holder"].get_string());
}

}  // namespace

std::optional<free_request> read_free_request(std::string_view body) {
  boost::system::error_code failed;
  const auto value = json::parse({body.data(), body.size()}, failed);
  if (failed || !value.is_object()) return std::nullopt;
  const auto name = name_of(value.get_object());
  const auto* holders = value.get_object().if_contains("holders");
  if (!name || name->empty() || !holders || !holders->is_array()) return std::nullopt;
  free_request request{*name, {}};
  for (const auto& holder : holders->get_array()) {
    auto text = text_of(&holder);
    if (!text) return std::nullopt;
    request.holders.push_back(std::move(*text));
  }
  return request;
}

std::string_view objection_to(const free_request& request, const key_facts& key) {
  if (!key.lock) return "it is no longer held";
  const auto was_shown = [&](const hold_facts& hold) {
    return std::ranges::find(request.holders, shown_holder(hold)) != request.holders.end();
  };
  return std::ranges::all_of(key.lock->holds, was_shown) ? "" : "another holds it now";
}

}  // namespace holdfast::cli
