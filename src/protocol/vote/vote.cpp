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

answer<std::string> read_text(const redis::reply& r) {
  if (r.type == redis::reply::kind::string) return {std::nullopt, r.text};
  return {r.is_error() ? classify(r.text) : failure{errc::protocol_error, "an answer of an unexpected form", true}, {}};
}

answer<std::string> read_optional_text(const redis::reply& r) {
  return r.type == redis::reply::kind::nil ? answer<std::string>() : read_text(r);
}

/// The next word, which is taken off.
std::string_view word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const auto its = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return its;
}

}  // namespace

std::string vote_text(std::string_view run, milliseconds longest) {
  return std::string(run.empty() ? unknown_run : run) + ' ' + std::to_string(longest.count());
}

bool says_no_vote(const redis::reply& r) noexcept {
  return r.is_error() && r.text.find("HOLDFAST no vote") != std::string::npos;
}

std::optional<marker_text> marker_text::parse(std::string_view text) noexcept {
  marker_text m{word(text), word(text), word(text)};
  const bool number = !m.longest.empty() && m.longest.find_first_not_of("0123456789") == m.longest.npos;
  return m.run.empty() || !number || !text.empty() ? std::nullopt : std::optional(m);
}

call look_at_marker() {
  static constexpr recipe how{{}, "GET", [](writer& to, const made_of&) {
                                to.begin(1, 0);
                                to.add(vote_marker);
                              }};
  return {how, {}};
}

answer<std::string> read_look_at_marker(const redis::outcome& o) { return read_outcome<read_optional_text>(o); }

call change_marker(const std::string& was, const std::string& becomes) {
  static constexpr recipe how{lua::change_marker.evalsha, lua::change_marker.body, [](writer& to, const made_of& o) {
                                to.begin(1, 2);
                                to.add(vote_marker);
                                to.add(*o.word);
                                to.add(*o.vote);
                              }};
  return {how, {.vote = &becomes, .word = &was}};
}

answer<bool> read_change_marker(const redis::outcome& o) { return read_outcome<read_flag>(o); }

call make_marker(const std::string& vote) {
  static constexpr recipe how{{}, "SET", [](writer& to, const made_of& o) {
                                to.begin(1, 2);
                                to.add(vote_marker);
                                to.add(*o.vote);
                                to.add("NX");
                              }};
  return {how, {.vote = &vote}};
}

answer<bool> read_make_marker(const redis::outcome& o) {
  const auto said = read_outcome<read_set>(o);
  return {said.failed, said.value.what == acquire_answer::kind::acquired};
}

call tell_apart(const std::string& key, const std::string& number) {
  static constexpr recipe how{lua::tell_apart.evalsha, lua::tell_apart.body, [](writer& to, const made_of& o) {
                                to.begin(1, 2);
                                to.add(*o.key);
                                to.add(*o.word);
                                to.add("60000");
                              }};
  return {how, {.key = &key, .word = &number}};
}

answer<std::string> read_tell_apart(const redis::outcome& o) { return read_outcome<read_text>(o); }

}  // namespace holdfast::detail
