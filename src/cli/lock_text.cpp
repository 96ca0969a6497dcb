// SPDX-License-Identifier: BSL-1.0
#include "cli/lock_text.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>

#include "cli/output.hpp"

namespace holdfast::cli {
namespace {

// Columns of `list`: long texts move the rest of their line. The last one has no width.
constexpr std::array<std::size_t, 9> widths{28, 12, 5, 10, 7, 16, 20, 24, 40};

constexpr std::size_t longest_shown = 200;  // bytes of a leader's value: as many as a note has

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

std::string note_text(const lock_facts& lock) { return lock.note ? shown(*lock.note) : "-"; }

/// The last column of `list`.
std::string remark_text(const lock_facts& lock) {
  if (!lock.leader) return note_text(lock);
  return "leader " + leader_text(*lock.leader) + (lock.note ? "; " + note_text(lock) : "");
}

}  // namespace

std::string leader_text(const std::string& value) {
  if (value.empty()) return "-";
  return shown(std::string_view(value).substr(0, longest_shown)) + (value.size() > longest_shown ? "…" : "");
}

std::string process_text(const std::optional<process_facts>& process) {
  if (!process) return "-";
  return shown(process->pid) + " on " + shown(process->host) + " (" + shown(process->client) + ')';
}

std::string line_of_titles() {
  return row({"NAME", "KIND", "COUNT", "TTL", "WAITERS", "TOKEN", "SINCE", "PROCESS", "HOLDER", "NOTE"});
}

std::string permits_text(const permit_facts& permits) {
  const auto out = std::to_string(permits.out) + " out";
  if (!permits.left) return out + ", the counter is missing: the next acquire makes it";
  return std::to_string(permits.out + *permits.left) + " permits, " + out + ", " + std::to_string(*permits.left) +
         " left";
}

std::string several_text(const lock_facts& lock) {
  return lock.permits ? permits_text(*lock.permits)
                      : std::to_string(lock.count) + (lock.count == 1 ? " read hold" : " read holds");
}

std::string lines_of(const lock_facts& lock) {
  if (!lock.has_several())
    return row({shown(lock.name), kind_text(lock), std::to_string(lock.count), duration_text(lock.first().ttl),
                number_or_dash(lock.waiters), number_or_dash(lock.token), since_text(lock.since),
                process_text(lock.first().process), shown(lock.first().holder), remark_text(lock)});
  auto lines = row({shown(lock.name), lock.kind, std::to_string(lock.count), duration_text(lock.first().ttl),
                    number_or_dash(lock.waiters), "-", "-", "-", "-", several_text(lock)});
  for (const auto& hold : lock.holds)
    lines += '\n' + row({shown(lock.name), lock.permits ? "permit" : "reader", "1", duration_text(hold.ttl), "-", "-",
                         "-", process_text(hold.process), shown(hold.holder), "-"});
  return lines;
}

std::string paragraph_of(const lock_facts& lock) {
  std::vector<std::pair<const char*, std::string>> lines{{"name     ", shown(lock.name)},
                                                         {"kind     ", kind_text(lock)}};
  if (lock.has_several()) {
    lines.emplace_back(lock.permits ? "permits  " : "readers  ", several_text(lock));
    lines.emplace_back("waiters  ", number_or_dash(lock.waiters));
    for (const auto& hold : lock.holds)
      lines.emplace_back(
          lock.permits ? "permit   " : "reader   ",
          shown(hold.holder) + ", ttl " + duration_text(hold.ttl) + ", process " + process_text(hold.process));
    if (const auto more = lock.hidden(); more > 0)
      lines.emplace_back("         ",
                         "and " + std::to_string(more) + (lock.permits ? " more, which end later" : " more"));
  } else {
    if (lock.leader) lines.emplace_back("leader   ", leader_text(*lock.leader));
    lines.insert(lines.end(), {{"holder   ", shown(lock.first().holder) + (lock.is_written() ? ", writes" : "")},
                               {"process  ", process_text(lock.first().process)},
                               {"count    ", std::to_string(lock.count)},
                               {"since    ", since_text(lock.since)},
                               {"ttl      ", duration_text(lock.first().ttl)},
                               {"token    ", number_or_dash(lock.token)},
                               {"waiters  ", number_or_dash(lock.waiters)},
                               {"note     ", note_text(lock)}});
  }
  std::string text;
  for (const auto& [title, value] : lines) {
    if (!text.empty()) text += '\n';
    text += painted(colour::faint, title) + value;
  }
  return text;
}

void put_hold(json::object& into, const hold_facts& hold) {
  put_bytes(into, "holder", hold.holder);
  into["process"] = nullptr;
  if (hold.process) {
    json::object process;
    put_bytes(process, "pid", hold.process->pid);
    put_bytes(process, "host", hold.process->host);
    put_bytes(process, "client", hold.process->client);
    into["process"] = std::move(process);
  }
  put_if(into, "ttl_ms", hold.ttl < 0 ? std::nullopt : std::optional(hold.ttl));
}

json::array json_of(const std::vector<hold_facts>& holds) {
  json::array held;
  for (const auto& hold : holds) {
    json::object one;
    put_hold(one, hold);
    held.push_back(std::move(one));
  }
  return held;
}

json::object json_of_readers(const lock_facts& lock) {
  json::object object;
  object["holds"] = lock.count;
  object["held"] = json_of(lock.holds);
  return object;
}

json::object json_of(const permit_facts& permits, const std::vector<hold_facts>& holds) {
  json::object object;
  put_if(object, "total", permits.left ? std::optional(permits.out + *permits.left) : std::nullopt);
  object["out"] = permits.out;
  put_if(object, "left", permits.left);
  object["held"] = json_of(holds);
  return object;
}

json::object json_of(const lock_facts& lock) {
  json::object object;
  put_bytes(object, "name", lock.name);
  object["kind"] = lock.kind;
  put_hold(object, lock.first());
  object["permits"] = nullptr;
  object["readers"] = nullptr;
  object["leader"] = nullptr;
  if (lock.leader) put_bytes(object, "leader", *lock.leader);
  if (lock.has_several()) {
    object["holder"] = nullptr;
    object["process"] = nullptr;
  }
  if (lock.permits) object["permits"] = json_of(*lock.permits, lock.holds);
  if (lock.is_read) object["readers"] = json_of_readers(lock);
  object["count"] = lock.count;
  put_if(object, "token", lock.token);
  put_if(object, "waiters", lock.waiters);
  put_if(object, "since_ms", lock.since);
  object["note"] = nullptr;
  if (lock.note) put_bytes(object, "note", *lock.note);
  object["votes"] = lock.votes;
  object["primaries"] = lock.primaries;
  return object;
}

std::string line_of(const lock_event& event) {
  std::string line(event.happened);
  if (event.name.empty()) return event.text.empty() ? line : line.append("  ").append(event.text);
  line.append(line.size() < 9 ? 9 - line.size() : 0, ' ').append(" ").append(shown(event.name));
  if (event.lock && event.happened == "waiters")
    line += "  " + std::to_string(event.lock->waiters.value_or(0));
  else if (event.hold)
    line += "  " + shown(event.hold->holder) + "  " + process_text(event.hold->process);
  if (event.lock && event.lock->leader && event.happened != "waiters") line += "  " + leader_text(*event.lock->leader);
  return line;
}

json::object json_of(const lock_event& event) {
  json::object line = event.lock ? json_of(*event.lock) : json::object();
  if (event.hold) put_hold(line, *event.hold);
  if (event.name.empty())
    line["text"] = event.text;
  else if (!event.lock)
    put_bytes(line, "name", event.name);
  line["event"] = event.happened;
  return line;
}

}  // namespace holdfast::cli
