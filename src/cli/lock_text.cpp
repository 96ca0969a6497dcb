// SPDX-License-Identifier: BSL-1.0
#include "cli/lock_text.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "cli/output.hpp"

namespace holdfast::cli {
namespace {

// Columns of `list`: long texts move the rest of their line. The last one has no width.
constexpr std::array<std::size_t, 9> widths{28, 12, 5, 10, 7, 16, 20, 24, 40};

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

/// "2026-11-27T07:22:41Z", by the server's clock.
std::string since_text(const std::optional<long long>& since) {
  if (!since) return "-";
  const std::chrono::sys_time<std::chrono::milliseconds> instant{std::chrono::milliseconds(*since)};
  const auto day = std::chrono::floor<std::chrono::days>(instant);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::seconds>(instant - day));
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text.data();
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
  return row({"NAME", "KIND", "COUNT", "TTL", "WAITERS", "TOKEN", "SINCE", "PROCESS", "HOLDER", "NOTE"});
}

std::string line_of(const lock_facts& lock) {
  return row({shown(lock.name), kind_text(lock), std::to_string(lock.count), duration_text(lock.ttl),
              number_or_dash(lock.waiters), number_or_dash(lock.token), since_text(lock.since),
              process_text(lock.process), shown(lock.holder), lock.note ? shown(*lock.note) : "-"});
}

std::string lines_of(const lock_facts& lock) {
  const std::pair<const char*, std::string> lines[] = {
      {"name     ", shown(lock.name)},
      {"kind     ", kind_text(lock)},
      {"holder   ", shown(lock.holder)},
      {"process  ", process_text(lock.process)},
      {"count    ", std::to_string(lock.count)},
      {"since    ", since_text(lock.since)},
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
  put_if(object, "since_ms", lock.since);
  object["note"] = nullptr;
  if (lock.note) put_bytes(object, "note", *lock.note);
  object["votes"] = lock.votes;
  object["primaries"] = lock.primaries;
  return object;
}

}  // namespace holdfast::cli
