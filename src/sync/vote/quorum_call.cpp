// SPDX-License-Identifier: BSL-1.0
#include "sync/vote/quorum_call.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "protocol/vote/vote.hpp"
#include "protocol/vote/vote_count.hpp"
#include "sync/command/environment.hpp"
#include "sync/vote/voting.hpp"

namespace holdfast::detail {
namespace {

/// A busy machine may keep a server or this process from running for so long.
constexpr auto hiccup = milliseconds(10);

constexpr auto every_copy = [](std::size_t) { return true; };

outcome not_asked() { return {.error = errc::unreachable, .reply = {}, .detail = "it was not asked any more"}; }

void fail(outcome& outcome, redis::failure why) {
  outcome.error = why.code;
  outcome.detail = std::move(why.detail);
}

}  // namespace

// A red_lock is a mutex whose commands go to several primaries (docs/internals/design.md). These decisions concern one
// command at all of them.
//
// Decision: every copy is an obligation. A release must never overtake the acquire that it undoes, even while both wait
// for a connection. Obligations of one connection keep their order.
//
// Decision: one clock. The TTL counts from before the first send, and a later copy asks for the rest of it. So all
// grants end together, and one instant is enough for the validity.
//
// Decision: late grants are not awaited. The hold begins with the majority, and the first renewal asks the other
// shares. A denied share is not asked again. A claim is lost when the shares that were not denied are no majority.
//
// Decision: a refused lock waits a little for the remaining answers, see silence_limit(). Afterwards it is known where
// a grant must be given back, and healthy servers get no release of a lock that they never granted.
//
// The steps of a call:
//
//   step     open answers  grace_   moved by
//   made     none yet      stopped  begin() → asking, or → over when no copy could be sent
//   asking   some          stopped  answered() → grace or told; withdraw() → over, unless a copy is on the wire
//   grace    some          runs     answered() or the alarm → told; withdraw() as for asking
//   told     any           stopped  each late answer goes to tell_late(); the last copy ends the call
//   over     none          stopped  nothing
//
//   flag                     made  asking  grace  told  over  moved by
//   notified_                no    no      no     yes   yes   set by tell(), by a withdraw() of all copies, and by a
//                                                             begin() that sent nothing; never cleared
//   an outcome is missing    no    yes     yes    any   no    filled by begin() where a primary has no vote or there is
//                                                             no memory, by stop_writing() and by answered()
//   a copy lives             no    yes     yes    any   no    the topology drops it when it is answered or withdrawn
//   grace_ runs              no    no      yes    no    no    started by tell_if_decided(), only ever shortened;
//                                                             stopped by tell() and by a withdraw() of all copies
//
// any: both are possible. A withdraw() with a copy on the wire changes no step: the sender still waits for the answer.

class quorum_call::copy final : public script_command {
 public:
  copy(std::shared_ptr<quorum_call> in, std::size_t index) : in_(std::move(in)), index_(index) {}

  // A server that may not know the script gets its text at once. After NOSCRIPT the text would be sent behind newer
  // commands, and the release of this very lock may be among them.
  void begin(nanoseconds timeout) {
    // An obligation stays in front of its own release, even while both wait for a connection.
    const delivery delivery{.timeout = timeout, .rank = urgency::obligation, .track = in_->track_};
    const bool by_text = !in_->voters_.knows(index_, in_->command_);
    timeout_ = timeout;
    send(in_->to_.primary(index_), in_->command_, delivery, by_text);
  }

 private:
  // A copy that is written late asks for the rest of the TTL only, so that all grants end together. Its marker is read
  // now, because the connection may lead to another run of the server than when the call began.
  void append(const call& command, std::string& out, bool by_text) const override {
    if (!command.acquires()) return command.append_to(out, by_text);
    const auto later = std::chrono::ceil<milliseconds>(in_->time_.now() - in_->began_);
    const auto marker = in_->voters_.marker(index_);
    command.copy_for(later, marker.empty() ? nullptr : &marker).append_to(out, by_text);
  }
  // Once the sender is notified, it may have sent a release on this connection, and a repetition would come behind it.
  bool may_repeat() const override { return !in_->notified_; }
  void on_answer(const outcome& outcome) override { in_->answered(index_, outcome); }
  // A second copy, by text, shares the timeout of the first one: a call has one budget.
  std::optional<nanoseconds> time_left_for_copies() const override { return in_->began_ + timeout_ - in_->time_.now(); }

  const std::shared_ptr<quorum_call> in_;
  const std::size_t index_;
  nanoseconds timeout_{};
};

quorum_call::quorum_call(const environment& env, voting& voters, const call& command, bool track,
                         std::shared_ptr<script_command> sender)
    : to_(env.servers), time_(env.time), voters_(voters), field_(command.field()), command_(command.of_field(field_)),
      track_(track), sender_(std::move(sender)), grace_(env.alarms) {
  // A command without a reader of votes is for one server, and its answer could not be counted.
  HOLDFAST_ASSERT(command_.count());
}

void quorum_call::begin(nanoseconds timeout) {
  const auto primaries = to_.primaries();
  votes_.outcomes.resize(primaries);
  std::vector<bool> may_vote(primaries, true);
  if (command_.acquires())
    for (std::size_t n = 0; n < primaries; ++n) may_vote[n] = voters_.may_vote(n);
  // If no primary has a vote, all are asked nevertheless, and the sender gets their own refusals.
  const bool none = std::find(may_vote.begin(), may_vote.end(), true) == may_vote.end();
  std::vector<std::shared_ptr<copy>> asked(primaries);
  for (std::size_t n = 0; n < primaries; ++n) {
    if (none || may_vote[n])
      asked[n] = std::make_shared<copy>(shared_from_this(), n);
    else
      votes_.outcomes[n] = without_vote(n);
  }
  // The copies are known before the first is sent, and the clock starts: an answer needs both.
  copies_.assign(asked.begin(), asked.end());
  began_ = time_.now();
  std::size_t sent = 0;
  for (std::size_t n = 0; n < primaries; ++n) {
    if (!asked[n]) continue;
    try {
      asked[n]->begin(timeout);
      ++sent;
    } catch (const std::bad_alloc&) {
      // A primary that could not be asked is one missing vote. The others may still be a majority.
      votes_.outcomes[n] = outcome{.error = errc::unreachable, .reply = {}, .detail = "no memory"};
    }
  }
  // No answer will come, so the caller gets the exception instead of an outcome.
  if (sent > 0) return;
  notified_ = true;
  throw std::bad_alloc();
}

outcome quorum_call::without_vote(std::size_t index) const {
  auto why = voters_.why_no_vote(index);
  return {.error = why.code, .reply = {}, .detail = std::move(why.detail)};
}

quorum_call::withdrawn quorum_call::withdraw() {
  HOLDFAST_ASSERT(!notified_);
  // A copy on the wire may still be executed. Then the answer comes as before, and says where a lock must be given
  // back.
  const bool under_way = stop_writing(every_copy) > 0;
  if (!under_way) {
    grace_.stop();
    notified_ = true;
  }
  return {vote_count(votes_, command_.count()).may_have_run_at(), under_way};
}

std::optional<redis::failure> quorum_call::silence() {
  const vote_count count(votes_, command_.count());
  // A primary that is slow with this command, but answers others, is not silent: the lock is only contended.
  auto heard = votes_.outcomes.size() - count.silent();
  for (std::size_t n = 0; n < copies_.size(); ++n) {
    const auto open = copies_[n].lock();
    if (open && !votes_.outcomes[n] && !open->silence(began_)) ++heard;
  }
  return heard >= count.needed() ? std::nullopt : std::optional(why(count));
}

template <class Predicate>
std::size_t quorum_call::stop_writing(Predicate matches) {
  std::size_t left = 0;
  for (std::size_t n = 0; n < copies_.size(); ++n) {
    const auto open = copies_[n].lock();
    if (!open || votes_.outcomes[n]) continue;
    // Only a copy that was not written can be withdrawn. It never runs, so its primary is known not to hold the lock.
    if (matches(n) && open->withdraw())
      votes_.outcomes[n] = not_asked();
    else
      ++left;
  }
  return left;
}

void quorum_call::answered(std::size_t index, const outcome& result) {
  // The first outcome of a primary counts: the sender may have used it already.
  if (votes_.outcomes[index]) return;
  try {
    note(index, result);
  } catch (const std::bad_alloc&) {  // its vote is lost, and the others still decide
    if (!votes_.outcomes[index]) votes_.outcomes[index] = outcome{.error = errc::unconfirmed, .reply = {}};
  }
  notified_ ? tell_late(index, result) : tell_if_decided();
}

void quorum_call::note(std::size_t index, const outcome& outcome) {
  votes_.outcomes[index] = outcome;
  const auto since = time_.now() - began_;
  // Only a primary that got the command shows its speed, so other errors than `unconfirmed` are left out. Zero stands
  // for silence.
  if (!outcome.error || outcome.error == errc::unconfirmed) voters_.took(index, outcome.error ? nanoseconds() : since);
  if (outcome.error) return;
  voters_.answered(index, command_, outcome.reply);
  // A late refusal counts for the voter as well: its marker is looked at before the next attempt.
  const bool no_vote = command_.acquires() && says_no_vote(outcome.reply);
  if (no_vote) voters_.has_no_vote(index);
  if (notified_) return;
  votes_.slowest = std::max(votes_.slowest, since);
  // The reply says only that there is no vote. The sender should read why.
  if (no_vote) votes_.outcomes[index] = without_vote(index);
}

void quorum_call::tell_late(std::size_t index, const outcome& outcome) {
  // An error reply proves that the script has not run. A lost connection proves nothing.
  const bool never = outcome.error ? outcome.error != errc::unconfirmed : outcome.reply.is_error();
  sender_->on_late_vote(index, {field_, outcome.error ? vote::none : command_.count()(outcome.reply), never, began_});
}

void quorum_call::tell_if_decided() {
  const vote_count count(votes_, command_.count());
  // A grant is answered at once, because the caller wants it and renewals find late shares. A question waits for more
  // answers.
  if (count.complete() || (count.carried() && !command_.asks_all())) return tell();
  const auto limit = silence_limit(count);
  if (!limit) return;
  const auto until = began_ + *limit;
  // An answer may shorten the wait, never extend it: else slow primaries could delay the caller one after the other.
  if (!grace_.due() || until < *grace_.due()) grace_.start(until, [this] { tell(); });
}

// Once the result is decided, the other answers are waited for as long again as the majority took. They tell where a
// partial grant must be given back, and a question is answered best by all primaries. If the missing votes would
// decide, the call waits for them until its timeout: also if a majority names different holders. A primary in an outage
// is skipped, because it cannot answer. The exception is a lock that another caller has in part: our own partial grants
// block that caller. Then each primary gets twice its last response time, and the time of one hiccup: else a primary
// that is late once would refuse a lock that a majority has free. A primary that was silent last time is skipped once a
// majority has answered.
std::optional<nanoseconds> quorum_call::silence_limit(const vote_count& count) const {
  const auto least = std::max<nanoseconds>(2 * (time_.now() - began_), milliseconds(1));
  if (count.decided() && command_.settled_by(votes_)) return least;
  // Partial effects of other commands block nobody, so their votes are waited for. A change is completed even where a
  // primary is in an outage; a question is not.
  if (!command_.acquires() && !command_.asks_all()) return std::nullopt;
  auto longest = least;
  for (std::size_t n = 0; n < votes_.outcomes.size(); ++n) {
    if (votes_.outcomes[n] || to_.primary(n).in_outage(command_.key())) continue;
    if (!command_.acquires()) return std::nullopt;
    const auto last = voters_.last_took(n);
    const bool silent_before = last && *last == nanoseconds::zero();
    // The last response time predicts nothing while a connection is being checked, or made again after it was idle.
    const bool predictable = last && (silent_before ? count.answered() : to_.primary(n).answering(command_.key()));
    if (!count.disputed() || !predictable) return std::nullopt;
    if (!silent_before) longest = std::max(longest, 2 * *last + hiccup);
  }
  return longest;
}

void quorum_call::tell() {
  // The sender may drop the call inside answered_by_all().
  const auto keep = shared_from_this();
  grace_.stop();
  notified_ = true;
  // A copy that was not written yet is of no use once the result is known. A grant is the exception: it wants all its
  // shares, so a copy still goes out unless its primary is in an outage.
  if (!command_.acquires() || !vote_count(votes_, command_.count()).carried())
    stop_writing(every_copy);
  else
    stop_writing([this](std::size_t index) { return to_.primary(index).in_outage(command_.key()); });
  const vote_count count(votes_, command_.count());
  outcome result{.error = {}, .reply = {}, .sent = began_, .of_each = &votes_};
  result.yes = count.in_favour();
  result.may_have_run = count.may_have_run_at();
  const auto& each = votes_.outcomes;
  const auto tracked = std::count_if(each.begin(), each.end(), [](const auto& one) { return one && one->tracked; });
  result.tracked = static_cast<std::size_t>(tracked) >= count.needed();
  try {
    if (auto why = failure_by(count)) fail(result, *std::move(why));
  } catch (const std::bad_alloc&) {  // only the text is missing: the sender is answered nevertheless
    result.error = errc::quorum_failed;
  }
  // The topology waits this long for a majority of release messages. An attempt without a majority measures only
  // silence.
  if (command_.acquires() && count.answered()) to_.note_vote_time(votes_.slowest);
  sender_->answered_by_all(result);
}

std::optional<redis::failure> quorum_call::failure_by(const vote_count& count) {
  // Two addresses of one server would vote twice, so no majority counts until the configuration is corrected.
  if (command_.acquires())
    if (const auto& misconfiguration = voters_.misconfiguration(); !misconfiguration.empty())
      return redis::failure{errc::invalid_config, misconfiguration};
  if (count.carried() || count.rejected() || (command_.acquires() && count.answered())) return std::nullopt;
  return why(count);
}

redis::failure quorum_call::why(const vote_count& count) {
  // Only failures need the addresses, so a granted lock does not pay for these texts.
  for (auto n = votes_.where.size(); n < votes_.outcomes.size(); ++n)
    votes_.where.push_back(to_.primary(n).where(command_.key()));
  return count.why();
}

}  // namespace holdfast::detail
