// SPDX-License-Identifier: BSL-1.0
#include "sim/script_listener.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "protocol/vote/vote.hpp"

namespace holdfast::sim {
namespace {

constexpr std::string_view simple = "simple_";

std::string_view name_of_script(std::string_view digest) {
  namespace lua = detail::lua;
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {lua::acquire.sha1, "acquire"},
      {lua::acquire_fenced.sha1, "acquire_fenced"},
      {lua::acquire_any.sha1, "acquire_any"},
      {lua::acquire_any_fenced.sha1, "acquire_any_fenced"},
      {lua::acquire_all.sha1, "acquire_all"},
      {lua::acquire_all_fenced.sha1, "acquire_all_fenced"},
      {lua::set_hold_count.sha1, "set_hold_count"},
      {lua::renew.sha1, "renew"},
      {lua::release.sha1, "release"},
      {lua::force_release.sha1, "force_release"},
      {lua::simple_acquire.sha1, "simple_acquire"},
      {lua::simple_acquire_any.sha1, "simple_acquire_any"},
      {lua::simple_acquire_all.sha1, "simple_acquire_all"},
      {lua::simple_renew.sha1, "simple_renew"},
      {lua::simple_release.sha1, "simple_release"},
      {lua::simple_force_release.sha1, "simple_force_release"},
      {lua::change_marker.sha1, "change_marker"},
      {lua::tell_apart.sha1, "tell_apart"},
      {lua::write_note.sha1, "write_note"},
      {lua::permits_acquire.sha1, "permits_acquire"},
      {lua::permits_renew.sha1, "permits_renew"},
      {lua::permits_release.sha1, "permits_release"},
      {lua::permits_set.sha1, "permits_set"},
      {lua::permits_force.sha1, "permits_force"},
      {lua::read_acquire.sha1, "read_acquire"},
      {lua::write_acquire.sha1, "write_acquire"},
      {lua::read_release.sha1, "read_release"},
      {lua::write_release.sha1, "write_release"},
      {lua::shared_renew.sha1, "shared_renew"},
      {lua::downgrade.sha1, "downgrade"},
      {lua::shared_force.sha1, "shared_force"},
      {lua::shared_holder.sha1, "shared_holder"},
      {lua::latch_set.sha1, "latch_set"},
      {lua::count_down.sha1, "count_down"},
      {lua::campaign.sha1, "campaign"},
      {lua::proclaim.sha1, "proclaim"},
      {lua::resign.sha1, "resign"},
      {lua::election_force.sha1, "election_force"},
      {lua::observe.sha1, "observe"},
      {lua::fair_acquire.sha1, "fair_acquire"},
      {lua::fair_stand.sha1, "fair_stand"},
      {lua::fair_release.sha1, "fair_release"},
      {lua::fair_force.sha1, "fair_force"}};
  const auto found = std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.first == digest; });
  return found == std::end(names) ? std::string_view() : found->second;
}

/// The outcome in a script's reply.
std::string outcome_of(std::string_view script, const reply& r) {
  if (script.starts_with(simple)) script.remove_prefix(simple.size());
  const bool of_votes = script == "change_marker" || script == "tell_apart";
  if (of_votes && r.is_error() && !r.text.starts_with("NOSCRIPT")) return "refused";
  if (r.is_error()) return r.text.substr(0, r.text.find(' '));
  const bool makes_term = script == "acquire_fenced" || script == "campaign";
  if (makes_term && r.type == reply::kind::array) return "acquired";
  if (script.starts_with("acquire_any")) return r.type == reply::kind::array || r.integer > 0 ? "acquired" : "busy";
  if (script.starts_with("acquire_all")) {
    if (r.type == reply::kind::nil || r.elements.at(0).integer == 0) return "acquired";
    const auto what = r.elements.at(1).integer;
    return what >= 0 ? "busy" : what == -1 ? "busy without TTL" : "no lock";
  }
  if (script.starts_with("acquire") || script == "campaign")
    return r.type == reply::kind::nil ? "acquired" : r.integer < 0 ? "busy without TTL" : "busy";
  if (script == "change_marker") return r.integer == 1 ? "changed" : "something else";
  if (script == "tell_apart") return "told apart";
  if (script == "permits_acquire") {
    const auto state = r.elements.at(0).integer;
    return state > 0 ? "acquired" : state == 0 ? "busy" : "door";
  }
  if (script == "read_acquire" || script == "write_acquire" || script == "fair_acquire") {
    if (r.elements.at(0).integer == 1) return "acquired";
    const auto left = r.elements.at(1).integer;
    return left >= 0 ? "busy" : left == -1 ? "busy without TTL" : "free, and another client's turn";
  }
  if (script == "read_release" && r.type == reply::kind::array && r.elements.at(0).integer == 0) return "others read";
  if (script == "shared_holder")
    return r.type == reply::kind::array ? "held" : r.type == reply::kind::nil ? "free" : "no lock";
  if (script == "fair_stand") return r.elements.at(0).integer == -2 ? "shown, and it is free" : "shown";
  if (script == "fair_release" && r.type == reply::kind::array && r.elements.at(0).integer == 2) return "rides";
  if (script == "downgrade") return r.type == reply::kind::integer && r.integer == 0 ? "not yours" : "reads";
  if (script == "permits_set") return "set";
  if (script == "latch_set") return r.elements.at(0).integer == 1 ? "set" : "was set";
  if (script == "count_down") return r.elements.at(0).integer > 0 ? "counted" : "open";
  if (script == "observe")
    return r.type == reply::kind::nil ? "nobody" : r.elements.size() > 3 ? "a candidate" : "another lock's holder";
  if (script == "proclaim") return r.type == reply::kind::nil ? "not yours" : "proclaimed";
  if (script == "permits_force") return r.elements.at(0).integer > 0 ? "broken" : "0";
  if (script == "resign" || (script.ends_with("release") && !script.ends_with("force_release")))
    return r.type == reply::kind::nil ? "not yours" : "freed";
  if (script.ends_with("renew"))
    return std::any_of(r.elements.begin(), r.elements.end(), [](const reply& e) { return e.integer != 1; })
               ? "not yours"
               : "confirmed";
  return std::to_string(r.integer);
}

std::string outcome_of_set(const reply& r) {
  return r.is_error() ? r.text.substr(0, r.text.find(' ')) : r.type == reply::kind::nil ? "busy" : "acquired";
}

}  // namespace

void script_listener::listen() {
  for (std::size_t m = 0; m < servers_.machines().size(); ++m) {
    auto& node = servers_.machines()[m].program();
    node.on_script = [this, m](std::string_view digest, const arguments& a, const reply& r) {
      on_script(m, digest, a, r);
    };
    node.on_command = [this, m](const arguments& a, const reply& r) { on_command(m, a, r); };
  }
}

void script_listener::on_command(std::size_t machine, const arguments& a, const reply& r) {
  judge_.note_backing();
  if (a.front() == "GET") judge_.latches().read(a.at(1), r);
  if (a.front() != "SET" || a.at(1) == detail::vote_marker) return;
  const auto outcome = outcome_of_set(r);
  met_.hit("command: SET -> " + outcome);
  if (replaced(machine, a[1]) && !r.is_error()) judge_.answered_by_another(machine, a[1], a[2], outcome == "acquired");
}

void script_listener::on_script(std::size_t machine, std::string_view digest, const arguments& a, const reply& r) {
  const auto name = name_of_script(digest);
  if (name == "permits_acquire" && outcome_of(name, r) == "acquired") permits_granted(machine, a, r);
  judge_.ran_script(machine);
  if (name.empty()) return;
  log_.abbreviate(std::string(digest), std::string(name));
  // A slot may move between two accesses of one script, which is too rare for the list.
  if (!r.is_error() || r.text.find("access a non local key") == r.text.npos)
    met_.hit(std::string("script: ").append(name).append(" -> ").append(outcome_of(name, r)));
  if (name == "latch_set") return judge_.latches().ran(machine, latch_judge::change::set, a, r);
  if (name == "count_down") return judge_.latches().ran(machine, latch_judge::change::count_down, a, r);
  if (servers_.fails_over()) look_for_another(machine, name, a, r);
  if (name == "fair_stand") return;
  if (name == "observe") return judge_.elections().read(a.at(3), r);
  if (name == "proclaim" && outcome_of(name, r) == "proclaimed") judge_.elections().changed(a.at(5));
  if ((name == "acquire_fenced" || name == "campaign") && r.type == reply::kind::array)
    token_given(machine, a[3], a[6], r.elements[0], r.elements.size() > 1 ? r.elements[1].integer : 0);
  if (name == "acquire_any_fenced" && r.type == reply::kind::array)
    token_given(machine, a.at(2 + static_cast<std::size_t>(r.elements[0].integer)), a.at(3 + std::stoul(a.at(2)) + 1),
                r.elements[1]);
  if (name.find("acquire_all") != name.npos) return on_several(machine, name, a, r);
  const bool asks = name == "shared_holder" || name == "fair_force";
  if (!asks &&
      (outcome_of(name, r) == "busy without TTL" || (r.is_error() && !detail::classify(r.text).mends_itself())))
    judge_.refused_for_good(a.at(3),
                            a.at(3 + std::stoul(a.at(2)) + 1));  // of a node that votes nobody wants any one of several
  if ((name.ends_with("force_release") || name == "permits_force" || name == "shared_force" ||
       name == "election_force" || name == "fair_force") &&
      !r.is_error())
    judge_.excuse(a[3], true);
}

/// See permits_acquire.lua.
void script_listener::permits_granted(std::size_t machine, const arguments& a, const reply& r) {
  constexpr std::size_t waiters = 11, amounts = waiters + 1;
  const auto first = a.begin() + static_cast<std::ptrdiff_t>(amounts + std::stoul(a.at(waiters)));
  std::ptrdiff_t granted = 0;
  for (long long k = 0; k < r.elements.at(0).integer; ++k)
    granted += std::stol(a.at(amounts + static_cast<std::size_t>(k)));
  judge_.permits_granted(machine, a.at(3), {first, first + granted});
}

/// It has this key no more, and answers for it.
bool script_listener::replaced(std::size_t machine, const std::string& key) const {
  return !servers_.serves(machine, key);
}

void script_listener::token_given(std::size_t machine, const std::string& name, const std::string& field,
                                  const reply& first, long long spare) {
  const token_range all{static_cast<std::uint64_t>(first.integer), static_cast<std::uint64_t>(spare) + 1};
  replaced(machine, name) ? judge_.tokens_given_by_another(field, all) : judge_.tokens_given(name, field, all);
}

// A replaced server that does not know it gives answers that no other server will have.
void script_listener::look_for_another(std::size_t machine, std::string_view name, const arguments& a, const reply& r) {
  const auto outcome = outcome_of(name, r);
  const bool has_it = outcome == "acquired" || outcome == "confirmed" || outcome == "reads" ||
                      outcome == "proclaimed" || (name == "set_hold_count" && outcome == "1");
  const auto keys = std::stoul(a.at(2));
  for (std::size_t i = 0; !r.is_error() && i < keys; ++i) {
    const auto& key = a.at(3 + i);
    if (!replaced(machine, key)) continue;
    // Of several in one renewal each has its own answer.
    const bool is_held =
        has_it || (name.ends_with("renew") && r.elements.at(i * r.elements.size() / keys).integer == 1);
    // A release that rides has given the lock to its last field.
    const std::size_t next = outcome == "rides" ? 3 + keys + 2 : a.size();
    for (std::size_t arg = 3 + keys; arg < a.size(); ++arg)
      judge_.answered_by_another(machine, key, a[arg], is_held || arg == next);
  }
}

void script_listener::on_several(std::size_t machine, std::string_view name, const arguments& a, const reply& r) {
  const bool fenced = name.ends_with("fenced"), acquired = outcome_of(name, r) == "acquired";
  const auto keys = std::stoul(a.at(2)), locks = fenced ? keys / 2 : keys;
  std::vector<std::pair<std::string, std::string>> asked;
  for (std::size_t i = 0; i < locks; ++i) {
    asked.emplace_back(a.at(3 + i), a.at(3 + keys + 1 + i));
    if (fenced && acquired) token_given(machine, asked[i].first, asked[i].second, r.elements.at(1 + i));
  }
  if (!replaced(machine, asked.front().first)) judge_.several_answered(asked, acquired);
}

}  // namespace holdfast::sim
