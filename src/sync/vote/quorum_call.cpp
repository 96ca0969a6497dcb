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

constexpr auto all_of_them = [](std::size_t) { return true; };

outcome not_asked() { return {.error = errc::unreachable, .reply = {}, .detail = "it was not asked any more"}; }

void fail(outcome& outcome, redis::failure why) {
  outcome.error = why.code;
  outcome.detail = std::move(why.detail);
}

}  // namespace

class quorum_call::copy final : public script_command {
 public:
  copy(std::shared_ptr<quorum_call> in, std::size_t index) : in_(std::move(in)), size_(index) {}

  // By its text to a server that may not know it: what is sent a second time comes after what was sent since, and the
  // release of the lock may be among that.
  void begin(nanoseconds timeout) {
    // An obligation, so that it stays before its release, also where both wait for a connection.
    const delivery delivery{.timeout = timeout, .rank = urgency::obligation};
    const bool by_text = !in_->voters_.knows(size_, in_->command_);
    timeout_ = timeout;
    send(in_->to_.primary(size_), in_->command_, delivery, by_text);
  }

 private:
  // One that was written late takes the lock for what is left of the time, so that all end together.
  void append(const call& command, std::string& out, bool by_text) const override {
    if (!command.acquires()) return command.append_to(out, by_text);
    const auto later = std::chrono::ceil<milliseconds>(in_->time_.now() - in_->began_);
    const auto marker = in_->voters_.marker(size_);
    command.copy_for(later, marker.empty() ? nullptr : &marker).append_to(out, by_text);
  }
  // The release of the lock may be among what was sent since the others have decided.
  bool may_repeat() const override { return !in_->notified_; }
  void on_answer(const outcome& outcome) override { in_->answered(size_, outcome); }
  std::optional<nanoseconds> time_left_for_copies() const override { return in_->began_ + timeout_ - in_->time_.now(); }

  const std::shared_ptr<quorum_call> in_;
  const std::size_t size_;
  nanoseconds timeout_{};
};

quorum_call::quorum_call(const environment& env, voting& voters, const call& command,
                         std::shared_ptr<script_command> sender)
    : to_(env.servers), time_(env.time), voters_(voters), field_(command.field()), command_(command.of_field(field_)),
      sender_(std::move(sender)), grace_(env.alarms) {
  HOLDFAST_ASSERT(command_.count());
}

void quorum_call::begin(nanoseconds timeout) {
  const auto all = to_.primaries();
  votes_.outcomes.resize(all);
  std::vector<bool> may_vote(all, true);
  if (command_.acquires())
    for (std::size_t n = 0; n < all; ++n) may_vote[n] = voters_.may_vote(n);
  // Where none has a vote each says so itself, and the sender hears that from them.
  const bool none = std::find(may_vote.begin(), may_vote.end(), true) == may_vote.end();
  std::vector<std::shared_ptr<copy>> asked(all);
  for (std::size_t n = 0; n < all; ++n) {
    if (none || may_vote[n])
      asked[n] = std::make_shared<copy>(shared_from_this(), n);
    else
      votes_.outcomes[n] = without_vote(n);
  }
  copies_.assign(asked.begin(), asked.end());
  began_ = time_.now();
  std::size_t sent = 0;
  for (std::size_t n = 0; n < all; ++n) {
    if (!asked[n]) continue;
    try {
      asked[n]->begin(timeout);
      ++sent;
    } catch (const std::bad_alloc&) {
      votes_.outcomes[n] = outcome{.error = errc::unreachable, .reply = {}, .detail = "no memory"};
    }
  }
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
  const bool under_way = stop_writing(all_of_them) > 0;
  if (!under_way) {
    grace_.stop();
    notified_ = true;
  }
  return {vote_count(votes_, command_.count()).where_it_may_have_run(), under_way};
}

std::optional<redis::failure> quorum_call::silence() {
  const vote_count count(votes_, command_.count());
  auto heard = votes_.outcomes.size() - count.silent();
  for (std::size_t n = 0; n < copies_.size(); ++n) {
    const auto open = copies_[n].lock();
    if (open && !votes_.outcomes[n] && !open->silence(began_)) ++heard;
  }
  return heard >= count.needed() ? std::nullopt : std::optional(why(count));
}

template <class Which>
std::size_t quorum_call::stop_writing(Which matches) {
  std::size_t left = 0;
  for (std::size_t n = 0; n < copies_.size(); ++n) {
    const auto open = copies_[n].lock();
    if (!open || votes_.outcomes[n]) continue;
    if (matches(n) && open->withdraw())
      votes_.outcomes[n] = not_asked();
    else
      ++left;
  }
  return left;
}

void quorum_call::answered(std::size_t index, const outcome& result) {
  if (votes_.outcomes[index]) return;
  try {
    note(index, result);
  } catch (const std::bad_alloc&) {  // its ballot is lost, and the others still decide
    if (!votes_.outcomes[index]) votes_.outcomes[index] = outcome{.error = errc::unconfirmed, .reply = {}};
  }
  notified_ ? tell_late(index, result) : tell_if_decided();
}

void quorum_call::note(std::size_t index, const outcome& outcome) {
  votes_.outcomes[index] = outcome;
  const auto since = time_.now() - began_;
  if (!outcome.error || outcome.error == errc::unconfirmed) voters_.took(index, outcome.error ? nanoseconds() : since);
  if (outcome.error) return;
  voters_.answered(index, command_, outcome.reply);
  const bool no_vote = command_.acquires() && says_no_vote(outcome.reply);
  if (no_vote) voters_.has_no_vote(index);
  if (notified_) return;
  votes_.slowest = std::max(votes_.slowest, since);
  if (no_vote) votes_.outcomes[index] = without_vote(index);
}

void quorum_call::tell_late(std::size_t index, const outcome& outcome) {
  const bool never = outcome.error ? outcome.error != errc::unconfirmed : outcome.reply.is_error();
  sender_->on_late_vote(index, {field_, outcome.error ? vote::none : command_.count()(outcome.reply), never, began_});
}

void quorum_call::tell_if_decided() {
  const vote_count count(votes_, command_.count());
  if (count.complete() || (count.carried() && !command_.asks_all())) return tell();
  const auto all = silence_limit(count);
  if (!all) return;
  const auto until = began_ + *all;
  if (!grace_.due() || until < *grace_.due()) grace_.start(until, [this] { tell(); });
}

// What is not granted is given back where it may have been granted all the same, and a question is answered best by
// all: so where nothing can change any more, the others are waited for as long again as the majority took. Nothing is
// to be expected of a lost connection. Where others have the lock in part, what was granted meanwhile is in their way:
// then each is waited for as long as it may take by what it took before, and one that was silent before not at all
// where a majority has answered.
std::optional<nanoseconds> quorum_call::silence_limit(const vote_count& count) const {
  const auto least = std::max<nanoseconds>(2 * (time_.now() - began_), milliseconds(1));
  if (count.decided()) return least;
  if (!command_.acquires()) return std::nullopt;
  auto longest = least;
  for (std::size_t n = 0; n < votes_.outcomes.size(); ++n) {
    if (votes_.outcomes[n] || to_.primary(n).in_outage(command_.key())) continue;
    const auto last = voters_.last_took(n);
    const bool silent_before = last && *last == nanoseconds::zero();
    // A connection that is being checked, or made again after it was idle, takes longer than its last answer.
    const bool predictable = last && (silent_before ? count.answered() : to_.primary(n).answering(command_.key()));
    if (!count.disputed() || !predictable) return std::nullopt;
    longest = std::max(longest, 2 * *last);
  }
  return longest;
}

void quorum_call::tell() {
  const auto keep = shared_from_this();
  grace_.stop();
  notified_ = true;
  if (!command_.acquires() || !vote_count(votes_, command_.count()).carried())
    stop_writing(all_of_them);
  else  // where the first connection is still being made, it is asked yet
    stop_writing([this](std::size_t index) { return to_.primary(index).in_outage(command_.key()); });
  const vote_count count(votes_, command_.count());
  outcome all{.error = {}, .reply = {}, .sent = began_, .of_each = &votes_};
  all.yes = count.who_said_yes();
  all.may_have_run = count.where_it_may_have_run();
  try {
    if (auto why = failure_by(count)) fail(all, *std::move(why));
  } catch (const std::bad_alloc&) {  // for the text: the sender hears all the same
    all.error = errc::quorum_failed;
  }
  if (command_.acquires() && count.answered()) to_.note_round(votes_.slowest);
  sender_->answered_by_all(all);
}

std::optional<redis::failure> quorum_call::failure_by(const vote_count& count) {
  if (command_.acquires())
    if (const auto& misconfiguration = voters_.misconfiguration(); !misconfiguration.empty())
      return redis::failure{errc::invalid_config, misconfiguration};
  if (count.carried() || count.rejected() || (command_.acquires() && count.answered())) return std::nullopt;
  return why(count);
}

redis::failure quorum_call::why(const vote_count& count) {
  for (auto n = votes_.where.size(); n < votes_.outcomes.size(); ++n)
    votes_.where.push_back(to_.primary(n).where(command_.key()));
  return count.why();
}

}  // namespace holdfast::detail
