// SPDX-License-Identifier: BSL-1.0
#include "sync/vote/voting.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "protocol/replies.hpp"
#include "protocol/vote/vote.hpp"
#include "protocol/vote/vote_count.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/send_once.hpp"

namespace holdfast::detail {
namespace {

constexpr std::size_t longest_marker = 128;
// An administrator must mend these cases. Looking again each second finds that early enough, at little cost.
constexpr nanoseconds misconfiguration_lasts = std::chrono::seconds(1);
// Not a possible marker, so a server without run id and number refuses to vote. The client then gives it a number
// first.
constexpr auto* not_told_apart = "its number comes first";

// The old and the new marker, copied: the command may be written after the voter's own texts have changed.
struct change {
  std::string was, becomes;
};

constexpr auto emptied_or_new = "it was restarted or emptied, or is new (red_lock::initialise)";

std::string seconds(nanoseconds duration) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(duration).count()) + " s";
}

}  // namespace

// The fields of a primary by its stage. link_changed() resets all of them but `connections`, in each stage.
//
//   field             votes  asking  to_wait  disagreeing  refusing  waiting  moved by
//   seen              old    old     yes      yes          old       yes      set by on_marker() and wait()
//   until             old    old     old      yes          yes       yes      set by on_marker(), refuses() and wait()
//   refused           old    old     old      old          yes       old      set by refuses()
//   thinks unknown    any    any     no       no           any       no       set by on_marker() and by a vote
//   heard             any    yes     yes      yes          any       yes      set by each answer to an acquire
//   told_apart        any    any     any      any          any       any      set by tell_apart(); cleared for all that
//                                                                             name no run when one of them connects
//   duplicate_server  any    any     any      any          any       any      set by tell_apart()
//   adopted           any    any     any      any          any       any      set by on_marker(), if no run is named
//
// yes: the stage relies on it. old: left from an earlier stage and not read. any: both are possible.
// `asking` ends with the answer of its command, which first makes it `votes`. The answer's handler may then set another
// stage. begin_waits() turns `to_wait` into `asking`, and end_wait() turns `waiting` into `asking`.

voting::voting(environment& env, const std::string& client_id)
    : env_(env), probe_key_(std::string(vote_marker) + ":probe:" + client_id), each_(env.servers.primaries()) {
  for (std::size_t n = 0; n < each_.size(); ++n) numbers_.push_back(std::to_string(n));
}

bool voting::may_vote(std::size_t index) {
  auto& voter = each_[index];
  const bool over = env_.now() >= voter.until;
  // No timer runs for these ends: a client that asks for no lock has no reason to wake up.
  if ((voter.now == stage::disagreeing || voter.now == stage::refusing) && over) voter.now = stage::votes;
  if (voter.now == stage::waiting && over) end_wait(index);
  // Other primaries may have connected since, so a majority may agree only now.
  begin_waits();
  return voter.now == stage::votes;
}

redis::failure voting::why_no_vote(std::size_t index) const {
  const auto& voter = each_[index];
  const auto because = [&](error_code code, const std::string& why) {
    return redis::failure{code, where(index) + ": " + why};
  };
  switch (voter.now) {
    case stage::votes: return because(errc::unreachable, "it had no vote when it was asked");
    case stage::asking:
      return because(errc::unreachable,
                     std::string("it has no vote yet, and is being asked about it: perhaps ") + emptied_or_new);
    case stage::to_wait:
      return because(errc::unreachable, "it has no vote, and too few others agree about the longest TTL so far");
    case stage::disagreeing:
      return because(errc::invalid_config, "clients disagree about the longest TTL: its marker is " +
                                               in_quotes(voter.seen, longest_marker) +
                                               ", and this client's red_lock.longest_ttl " +
                                               std::to_string(env_.settings.red_lock.longest_ttl.count()));
    case stage::refusing: return because(voter.refused.code, "it was to be given a vote: " + voter.refused.detail);
    case stage::waiting: break;
  }
  return because(errc::unreachable,
                 "it has no vote for another " + seconds(voter.until - env_.now()) + ", because " + emptied_or_new);
}

std::string voting::marker(std::size_t index) const {
  if (run(index).empty() && !each_[index].told_apart) return not_told_apart;
  // Without red_lock.delayed_restart, every primary promises to write each command to its disk before it answers.
  return env_.settings.red_lock.delayed_restart ? marker_value(index) : std::string();
}

std::string voting::marker_value(std::size_t index) const {
  const auto& voter = each_[index];
  // A server that does not tell its run cannot be checked for a restart. The run in its marker is taken for its own.
  return voter.adopted.empty() ? vote_text(run(index), env_.settings.red_lock.longest_ttl) : voter.adopted;
}

void voting::has_no_vote(std::size_t index) {
  // Several attempts may have been refused together. The first one has started the inquiry.
  if (each_[index].now != stage::votes) return;
  if (run(index).empty() && !each_[index].told_apart) return tell_apart(index);
  if (env_.settings.red_lock.delayed_restart) look(index);
}

bool voting::knows(std::size_t index, const call& script) const { return each_[index].known.contains(script.step()); }

void voting::answered(std::size_t index, const call& script, const redis::reply& reply) {
  auto& voter = each_[index];
  // SCRIPT FLUSH does not end the connection, so knowledge of a script can become wrong.
  if (is_unknown_script(reply)) return static_cast<void>(voter.known.erase(script.step()));
  if (!reply.is_error()) voter.known.insert(script.step());
  if (!script.acquires()) return;
  // Only an acquire carries the marker, so no other answer says anything about the vote.
  voter.heard = true;
  if (!reply.is_error()) voter.thinks = opinion::agrees;
}

void voting::look_for_misconfiguration() {
  misconfiguration_.clear();
  const auto are_one = [this](std::size_t one, std::size_t other, const char* known_by) {
    misconfiguration_ = where(one) + " and " + where(other) + " are one server: " + known_by;
  };
  // A server with two addresses would have two votes, and one crash could undo a majority.
  for (std::size_t first = 0; first < each_.size(); ++first) {
    if (each_[first].duplicate_server)
      return are_one(*each_[first].duplicate_server, first, "what one was told, the other knows");
    for (std::size_t second = first + 1; second < each_.size(); ++second)
      if (each_[first].up && each_[second].up && !run(first).empty() && run(first) == run(second))
        return are_one(first, second, "they have the same run_id");
  }
}

void voting::link_changed(std::size_t index, bool up) {
  auto& voter = each_[index];
  // A new connection may lead to another run, so nothing that the old one said counts. Only the number of connections
  // survives, because ask() compares it.
  const auto ended = voter.connections + (up ? 0 : 1);
  voter = primary();
  voter.up = up;
  voter.connections = ended;
  look_for_misconfiguration();
  if (!up || !run(index).empty()) return;
  // A number expires at its server after a minute. So all servers without a run get their numbers anew, together.
  for (std::size_t other = 0; other < each_.size(); ++other)
    if (run(other).empty()) each_[other].told_apart = false;
  if (env_.settings.red_lock.delayed_restart && !std::exchange(degraded_, true))
    env_.report({.kind = event_kind::delayed_restart_degraded, .detail = where(index)});
}

// An answer from an ended connection may be from an earlier run of the server, and is ignored.
void voting::ask(std::size_t index, const call& command, function<void(const outcome&)> then) {
  send_to_primary(env_, index, command, {.timeout = env_.settings.command_timeout, .rank = urgency::obligation},
                  [this, index, asked_on = each_[index].connections, then = std::move(then)](const outcome& outcome) {
                    if (each_[index].connections != asked_on) return;
                    HOLDFAST_ASSERT(each_[index].now == stage::asking);
                    // An assumption: if it is wrong, the next acquire is refused, and the inquiry begins again.
                    each_[index].now = stage::votes;
                    then(outcome);
                    begin_waits();
                  });
  each_[index].now = stage::asking;
}

// A temporary failure needs no stage: the next attempt asks again. A lasting one is reported as the reason meanwhile.
void voting::refuses(std::size_t index, redis::failure why) {
  if (why.mends_itself()) return;
  auto& voter = each_[index];
  voter.now = stage::refusing;
  voter.until = env_.now() + misconfiguration_lasts;
  voter.refused = std::move(why);
}

void voting::look(std::size_t index) {
  ask(index, look_at_marker(), [this, index](const outcome& outcome) {
    auto reply = read_look_at_marker(outcome);
    reply.failed ? refuses(index, std::move(*reply.failed)) : on_marker(index, std::move(reply.value));
  });
}

void voting::on_marker(std::size_t index, std::string text) {
  auto& voter = each_[index];
  voter.seen = std::move(text);
  const auto marker = marker_text::parse(voter.seen);
  const auto longest = std::to_string(env_.settings.red_lock.longest_ttl.count());
  const bool agrees = marker && marker->longest == longest;
  voter.thinks = voter.seen.empty() ? opinion::none : agrees ? opinion::agrees : opinion::disagrees;
  if (voter.thinks == opinion::disagrees) {
    voter.now = stage::disagreeing;
    voter.until = env_.now() + misconfiguration_lasts;
    return;
  }
  // A marker of the present run is valid. With a nonce it is a wait that another client has begun.
  const bool ours = marker && (run(index).empty() || marker->run == run(index));
  if (ours && run(index).empty()) voter.adopted = std::string(marker->run) + ' ' + longest;
  if (ours && !marker->nonce.empty()) return wait(index, voter.seen);
  // The wait is not begun here. This client may be the one with the wrong longest TTL, so a majority must agree.
  if (!ours) voter.now = stage::to_wait;
}

void voting::wait(std::size_t index, std::string marker) {
  auto& voter = each_[index];
  voter.seen = std::move(marker);
  // Counted from now, even if another client began this wait earlier: its age is unknown, and longer is safe. The clock
  // of this client may be fast, and that of a holder slow.
  const auto longest = env_.settings.red_lock.longest_ttl;
  voter.until = env_.now() + longest + drift_of(longest, env_.settings.drift);
  voter.now = stage::waiting;
  const auto why = why_no_vote(index).detail;
  env_.report({.kind = event_kind::vote_withheld, .detail = why});
}

void voting::begin_waits() {
  if (!majority_agrees()) return;
  for (std::size_t n = 0; n < each_.size(); ++n)
    if (each_[n].now == stage::to_wait) begin_wait(n);
}

void voting::begin_wait(std::size_t index) {
  // The nonce makes this wait unique: no other client writes the same text, see voting.hpp.
  const auto markers = std::make_shared<const change>(
      change{each_[index].seen, marker_value(index) + ' ' + std::to_string(env_.random.next())});
  ask(index, change_marker(markers->was, markers->becomes), [this, index, markers](const outcome& outcome) {
    auto reply = read_change_marker(outcome);
    if (reply.failed) return refuses(index, std::move(*reply.failed));
    if (reply.value) wait(index, markers->becomes);
  });
}

// The result does not matter. If the marker was changed meanwhile, the server still refuses to vote, and the inquiry
// starts anew.
void voting::end_wait(std::size_t index) {
  const auto markers = std::make_shared<const change>(change{each_[index].seen, marker_value(index)});
  ask(index, change_marker(markers->was, markers->becomes), [this, index, markers](const outcome& outcome) {
    auto reply = read_change_marker(outcome);
    if (reply.failed) refuses(index, std::move(*reply.failed));
  });
}

void voting::tell_apart(std::size_t index) {
  ask(index, holdfast::detail::tell_apart(probe_key_, numbers_[index]), [this, index](const outcome& outcome) {
    auto reply = read_tell_apart(outcome);
    if (reply.failed) return refuses(index, std::move(*reply.failed));
    // The server answers with the first number that it got. Another primary's number proves that both are one server.
    const auto first = std::find(numbers_.begin(), numbers_.end(), reply.value);
    const bool unique = first == numbers_.end() || *first == numbers_[index];
    if (!unique) each_[index].duplicate_server = static_cast<std::size_t>(first - numbers_.begin());
    each_[index].told_apart = unique;
    look_for_misconfiguration();
  });
}

// All connected primaries must have answered first. Otherwise fast, emptied primaries would decide before a slow
// primary that disagrees.
bool voting::majority_agrees() const {
  const auto to_be_heard = [](const primary& primary) {
    return primary.up && (!primary.heard || primary.now == stage::asking);
  };
  if (std::any_of(each_.begin(), each_.end(), to_be_heard)) return false;
  const auto count = [this](opinion opinion) {
    return static_cast<std::size_t>(std::count_if(
        each_.begin(), each_.end(), [opinion](const primary& primary) { return primary.thinks == opinion; }));
  };
  const auto agree = count(opinion::agrees), disagree = count(opinion::disagrees);
  // Primaries without a marker accept any longest TTL, so only existing markers show whether this client is the wrong
  // one.
  if (disagree > 0 && disagree >= agree) return false;
  return agree + count(opinion::none) >= vote_count::majority(each_.size());
}

/// One call of initialise(). It looks at all primaries before it makes the first marker, so that a call that fails
/// usually leaves no marker behind.
class voting::initialisation final : public std::enable_shared_from_this<initialisation> {
 public:
  initialisation(voting& of, done_handler done) : of_(of), done_(std::move(done)) {
    for (std::size_t n = 0; n < of_.each_.size(); ++n) votes_.emplace_back();
  }

  void look() {
    each([](std::size_t) { return look_at_marker(); },
         [](initialisation& self, std::size_t index, const outcome& outcome) {
           const auto text = self.read(index, outcome, read_look_at_marker);
           if (!text || text->empty()) return;
           const auto marker = marker_text::parse(*text);
           const bool waits = marker && !marker->nonce.empty();
           self.fail(
               errc::invalid_config,
               self.of_.where(index) + ": it has a marker already" +
                   (waits ? ", because a client has asked for its vote: it votes when the longest TTL is over" : ""));
         },
         [](initialisation& self) { self.make(); });
  }

 private:
  template <class Make, class Heard, class Then>
  void each(Make make, Heard heard, Then then) {
    waits_for_ = of_.each_.size();
    for (std::size_t n = 0; n < of_.each_.size(); ++n)
      send_to_primary(of_.env_, n, make(n), {.timeout = of_.env_.settings.command_timeout},
                      [self = shared_from_this(), n, heard, then](const outcome& outcome) {
                        heard(*self, n, outcome);
                        // The primaries answer in any order, and the next step needs all of them.
                        if (--self->waits_for_ > 0) return;
                        if (self->failed_) return self->done_(self->failed_);
                        then(*self);
                      });
  }

  void make() {
    // The first answers may have revealed that two addresses are one server.
    if (auto misconfiguration = of_.misconfiguration(); !misconfiguration.empty())
      return done_(failure{errc::invalid_config, std::move(misconfiguration)});
    for (std::size_t n = 0; n < votes_.size(); ++n)
      votes_[n] = vote_text(of_.run(n), of_.env_.settings.red_lock.longest_ttl);
    each([this](std::size_t index) { return make_marker(votes_[index]); },
         [](initialisation& self, std::size_t place, const outcome& outcome) {
           const auto made = self.read(place, outcome, read_make_marker);
           // SET NX fails if another client initialises at the same time, perhaps with another longest TTL.
           if (made && !*made) self.fail(errc::invalid_config, self.of_.where(place) + ": it has a marker already");
         },
         [](initialisation& self) { self.done_(std::nullopt); });
  }

  template <class T>
  std::optional<T> read(std::size_t index, const outcome& result, answer<T> (*read)(const outcome&)) {
    const auto answer = read(result);
    if (!answer.failed) return answer.value;
    // One silent primary is enough to fail: its marker could contradict the others.
    const bool silent = answer.failed->code == errc::unreachable;
    const auto node = of_.where(index);
    const auto& why = answer.failed->detail;
    fail(silent ? errc::quorum_failed : answer.failed->code, why.starts_with(node) ? why : node + ": " + why);
    return std::nullopt;
  }
  void fail(error_code code, std::string why) {
    // The first cause is reported; later ones are often its consequences.
    if (!failed_) failed_ = failure{code, std::move(why)};
  }

  voting& of_;
  const done_handler done_;
  std::vector<std::string> votes_;
  std::size_t waits_for_ = 0;
  std::optional<failure> failed_;
};

void voting::initialise(done_handler done) { std::make_shared<initialisation>(*this, std::move(done))->look(); }

}  // namespace holdfast::detail
