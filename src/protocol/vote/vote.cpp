// SPDX-License-Identifier: BSL-1.0
#include "protocol/vote/vote.hpp"

#include <algorithm>

#include "lua_scripts.hpp"
#include "protocol/kind.hpp"

namespace holdfast::detail {
namespace {

using recipe = call::recipe;
using writer = call::writer;
using made_of = call::operands;

constexpr std::string_view unknown_run = "-";

answer<std::string> read_text(const redis::reply& reply) {
  if (reply.type == redis::reply::kind::string) return {std::nullopt, reply.text};
  return {
      reply.is_error() ? classify(reply.text) : failure{errc::protocol_error, "an answer of an unexpected form", true},
      {}};
}

answer<std::string> read_optional_text(const redis::reply& reply) {
  return reply.type == redis::reply::kind::nil ? answer<std::string>() : read_text(reply);
}

/// Takes the next word off the text.
std::string_view word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const auto first = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return first;
}

}  // namespace

std::string vote_text(std::string_view run, milliseconds longest) {
  return std::string(run.empty() ? unknown_run : run) + ' ' + std::to_string(longest.count());
}

bool says_no_vote(const redis::reply& reply) noexcept {
  return reply.is_error() && reply.text.find("HOLDFAST no vote") != std::string::npos;
}

std::optional<marker_text> marker_text::parse(std::string_view text) noexcept {
  marker_text marker{word(text), word(text), word(text)};
  const bool number = !marker.longest.empty() && marker.longest.find_first_not_of("0123456789") == marker.longest.npos;
  return marker.run.empty() || !number || !text.empty() ? std::nullopt : std::optional(marker);
}

call look_at_marker() {
  static constexpr recipe form{{}, "GET", [](writer& to, const made_of&) {
                                 to.begin(1, 0);
                                 to.add(vote_marker);
                               }};
  return {form, {}};
}

answer<std::string> read_look_at_marker(const redis::outcome& outcome) {
  return read_outcome<read_optional_text>(outcome);
}

call change_marker(const std::string& was, const std::string& becomes) {
  static constexpr recipe form{lua::change_marker.evalsha, lua::change_marker.body,
                               [](writer& to, const made_of& operands) {
                                 to.begin(1, 2);
                                 to.add(vote_marker);
                                 to.add(*operands.word);
                                 to.add(*operands.vote);
                               }};
  return {form, {.vote = &becomes, .word = &was}};
}

answer<bool> read_change_marker(const redis::outcome& outcome) { return read_outcome<read_flag>(outcome); }

call make_marker(const std::string& vote) {
  static constexpr recipe form{{}, "SET", [](writer& to, const made_of& operands) {
                                 to.begin(1, 2);
                                 to.add(vote_marker);
                                 to.add(*operands.vote);
                                 to.add("NX");
                               }};
  return {form, {.vote = &vote}};
}

answer<bool> read_make_marker(const redis::outcome& outcome) {
  const auto answer = read_outcome<read_set>(outcome);
  return {answer.failed, answer.value.type == acquire_answer::kind::acquired};
}

call tell_apart(const std::string& key, const std::string& number) {
  static constexpr recipe form{lua::tell_apart.evalsha, lua::tell_apart.body, [](writer& to, const made_of& operands) {
                                 to.begin(1, 2);
                                 to.add(*operands.key);
                                 to.add(*operands.word);
                                 to.add("60000");
                               }};
  return {form, {.key = &key, .word = &number}};
}

answer<std::string> read_tell_apart(const redis::outcome& outcome) { return read_outcome<read_text>(outcome); }

}  // namespace holdfast::detail
