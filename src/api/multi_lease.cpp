// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include <holdfast/multi_lock.hpp>

#include "api/arguments.hpp"
#include "api/on_strand.hpp"

namespace holdfast {
namespace {

using detail::caller;
using detail::engine;
using detail::failure;
using detail::home_of;
using record_ptr = std::shared_ptr<detail::lease_record>;
using records = std::vector<record_ptr>;

/// The urgency of a failure for the caller; the smallest rank is reported.
int rank_of(const std::optional<failure>& failed) {
  if (!failed) return 5;
  const auto& error = failed->code;
  if (error == errc::lost) return 0;
  if (error == errc::closed) return 1;
  if (error == errc::unconfirmed) return 3;
  return error == errc::not_held ? 4 : 2;
}

/// A verb on each of several leases, at work on the strands of their clients; the last answer answers the caller.
class joint_verb : public std::enable_shared_from_this<joint_verb> {
 public:
  joint_verb(records of, std::shared_ptr<caller<void>> to)
      : of_(std::move(of)), to_(std::move(to)), failures_(of_.size()), left_(of_.size()) {}

  /// On the strand of the first one's client. `verb(engine&, record, done_handler)`.
  template <class Verb>
  void begin(engine& locks, Verb verb) {
    const auto self = shared_from_this();
    for (std::size_t i = 0; i < of_.size(); ++i) {
      if (at_home(i)) {
        verb(locks, of_[i], hears(i));
        continue;
      }
      auto there = [self, i, verb](auto& otherwise) {
        auto* const engine = home_of(*self->of_[i])->locks();
        if (!engine) return otherwise();
        verb(*engine, self->of_[i], self->hears(i));
      };
      auto closed = [self, i] { self->hear(i, failure{errc::closed, {}}); };
      home_of(*of_[i])->enter_later(detail::strand_task(std::move(there), std::move(closed)));
    }
  }

 private:
  bool at_home(std::size_t i) const { return of_[i]->home == of_.front()->home; }
  detail::done_handler hears(std::size_t i) {
    return [self = shared_from_this(), i](const std::optional<failure>& failed) { self->hear(i, failed); };
  }

  // On any of the strands: each writes its own outcome.
  void hear(std::size_t i, const std::optional<failure>& failed) {
    failures_[i] = failed;
    if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    const bool alone =
        std::all_of(of_.begin(), of_.end(), [&](const auto& record) { return record->home == of_.front()->home; });
    if (alone) return answer();
    const auto self = shared_from_this();
    auto home = [self](auto&) { self->answer(); };
    auto gone = [self] { self->answer(); };
    home_of(*of_.front())->enter_later(detail::strand_task(std::move(home), std::move(gone)));
  }

  void answer() {
    const auto worst = std::min_element(failures_.begin(), failures_.end(), [](const auto& left, const auto& right) {
      return rank_of(left) < rank_of(right);
    });
    to_->concerns(of_[static_cast<std::size_t>(worst - failures_.begin())]->of->keys());
    to_->answer(*worst);
  }

  const records of_;
  const std::shared_ptr<caller<void>> to_;
  std::vector<std::optional<failure>> failures_;  // empty: it succeeded
  std::atomic<std::size_t> left_;
};

template <class Verb>
asio::awaitable<void> each(records of, Verb verb) {
  const auto home = home_of(*of.front());
  auto begin = [of = std::move(of), verb](engine& locks, const std::shared_ptr<caller<void>>& to, const auto&) {
    std::make_shared<joint_verb>(of, to)->begin(locks, verb);
  };
  return detail::on_strand<void>(home, std::move(begin));
}

/// A caller of lost() that waits for the first loss of several leases. Each lease is touched on the strand of its
/// client, everything else on the strand of the first lease's client.
class loss_watch final : public detail::cancellable, public std::enable_shared_from_this<loss_watch> {
 public:
  loss_watch(records of, std::shared_ptr<caller<error_code>> to)
      : of_(std::move(of)), to_(std::move(to)), watches_(of_.size()) {}

  void begin() {
    for (std::size_t i = 0; i < of_.size(); ++i) {
      auto listen = [self = shared_from_this(), i](auto& otherwise) {
        auto* const locks = home_of(*self->of_[i])->locks();
        if (!locks) return otherwise();
        if (self->watches_[i].over) return;
        self->watches_[i].registered =
            locks->when_ended(self->of_[i], [id = self->weak_from_this(), i](error_code why) {
              if (const auto still = id.lock()) still->heard(i, why);
            });
      };
      auto closed = [self = shared_from_this(), i] { self->heard(i, errc::closed); };
      home_of(*of_[i])->enter_later(detail::strand_task(std::move(listen), std::move(closed)));
    }
  }
  void cancel() override { end(failure{boost::asio::error::operation_aborted, {}}); }

 private:
  struct watch {
    detail::cancellable_ptr registered;
    bool over = false;
  };

  // On the strand of that lease's client.
  void heard(std::size_t index, error_code why) {
    if (why == boost::asio::error::operation_aborted) return;
    const bool released = why == errc::not_held;
    const auto self = shared_from_this();
    const auto tell = [self, index, why, released] {
      if (!released) return self->end({}, why);
      self->end(failure{why, detail::about(self->of_[index]->of->keys()->name, "released, not lost")});
    };
    auto home = [tell](auto&) { tell(); };
    home_of(*of_.front())->enter_later(detail::strand_task(std::move(home), tell));
  }

  void end(const std::optional<failure>& failed, error_code why = {}) {
    if (std::exchange(ended_, true)) return;
    for (std::size_t i = 0; i < of_.size(); ++i)
      home_of(*of_[i])->enter_later([self = shared_from_this(), i] {
        self->watches_[i].over = true;
        if (const auto still = std::exchange(self->watches_[i].registered, nullptr)) still->cancel();
      });
    to_->answer(failed, why);
  }

  const records of_;
  const std::shared_ptr<caller<error_code>> to_;
  std::vector<watch> watches_;
  bool ended_ = false;
};

/// The answer of lost(), also when there is no client left to give it.
asio::awaitable<error_code> or_closed(records of, asio::awaitable<error_code> answer) {
  try {
    co_return co_await std::move(answer);
  } catch (const error& failure) {
    if (failure.code() != errc::closed) throw;
  }
  for (const auto& record : of)
    if (record->released.load(std::memory_order_acquire))
      throw error(errc::not_held, detail::about(record->of->keys()->name, "released, not lost"));
  co_return errc::closed;
}

}  // namespace

asio::awaitable<void> multi_lease::unlock() {
  if (leases_.empty()) return detail::not_held<void>();
  return each(detail::access::records(*this), [](engine& locks, const record_ptr& record, detail::done_handler done) {
    locks.unlock(record, std::move(done));
  });
}

asio::awaitable<void> multi_lease::renew(milliseconds ttl) {
  return detail::access::renew(*this, ttl, detail::time_point::max());
}

asio::awaitable<void> detail::access::renew(const multi_lease& leases, milliseconds ttl, time_point answer_by) {
  if (leases.leases_.empty()) return not_held<void>();
  return each(records(leases), [ttl, answer_by](engine& locks, const record_ptr& record, done_handler done) {
    check_renew_ttl(locks.settings(), ttl);
    locks.renew(record, ttl, std::move(done), answer_by);
  });
}

asio::awaitable<error_code> multi_lease::lost() const {
  if (leases_.empty()) return detail::not_held<error_code>();
  const auto of = detail::access::records(*this);
  auto watch = [of = of](engine&, const std::shared_ptr<caller<error_code>>& to, const auto&) {
    const auto all = std::make_shared<loss_watch>(of, to);
    to->cancels(all);
    all->begin();
  };
  return or_closed(of, detail::on_strand<error_code>(home_of(*of.front()), std::move(watch)));
}

void multi_lease::feed() noexcept {
  for (auto& lease : leases_) lease.feed();
}

bool multi_lease::held() const noexcept {
  return !leases_.empty() &&
         std::all_of(leases_.begin(), leases_.end(), [](const lease& lease) { return lease.held(); });
}

milliseconds multi_lease::valid_for() const noexcept {
  if (leases_.empty()) return {};
  auto least = milliseconds::max();
  for (const auto& lease : leases_) least = std::min(least, lease.valid_for());
  return least;
}

lease_state multi_lease::state() const noexcept {
  if (leases_.empty()) return lease_state::empty;
  bool suspended = false, released = false;
  for (const auto& lease : leases_) {
    const auto state = lease.state();
    if (state == lease_state::lost) return state;
    suspended |= state == lease_state::suspended;
    released |= state == lease_state::released;
  }
  if (released) return lease_state::released;
  return suspended ? lease_state::suspended : lease_state::held;
}

owner multi_lease::owner() const noexcept { return leases_.empty() ? holdfast::owner{} : leases_.front().owner(); }

}  // namespace holdfast
