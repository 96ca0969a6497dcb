// SPDX-License-Identifier: BSL-1.0
#include "topology/sentinel/sentinel_replies.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/escape.hpp"
#include "base/host_name.hpp"
#include "redis/error_replies.hpp"

namespace holdfast::detail {
namespace {

using redis::reply;

constexpr std::size_t longest_run = 64;
constexpr std::size_t longest_quote = 240;

// The field of a map that is told as a flat array.
std::optional<std::string_view> field(const reply& map, std::string_view name) {
  if (map.type != reply::kind::array) return std::nullopt;
  for (std::size_t n = 0; n + 1 < map.elements.size(); n += 2)
    if (map.elements[n].text == name) return map.elements[n + 1].text;
  return std::nullopt;
}

template <class Number>
std::optional<Number> number(std::optional<std::string_view> digits) {
  Number n{};
  if (!digits) return std::nullopt;
  const auto* const end = digits->data() + digits->size();
  const auto read = std::from_chars(digits->data(), end, n);
  return read.ec == std::errc() && read.ptr == end ? std::optional(n) : std::nullopt;
}

bool visible(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

std::optional<redis::address> address_of(std::optional<std::string_view> host, std::optional<std::string_view> port) {
  const auto p = number<std::uint16_t>(port);
  if (!host || !visible(*host, longest_host) || !p || *p == 0) return std::nullopt;
  return redis::address{std::string(*host), *p, {}};
}

bool has_flag(std::string_view flags, std::string_view flag) {
  for (std::size_t at = 0; at <= flags.size();) {
    const auto end = std::min(flags.find(',', at), flags.size());
    if (flags.substr(at, end - at) == flag) return true;
    at = end + 1;
  }
  return false;
}

bool knows_no_such_name(const reply& r) {
  return r.type == reply::kind::nil || (r.is_error() && r.text.find("No such master") != std::string::npos);
}

redis::failure refusal(const reply& r, std::string_view what) {
  if (r.is_error()) return redis::classify(r.text, errc::protocol_error);
  return {errc::protocol_error, "SENTINEL " + std::string(what) + ": no address of a primary"};
}

std::optional<redis::address> told_address(const reply& r) {
  if (r.type != reply::kind::array || r.elements.size() != 2) return std::nullopt;
  return address_of(r.elements[0].text, r.elements[1].text);
}

}  // namespace

sentinel_answer read_answer(std::string_view name, const reply& master, const reply& address) {
  sentinel_answer said;
  if (knows_no_such_name(master) || knows_no_such_name(address)) {
    said.why = {errc::invalid_config, "no primary of the name " + escaped(name, longest_quote)};
    return said;
  }
  // Above 2^31 - 1 it is no time at all.
  const auto down_after = number<std::int32_t>(field(master, "down-after-milliseconds"));
  if (down_after && *down_after > 0) said.down_after = std::chrono::milliseconds(*down_after);
  auto at = told_address(address);
  // Where the second question is withheld the first one must do, but not while its two halves may disagree.
  if (!at && address.is_error() && !has_flag(field(master, "flags").value_or(""), "failover_in_progress"))
    at = address_of(field(master, "ip"), field(master, "port"));
  if (at)
    said.word = {*std::move(at), number<std::uint64_t>(field(master, "config-epoch"))};
  else
    said.why = refusal(address, "GET-MASTER-ADDR-BY-NAME");
  return said;
}

std::vector<listed_sentinel> read_sentinels(const reply& r, std::size_t most) {
  std::vector<listed_sentinel> all;
  if (r.type != reply::kind::array) return all;
  for (const auto& each : r.elements) {
    if (all.size() == most) break;
    auto at = address_of(field(each, "ip"), field(each, "port"));
    const auto run = field(each, "runid");
    if (at && run && visible(*run, longest_run)) all.push_back({std::string(*run), *std::move(at)});
  }
  return all;
}

std::string read_run(const reply& r) {
  return r.type == reply::kind::string && visible(r.text, longest_run) ? r.text : std::string();
}

}  // namespace holdfast::detail
