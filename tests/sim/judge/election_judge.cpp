// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/election_judge.hpp"

#include <algorithm>

namespace holdfast::sim {
namespace {

/// An observer that knows `before` must be told of `now`. A lower term is an older state.
bool is_change(const election_judge::leader& before, const election_judge::leader& now) {
  if (!before || !now) return before.has_value() != now.has_value();
  if (before->term != now->term) return before->term < now->term;
  return before->value != now->value || before->field != now->field;
}

}  // namespace

std::string election_judge::text_of(const leader& known) {
  if (!known) return "nobody";
  return std::to_string(known->term) + ' ' + known->field + ' ' + known->value.value_or("without a value");
}

void election_judge::read(const std::string& name, const reply& answer) {
  const auto found = detail::election_steps::read_leader({{}, answer});
  if (!found.failed) elections_.at(name).read[text_of(found.value)] = known_.now();
}

std::optional<election_judge::leader> election_judge::stored(const std::string& name) const {
  if (known_.servers.moves(name)) return std::nullopt;
  const auto* e = known_.stored.find(0, name);
  // A server removes a key that is over when the next command comes.
  if (!e || storage::end_of(known_.stored.holder(0, name), *e) <= known_.now()) return leader();
  const auto view = election_view::reads(*e) ? std::optional(election_view(*e)) : std::nullopt;
  if (!view) return std::nullopt;
  detail::leader_answer now;
  now.term = std::stoull(std::string(view->term()));
  now.value = view->value();
  view->each_owner([&](const std::string& owner) { now.field = owner; });
  return now;
}

void election_judge::accuse(std::uint64_t call, const std::string& deed) {
  const auto& record = known_.calls.at(call);
  known_.accuse(*record.client, deed + ": " + record.text);
}

void election_judge::told(std::uint64_t call, const std::string& name, const leader& now) {
  auto& election = elections_.at(name);
  const auto last = election.read.find(text_of(now));
  if (last == election.read.end() || last->second < known_.calls.at(call).since)
    accuse(call, "was told of a leader that no node had: " + text_of(now));
  check_term(call, election, now);
}

// Another primary may be older, and then nobody knows which term is the newest. A counter that the server has lost is 0
// until somebody campaigns; told() has compared it with the node.
void election_judge::check_term(std::uint64_t call, election_record& election, const leader& now) {
  if (!now || now->term == 0) return;
  const auto& record = known_.calls.at(call);
  if (record.knows && now->term < record.knows->term)
    accuse(call, "was told of the term " + std::to_string(now->term) + " after " + std::to_string(record.knows->term));
  if (known_.servers.fails_over()) return;
  auto& told = election.told;
  if (now->term < told.highest && told.when < record.since)
    accuse(call,
           "was told of the term " + std::to_string(now->term) + ", and somebody knew " + std::to_string(told.highest));
  if (now->term > told.highest) told = {now->term, known_.now()};
}

void election_judge::elected(const std::string& name, std::uint64_t term, std::string value) {
  elections_.at(name).leads[term] = {.confirmed = std::move(value), .since = known_.now()};
}

void election_judge::begin_proclaim(const std::string& name, std::uint64_t term, const std::string& value) {
  elections_.at(name).leads[term].perhaps.insert(value);
}

void election_judge::proclaimed(std::uint64_t call, const std::string& name, std::uint64_t term,
                                const std::string& value) {
  const auto ran = changed_.find(value);
  if (ran == changed_.end() || ran->second < known_.calls.at(call).since)
    accuse(call, "was told of a value that no node has");
  auto& lead = elections_.at(name).leads[term];
  lead.perhaps.erase(value);
  lead.confirmed = value;
  lead.since = known_.now();
}

void election_judge::changed_by_peer(const std::string& name) {
  if (const auto found = elections_.find(name); found != elections_.end()) found->second.silent = known_.now();
}

void election_judge::term_lost(const std::string& name) {
  for (auto& [each, election] : elections_)
    if (name.empty() || each == name) election.told = {};
}

void election_judge::promoted() {
  for (auto& [name, election] : elections_) election.silent = known_.now();
}

void election_judge::look() {
  for (auto& [name, election] : elections_)
    if (known_.servers.moves(name)) election.moved = known_.now();
  for (const auto& [name, election] : elections_)
    if (const auto now = stored(name); now && *now) check_value(name, election, **now);
  for (auto& [id, call] : known_.calls.all())
    if (!call.observes.empty() && !call.client->closing()) look_at(call);
}

// A replica that is elected may have an older value. So may a node that was sent a command by a connection of before.
void election_judge::check_value(const std::string& name, const election_record& election,
                                 const detail::leader_answer& now) {
  const auto lead = election.leads.find(now.term);
  if (lead == election.leads.end() || known_.servers.fails_over()) return;
  const auto& values = lead->second;
  if (known_.excused.broken_or_forgotten_at(name) >= values.since || known_.fields.at(0, now.field).unfenced) return;
  if (*now.value != values.confirmed && !values.perhaps.contains(*now.value))
    known_.found.accuse("the node",
                        "has the value " + *now.value + " of the leader of " + name + " after " + values.confirmed);
}

void election_judge::look_at(call_record& call) {
  const auto now = stored(call.observes);
  if (!now || !is_change(call.knows, *now)) return call.news_since.reset();
  if (!call.news_since) call.news_since = known_.now();
  const auto& settings = call.client->settings();
  const auto& election = elections_.at(call.observes);
  const auto silence = std::max({known_.excused.last_silence_about(call.observes), election.silent,
                                 known_.clients.of(*call.client).last_message_lost});
  const auto from = std::max({*call.news_since, call.since, known_.clients.undisturbed_from(*call.client),
                              silence + bounds::longest_sleep(settings), election.moved + bounds::retry});
  if (known_.now() > from + bounds::journey + bounds::late_by_clock(settings))
    known_.accuse(*call.client,
                  "knows of no leader but " + text_of(call.knows) + ", and " + text_of(*now) + " leads: " + call.text);
}

}  // namespace holdfast::sim
