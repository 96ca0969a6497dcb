// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/latch_judge.hpp"

#include <algorithm>

#include "protocol/derived_keys.hpp"

namespace holdfast::sim {
namespace {

/// The positions in a command of latch_set or count_down.
constexpr std::size_t name_at = 3, mark_at = 4, number_at = 5, mark_ttl_at = 6;

/// The beginning of the keys of all marks of a latch.
std::string stem_of(const std::string& name) { return detail::joined(detail::beside(mark_stem, name)) + ':'; }

}  // namespace

std::string latch_judge::mark_of(const detail::lock_keys& keys, const detail::owner_field& field) {
  const auto text = field.to_text();
  return stem_of(keys.lock).append(std::string_view(text));
}

std::optional<long long> latch_judge::stored_count(const std::string& name) const {
  const auto* e = known_.stored.find(0, name);
  long long count = 0;
  if (!e) return 0;
  return e->text() && to_integer(*e->text(), count) ? std::optional(count) : std::nullopt;
}

bool latch_judge::is_disturbed(const std::string& name, const latch_record& latch) const {
  return latch.disturbed || known_.servers.moves(name) || known_.servers.holder(0, name) != latch.machine ||
         known_.excused.broken_or_forgotten_at(name) >= latch.compared;
}

time_point latch_judge::mark_end(std::size_t machine, const std::string& mark) const {
  auto& at = known_.servers.machines()[machine];
  const auto* e = std::as_const(at.program().keys()).find(mark);
  return e ? storage::end_of(at, *e) : time_point();
}

// The count starts from what the node has, with the marks that it has.
void latch_judge::begin_again(const std::string& name, latch_record& latch) {
  latch.machine = known_.servers.holder(0, name);
  latch.compared = known_.now();
  latch.disturbed = false;
  const auto count = stored_count(name);
  latch.judged = count && !known_.servers.moves(name);
  if (!latch.judged) return;
  counted_latch::marks marks;
  const auto& keys = std::as_const(known_.servers.machines()[latch.machine].program().keys());
  const auto stem = stem_of(name);
  for (const auto& [key, e] : keys.all()) {
    long long left = 0;
    if (key.starts_with(stem) && keys.find(key) && e.text() && to_integer(*e.text(), left))
      marks[key] = {left, mark_end(latch.machine, key)};
  }
  latch.counted.assume(*count, std::move(marks));
}

void latch_judge::ran(std::size_t machine, change kind, const arguments& command, const reply& answer) {
  const auto& name = command.at(name_at);
  const auto& mark = command.at(mark_at);
  const bool refused_set = kind == change::set && !answer.is_error() && answer.elements.at(0).integer == 0;
  auto& latch = latches_.at(name);
  if (refused_set) latch.refused_set = known_.now();
  const bool marked = !answer.is_error() && !refused_set;
  if (marked && !ran_.insert(mark).second) known_.met.hit("latch: a command that had run came again");
  if (machine != known_.servers.holder(0, name) || is_disturbed(name, latch)) return begin_again(name, latch);
  if (!latch.judged) return;
  const auto now = known_.now(), end = mark_end(machine, mark);
  const auto number = answer.is_error() ? 0 : std::stoll(command.at(number_at));
  kind == change::set ? latch.counted.ran_set(mark, number, answer, now, end)
                      : latch.counted.ran_count_down(mark, number, answer, now, end);
  // A second copy may come for half as long.
  if (marked && end < now + milliseconds(std::stoll(command.at(mark_ttl_at))) / 2)
    known_.found.accuse("the node", "forgets too early that it has run a call of " + name);
  compare(name, latch);
}

void latch_judge::compare(const std::string& name, latch_record& latch) {
  const auto stored = stored_count(name);
  if (stored) latch.counted.compare(*stored);
  const auto& violated = latch.counted.violated();
  if (!stored) known_.found.accuse("the node", "has no count at " + name);
  if (!violated.empty()) known_.found.accuse("the node", "has miscounted " + name + ": " + violated);
  note_open(name, latch);
}

void latch_judge::read(const std::string& key, const reply& answer) {
  const auto latch = latches_.find(key);
  long long count = 0;
  if (latch == latches_.end() || answer.is_error()) return;
  if (answer.type != reply::kind::nil && !to_integer(answer.text, count)) return;
  latch->second.read[count] = known_.now();
}

void latch_judge::peer_set(const std::string& name, long long count) {
  auto& latch = latches_.at(name);
  if (is_disturbed(name, latch) || !latch.judged) return begin_again(name, latch);
  latch.counted.set(count);
  compare(name, latch);
}

void latch_judge::peer_counted_down(const std::string& name) {
  auto& latch = latches_.at(name);
  if (is_disturbed(name, latch) || !latch.judged) return begin_again(name, latch);
  latch.counted.count(1);
  compare(name, latch);
}

void latch_judge::accuse(std::uint64_t call, const std::string& deed) {
  const auto& record = known_.calls.at(call);
  known_.accuse(*record.client, deed + ": " + record.text);
}

void latch_judge::set(std::uint64_t call, const std::string& name, const std::string& mark, bool was_open) {
  if (was_open && !ran_.contains(mark)) accuse(call, "was told of a count that no node has set");
  if (!was_open && latches_.at(name).refused_set < known_.calls.at(call).since)
    accuse(call, "was told that a count was set, and no node has said so");
}

void latch_judge::counted_down(std::uint64_t call, const std::string& mark) {
  if (!ran_.contains(mark)) accuse(call, "was told of a count-down that no node has run");
}

void latch_judge::count_read(std::uint64_t call, const std::string& name, long long count) {
  const auto& read = latches_.at(name).read;
  const auto last = read.find(count);
  if (last == read.end() || last->second < known_.calls.at(call).since)
    accuse(call, "was told that the count of " + name + " is " + std::to_string(count) + ", and it was not");
}

void latch_judge::disturbed(const std::string& name) {
  for (auto& [each, latch] : latches_)
    if (name.empty() || each == name) latch.disturbed = true;
}

// An elected replica may have another count, and nobody has a message of that.
void latch_judge::promoted(const keyspace& from, const keyspace& to) {
  for (auto& [name, latch] : latches_) {
    latch.disturbed = true;
    const auto *before = from.find(name), *after = to.find(name);
    const bool same =
        before && after && before->text() && after->text() ? *before->text() == *after->text() : !before == !after;
    if (!same) known_.excused.freed_silently(name);
  }
}

void latch_judge::note_disturbed() {
  for (auto& [name, latch] : latches_)
    if (is_disturbed(name, latch)) begin_again(name, latch);
}

void latch_judge::note_open(const std::string& name, latch_record& latch) {
  if (known_.servers.moves(name)) known_.excused.freed_silently(name);
  if (known_.stored.find(0, name) || known_.servers.moves(name))
    latch.open_since.reset();
  else if (!latch.open_since)
    latch.open_since = known_.now();
}

void latch_judge::look() {
  for (auto& [name, latch] : latches_) note_open(name, latch);
  for (const auto& [id, call] : known_.calls.all()) {
    if (call.awaits_latch.empty() || call.client->closing()) continue;
    const auto& open_since = latches_.at(call.awaits_latch).open_since;
    if (!open_since) continue;
    const auto& settings = call.client->settings();
    const auto silence = std::max(known_.excused.last_silence_about(call.awaits_latch),
                                  known_.clients.of(*call.client).last_message_lost);
    const auto from = std::max({*open_since, call.since, known_.clients.undisturbed_from(*call.client),
                                silence + bounds::longest_sleep(settings)});
    if (known_.now() > from + bounds::journey + bounds::late_by_clock(settings))
      known_.accuse(*call.client, "waits for " + call.awaits_latch + ", which is open: " + call.text);
  }
}

}  // namespace holdfast::sim
