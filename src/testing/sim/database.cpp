// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/database.hpp"

#include <cctype>
#include <charconv>
#include <utility>

namespace holdfast::sim {
namespace {

using kind = reply::kind;

}  // namespace

std::string_view text_of(refusal refusal) {
  switch (refusal) {
    case refusal::none: break;
    case refusal::out_of_memory: return "OOM command not allowed when used memory > 'maxmemory'.";
    case refusal::disk_failed:
      return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.";
    case refusal::no_replicas: return "NOREPLICAS Not enough good replicas to write.";
    case refusal::replica: return "READONLY You can't write against a read only replica.";
    case refusal::loading: return "LOADING Redis is loading the dataset in memory";
    case refusal::busy: return "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
  }
  return {};
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& byte : out) byte = static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
  return out;
}

reply error_reply(std::string text) { return {kind::error, 0, std::move(text), {}}; }
reply wrong_type() { return error_reply("WRONGTYPE Operation against a key holding the wrong kind of value"); }
reply not_an_integer() { return error_reply("ERR value is not an integer or out of range"); }
reply syntax_error() { return error_reply("ERR syntax error"); }
reply integer_reply(long long value) { return {kind::integer, value, {}, {}}; }
reply string_reply(std::string text) { return {kind::string, 0, std::move(text), {}}; }
reply status_reply(std::string text) { return {kind::status, 0, std::move(text), {}}; }

reply wrong_number_of_arguments(std::string_view name) {
  return error_reply("ERR wrong number of arguments for '" + std::string(name) + "' command");
}

bool to_integer(std::string_view text, long long& out) {
  if (text == "0") return out = 0, true;
  const auto digits = text.substr(text.starts_with('-'));
  if (digits.empty() || digits.front() < '1' || digits.front() > '9') return false;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc() && end == text.data() + text.size();
}

}  // namespace holdfast::sim
