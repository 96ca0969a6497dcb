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

// The field of a map that is sent as a flat array.
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
         std::all_of(text.begin(), text.end(), [](unsigned char byte) { return byte > 0x20 && byte < 0x7f; });
}

std::optional<redis::address> address_of(std::optional<std::string_view> host, std::optional<std::string_view> port) {
  const auto parsed = number<std::uint16_t>(port);
  if (!host || !visible(*host, longest_host) || !parsed || *parsed == 0) return std::nullopt;
  return redis::address{std::string(*host), *parsed, {}};
}

bool has_flag(std::string_view flags, std::string_view flag) {
  for (std::size_t at = 0; at <= flags.size();) {
    const auto end = std::min(flags.find(',', at), flags.size());
    if (flags.substr(at, end - at) == flag) return true;
    at = end + 1;
  }
  return false;
}

bool knows_no_such_name(const reply& reply) {
  return reply.type == reply::kind::nil || (reply.is_error() && reply.text.find("No such master") != std::string::npos);
}

redis::failure refusal(const reply& reply, std::string_view name) {
  if (reply.is_error()) return redis::classify(reply.text, errc::protocol_error);
  return {errc::protocol_error, "SENTINEL " + std::string(name) + ": no address of a primary"};
}

std::optional<redis::address> announced_address(const reply& reply) {
  if (reply.type != reply::kind::array || reply.elements.size() != 2) return std::nullopt;
  return address_of(reply.elements[0].text, reply.elements[1].text);
}

}  // namespace

sentinel_answer read_answer(std::string_view name, const reply& master, const reply& address) {
  sentinel_answer answer;
  if (knows_no_such_name(master) || knows_no_such_name(address)) {
    answer.why = {errc::invalid_config, "no primary of the name " + escaped(name, longest_quote)};
    return answer;
  }
  // Above 2^31 - 1 it is no time at all.
  const auto down_after = number<std::int32_t>(field(master, "down-after-milliseconds"));
  if (down_after && *down_after > 0) answer.down_after = std::chrono::milliseconds(*down_after);
  auto at = announced_address(address);
  // Where the second question is withheld the first one must do, but not while its two halves may disagree.
  if (!at && address.is_error() && !has_flag(field(master, "flags").value_or(""), "failover_in_progress"))
    at = address_of(field(master, "ip"), field(master, "port"));
  if (at)
    answer.word = {*std::move(at), number<std::uint64_t>(field(master, "config-epoch"))};
  else
    answer.why = refusal(address, "GET-MASTER-ADDR-BY-NAME");
  return answer;
}

std::vector<listed_sentinel> read_sentinels(const reply& reply, std::size_t most) {
  std::vector<listed_sentinel> all;
  if (reply.type != reply::kind::array) return all;
  for (const auto& each : reply.elements) {
    if (all.size() == most) break;
    auto at = address_of(field(each, "ip"), field(each, "port"));
    const auto run = field(each, "runid");
    if (at && run && visible(*run, longest_run)) all.push_back({std::string(*run), *std::move(at)});
  }
  return all;
}

std::string read_run(const reply& reply) {
  return reply.type == reply::kind::string && visible(reply.text, longest_run) ? reply.text : std::string();
}

}  // namespace holdfast::detail
