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
#include "sync/command/send_once.hpp"

namespace holdfast::detail {
namespace {

constexpr std::size_t longest_marker = 128;
/// What somebody must mend is looked at again after this.
constexpr nanoseconds misconfiguration_lasts = std::chrono::seconds(1);
/// What no marker is.
constexpr auto* not_told_apart = "its number comes first";

/// What a marker was and becomes: the command may be written when both have changed.
struct change {
  std::string was, becomes;
};

constexpr auto emptied_or_new = "it was restarted or emptied, or is new (red_lock::initialise)";

std::string seconds(nanoseconds d) { return std::to_string(std::chrono::ceil<std::chrono::seconds>(d).count()) + " s"; }

}  // namespace

voting::voting(environment& around, const std::string& client_id)
    : around_(around), probe_key_(std::string(vote_marker) + ":probe:" + client_id), each_(around.servers.primaries()) {
  for (std::size_t n = 0; n < each_.size(); ++n) numbers_.push_back(std::to_string(n));
}

bool voting::may_vote(std::size_t n) {
  auto& p = each_[n];
  const bool over = around_.now() >= p.until;
  if ((p.now == stage::disagreeing || p.now == stage::refusing) && over) p.now = stage::votes;
  if (p.now == stage::waiting && over) end_wait(n);
  begin_waits();
  return p.now == stage::votes;
}

redis::failure voting::why_no_vote(std::size_t n) const {
  const auto& p = each_[n];
  const auto because = [&](errc code, const std::string& why) { return redis::failure{code, where(n) + ": " + why}; };
  switch (p.now) {
    case stage::votes: return because(errc::unreachable, "it had no vote when it was asked");
    case stage::asking:
      return because(errc::unreachable,
                     std::string("it has no vote yet, and is being asked about it: perhaps ") + emptied_or_new);
    case stage::to_wait:
      return because(errc::unreachable, "it has no vote, and too few others agree about the longest TTL so far");
    case stage::disagreeing:
      return because(errc::invalid_config, "clients disagree about the longest TTL: its marker is " +
                                               in_quotes(p.seen, longest_marker) + ", and this client's longest_ttl " +
                                               std::to_string(around_.settings.longest_ttl.count()));
    case stage::refusing: return because(p.refused.code, "it was to be given a vote: " + p.refused.detail);
    case stage::waiting: break;
  }
  return because(errc::unreachable,
                 "it has no vote for another " + seconds(p.until - around_.now()) + ", because " + emptied_or_new);
}

std::string voting::marker(std::size_t n) const {
  if (run(n).empty() && !each_[n].told_apart) return not_told_apart;
  return around_.settings.delayed_restart ? marker_value(n) : std::string();
}

std::string voting::marker_value(std::size_t n) const {
  const auto& p = each_[n];
  return p.adopted.empty() ? vote_text(run(n), around_.settings.longest_ttl) : p.adopted;
}

void voting::has_no_vote(std::size_t n) {
  if (each_[n].now != stage::votes) return;
  if (run(n).empty() && !each_[n].told_apart) return tell_apart(n);
  if (around_.settings.delayed_restart) look(n);
}

bool voting::knows(std::size_t n, const call& script) const { return each_[n].known.contains(script.step()); }

void voting::answered(std::size_t n, const call& script, const redis::reply& said) {
  auto& p = each_[n];
  if (is_unknown_script(said)) return static_cast<void>(p.known.erase(script.step()));
  if (!said.is_error()) p.known.insert(script.step());
  if (!script.acquires()) return;
  p.heard = true;
  if (!said.is_error()) p.thinks = opinion::agrees;
}

void voting::look_for_misconfiguration() {
  misconfiguration_.clear();
  const auto are_one = [this](std::size_t a, std::size_t b, const char* known_by) {
    misconfiguration_ = where(a) + " and " + where(b) + " are one server: " + known_by;
  };
  for (std::size_t a = 0; a < each_.size(); ++a) {
    if (each_[a].duplicate_server) return are_one(*each_[a].duplicate_server, a, "what one was told, the other knows");
    for (std::size_t b = a + 1; b < each_.size(); ++b)
      if (each_[a].up && each_[b].up && !run(a).empty() && run(a) == run(b))
        return are_one(a, b, "they have the same run_id");
  }
}

void voting::link_changed(std::size_t n, bool up) {
  auto& p = each_[n];
  const auto ended = p.connections + (up ? 0 : 1);
  p = primary();
  p.up = up;
  p.connections = ended;
  look_for_misconfiguration();
  if (!up || !run(n).empty()) return;
  // The others forget their numbers after a minute: each is asked again.
  for (std::size_t other = 0; other < each_.size(); ++other)
    if (run(other).empty()) each_[other].told_apart = false;
  if (around_.settings.delayed_restart && !std::exchange(degraded_, true))
    around_.report({.what = event_kind::delayed_restart_degraded, .detail = where(n)});
}

// What an answer says of a connection that has ended counts for nothing.
void voting::ask(std::size_t n, const call& what, function<void(const outcome&)> then) {
  send_to_primary(around_, n, what, {.timeout = around_.settings.command_timeout, .rank = urgency::obligation},
                  [this, n, asked_on = each_[n].connections, then = std::move(then)](const outcome& o) {
                    if (each_[n].connections != asked_on) return;
                    HOLDFAST_ASSERT(each_[n].now == stage::asking);
                    each_[n].now = stage::votes;  // perhaps: if not, it says so again
                    then(o);
                    begin_waits();
                  });
  each_[n].now = stage::asking;
}

// What may mend itself is asked again with the next attempt.
void voting::refuses(std::size_t n, redis::failure why) {
  if (why.mends_itself()) return;
  auto& p = each_[n];
  p.now = stage::refusing;
  p.until = around_.now() + misconfiguration_lasts;
  p.refused = std::move(why);
}

void voting::look(std::size_t n) {
  ask(n, look_at_marker(), [this, n](const outcome& o) {
    auto said = read_look_at_marker(o);
    said.failed ? refuses(n, std::move(*said.failed)) : on_marker(n, std::move(said.value));
  });
}

void voting::on_marker(std::size_t n, std::string text) {
  auto& p = each_[n];
  p.seen = std::move(text);
  const auto its = marker_text::parse(p.seen);
  const auto longest = std::to_string(around_.settings.longest_ttl.count());
  const bool agrees = its && its->longest == longest;
  p.thinks = p.seen.empty() ? opinion::none : agrees ? opinion::agrees : opinion::disagrees;
  if (p.thinks == opinion::disagrees) {
    p.now = stage::disagreeing;
    p.until = around_.now() + misconfiguration_lasts;
    return;
  }
  const bool ours = its && (run(n).empty() || its->run == run(n));
  if (ours && run(n).empty()) p.adopted = std::string(its->run) + ' ' + longest;
  if (ours && !its->nonce.empty()) return wait(n, p.seen);
  if (!ours) p.now = stage::to_wait;
}

void voting::wait(std::size_t n, std::string marker) {
  auto& p = each_[n];
  p.seen = std::move(marker);
  p.until = around_.now() + around_.settings.longest_ttl;
  p.now = stage::waiting;
  const auto why = why_no_vote(n).detail;
  around_.report({.what = event_kind::vote_withheld, .detail = why});
}

void voting::begin_waits() {
  if (!majority_agrees()) return;
  for (std::size_t n = 0; n < each_.size(); ++n)
    if (each_[n].now == stage::to_wait) begin_wait(n);
}

void voting::begin_wait(std::size_t n) {
  const auto its =
      std::make_shared<const change>(change{each_[n].seen, marker_value(n) + ' ' + std::to_string(around_.random.next())});
  ask(n, change_marker(its->was, its->becomes), [this, n, its](const outcome& o) {
    auto said = read_change_marker(o);
    if (said.failed) return refuses(n, std::move(*said.failed));
    if (said.value) wait(n, its->becomes);
  });
}

void voting::end_wait(std::size_t n) {
  const auto its = std::make_shared<const change>(change{each_[n].seen, marker_value(n)});
  ask(n, change_marker(its->was, its->becomes), [this, n, its](const outcome& o) {
    auto said = read_change_marker(o);
    if (said.failed) refuses(n, std::move(*said.failed));
  });
}

void voting::tell_apart(std::size_t n) {
  ask(n, holdfast::detail::tell_apart(probe_key_, numbers_[n]), [this, n](const outcome& o) {
    auto said = read_tell_apart(o);
    if (said.failed) return refuses(n, std::move(*said.failed));
    const auto first = std::find(numbers_.begin(), numbers_.end(), said.value);
    const bool its_own = first == numbers_.end() || *first == numbers_[n];
    if (!its_own) each_[n].duplicate_server = static_cast<std::size_t>(first - numbers_.begin());
    each_[n].told_apart = its_own;
    look_for_misconfiguration();
  });
}

// Whoever disagrees has its say before those that were emptied, also where it is slower.
bool voting::majority_agrees() const {
  const auto to_be_heard = [](const primary& p) { return p.up && (!p.heard || p.now == stage::asking); };
  if (std::any_of(each_.begin(), each_.end(), to_be_heard)) return false;
  const auto count = [this](opinion which) {
    return static_cast<std::size_t>(
        std::count_if(each_.begin(), each_.end(), [which](const primary& p) { return p.thinks == which; }));
  };
  const auto agree = count(opinion::agrees), disagree = count(opinion::disagrees);
  if (disagree > 0 && disagree >= agree) return false;
  return agree + count(opinion::none) >= vote_count::majority(each_.size());
}

/// One call of initialise().
class voting::initialisation final : public std::enable_shared_from_this<initialisation> {
 public:
  initialisation(voting& of, done_handler done) : of_(of), done_(std::move(done)) {
    for (std::size_t n = 0; n < of_.each_.size(); ++n) votes_.emplace_back();
  }

  void look() {
    each([](std::size_t) { return look_at_marker(); },
         [](initialisation& self, std::size_t n, const outcome& o) {
           const auto there = self.read(n, o, read_look_at_marker);
           if (!there || there->empty()) return;
           const auto its = marker_text::parse(*there);
           const bool waits = its && !its->nonce.empty();
           self.fail(
               errc::invalid_config,
               self.of_.where(n) + ": it has a marker already" +
                   (waits ? ", because a client has asked for its vote: it votes when the longest TTL is over" : ""));
         },
         [](initialisation& self) { self.make(); });
  }

 private:
  template <class Make, class Heard, class Then>
  void each(Make make, Heard heard, Then then) {
    waits_for_ = of_.each_.size();
    for (std::size_t n = 0; n < of_.each_.size(); ++n)
      send_to_primary(of_.around_, n, make(n), {.timeout = of_.around_.settings.command_timeout},
                      [self = shared_from_this(), n, heard, then](const outcome& o) {
                        heard(*self, n, o);
                        if (--self->waits_for_ > 0) return;
                        if (self->failed_) return self->done_(self->failed_, self->why_);
                        then(*self);
                      });
  }

  void make() {
    if (auto misconfiguration = of_.misconfiguration(); !misconfiguration.empty())
      return done_(errc::invalid_config, std::move(misconfiguration));
    for (std::size_t n = 0; n < votes_.size(); ++n) votes_[n] = vote_text(of_.run(n), of_.around_.settings.longest_ttl);
    each([this](std::size_t n) { return make_marker(votes_[n]); },
         [](initialisation& self, std::size_t n, const outcome& o) {
           const auto made = self.read(n, o, read_make_marker);
           if (made && !*made) self.fail(errc::invalid_config, self.of_.where(n) + ": it has a marker already");
         },
         [](initialisation& self) { self.done_({}, {}); });
  }

  template <class T>
  std::optional<T> read(std::size_t n, const outcome& o, answer<T> (*how)(const outcome&)) {
    const auto said = how(o);
    if (!said.failed) return said.value;
    const bool silent = said.failed->code == errc::unreachable;
    const auto node = of_.where(n);
    const auto& why = said.failed->detail;
    fail(silent ? errc::quorum_failed : said.failed->code, why.starts_with(node) ? why : node + ": " + why);
    return std::nullopt;
  }
  void fail(errc code, std::string why) {
    if (failed_) return;
    failed_ = code;
    why_ = std::move(why);
  }

  voting& of_;
  const done_handler done_;
  std::vector<std::string> votes_;
  std::size_t waits_for_ = 0;
  error_code failed_;
  std::string why_;
};

void voting::initialise(done_handler done) { std::make_shared<initialisation>(*this, std::move(done))->look(); }

}  // namespace holdfast::detail
