// SPDX-License-Identifier: BSL-1.0
#include "cli/lock_text.hpp"

#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "cli/output.hpp"

namespace holdfast::cli {
namespace {

// Columns of `list`: long texts move the rest of their line. The last two have no width.
constexpr std::array<std::size_t, 8> widths{28, 12, 5, 10, 7, 16, 24, 40};

std::string row(std::initializer_list<std::string_view> cells) {
  std::string line;
  std::size_t column = 0;
  for (const auto cell : cells) {
    line += cell;
    const auto width = column < widths.size() ? widths[column] : 0;
    if (++column < cells.size()) line.append(cell.size() < width ? width - cell.size() : 0, ' ') += ' ';
  }
  return line;
}

template <class T>
std::string number_or_dash(const std::optional<T>& number) {
  return number ? std::to_string(*number) : "-";
}

std::string kind_text(const lock_facts& lock) {
  if (lock.primaries == 1) return std::string(lock.kind);
  return std::string(lock.kind) + ' ' + std::to_string(lock.votes) + '/' + std::to_string(lock.primaries);
}

}  // namespace

std::string process_text(const std::optional<process_facts>& process) {
  if (!process) return "-";
  return shown(process->pid) + " on " + shown(process->host) + " (" + shown(process->client) + ')';
}

std::string line_of_titles() {
  return row({"NAME", "KIND", "COUNT", "TTL", "WAITERS", "TOKEN", "PROCESS", "HOLDER", "NOTE"});
}

std::string line_of(const lock_facts& lock) {
  return row({shown(lock.name), kind_text(lock), std::to_string(lock.count), duration_text(lock.ttl),
              number_or_dash(lock.waiters), number_or_dash(lock.token), process_text(lock.process), shown(lock.holder),
              lock.note ? shown(*lock.note) : "-"});
}

std::string lines_of(const lock_facts& lock) {
  const std::pair<const char*, std::string> lines[] = {
      {"name     ", shown(lock.name)},
      {"kind     ", kind_text(lock)},
      {"holder   ", shown(lock.holder)},
      {"process  ", process_text(lock.process)},
      {"count    ", std::to_string(lock.count)},
      {"ttl      ", duration_text(lock.ttl)},
      {"token    ", number_or_dash(lock.token)},
      {"waiters  ", number_or_dash(lock.waiters)},
      {"note     ", lock.note ? shown(*lock.note) : "-"},
  };
  std::string text;
  for (const auto& [title, value] : lines) {
    if (!text.empty()) text += '\n';
    text += painted(colour::faint, title) + value;
  }
  return text;
}

json::object json_of(const lock_facts& lock) {
  json::object object;
  put_bytes(object, "name", lock.name);
  object["kind"] = lock.kind;
  put_bytes(object, "holder", lock.holder);
  object["process"] = nullptr;
  if (lock.process) {
    json::object process;
    put_bytes(process, "pid", lock.process->pid);
    put_bytes(process, "host", lock.process->host);
    put_bytes(process, "client", lock.process->client);
    object["process"] = std::move(process);
  }
  object["count"] = lock.count;
  put_if(object, "ttl_ms", lock.ttl < 0 ? std::nullopt : std::optional(lock.ttl));
  put_if(object, "token", lock.token);
  put_if(object, "waiters", lock.waiters);
  put_if(object, "note", lock.note);
  object["votes"] = lock.votes;
  object["primaries"] = lock.primaries;
  return object;
}

}  // namespace holdfast::cli
