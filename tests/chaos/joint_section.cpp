// SPDX-License-Identifier: BSL-1.0
#include "chaos/joint_section.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "chaos/asking.hpp"
#include "chaos/loss_bell.hpp"
#include "chaos/pause.hpp"

namespace holdfast::chaos {
namespace {

using clock = asio::steady_timer::clock_type;

void tell_loss(history& log, std::uint64_t whole, const error_code& why) {
  log.write("lost_whole").add("whole", whole).add("error", why.message());
}

class joint_section {
 public:
  joint_section(workplace& place, testimony& told, dice& d, const section& s, std::vector<mutex> which,
                const asio::any_io_executor& on)
      : place_(place), told_(told), dice_(d), s_(s), which_(std::move(which)), bell_(std::make_shared<loss_bell>(on)) {}

  asio::awaitable<void> run() {
    for (const auto& lock : s_.locks) {
      operations_.push_back(place_.next_operation());
      told_.asked(operations_.back(), lock.text, lock.by, s_, operations_.front());
    }
    return s_.as_body ? work_inside() : work_under();
  }

 private:
  asio::awaitable<void> work_under() {
    auto cancelling = [this] {
      for (const auto operation : operations_) place_.log.write("cancel").add("op", operation);
    };
    auto got = co_await ask(multi_lock(which_), s_, cancelling);
    if (!got || !*got) co_return not_granted(got ? error_code() : got.error());
    auto all = std::move(**got);
    begin(all);
    if (dice_.per_mille(witnessed)) co_await check_keys(all);
    co_await linger(all);
    use_resource(all);
    co_await release(std::move(all));
  }

  // The first of the holds that is lost cancels the body.
  asio::awaitable<void> work_inside() {
    bool begun = false;
    auto body = [this, &begun](multi_lease& all) {
      begun = true;
      return work_as_body(all);
    };
    const auto done = co_await as_result(with_lock(multi_lock(which_), body, terms_of(s_)));
    if (!begun) co_return not_granted(done.error());
    for (const auto operation : operations_) told_.released(operation, 0, done);
  }

  asio::awaitable<void> work_as_body(multi_lease& all) {
    begin(all);
    const auto end = clock::now() + s_.hold;
    try {
      while (end > clock::now()) {
        co_await pause(look_every);
        look(all);
      }
      use_resource(all);
    } catch (const boost::system::system_error& stopped) {
      tell_loss(place_.log, operations_.front(), stopped.code());
      releasing();
      throw;
    }
    releasing();
  }

  void not_granted(const error_code& why) {
    for (const auto operation : operations_) told_.not_granted(operation, why);
  }

  void begin(const multi_lease& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      told_.granted(operations_[i], all[i]);
      if (s_.counts) counters_.push_back(place_.resource.read_counter(all[i].name()));
    }
    for (std::size_t i = 0; i < all.size(); ++i) told_.watch(operations_[i], all[i], [] {});
    if (!s_.as_body) watch(all);
  }

  // It may outlive the section.
  void watch(const multi_lease& all) {
    auto listen = [](workplace& place, std::uint64_t whole, std::shared_ptr<loss_bell> bell,
                     asio::awaitable<error_code> loss) -> asio::awaitable<void> {
      const auto why = co_await as_result(std::move(loss));
      if (!why) co_return;
      tell_loss(place.log, whole, *why);
      bell->ring();
    };
    asio::co_spawn(bell_->get_executor(), listen(place_, operations_.front(), bell_, all.lost()), asio::detached);
  }

  // At each of the holds first: the whole is not held when one of them is not.
  bool look(const multi_lease& all) {
    for (std::size_t i = 0; i < all.size(); ++i) told_.look(operations_[i], all[i]);
    const auto seen = now();
    const auto valid = all.valid_for();
    const bool held = all.held();
    auto line = place_.log.write("look_whole");
    line.add("whole", operations_.front()).add("seen", seen).add("valid", valid.count()).add("held", held);
    return held;
  }

  asio::awaitable<void> check_keys(const multi_lease& all) {
    for (std::size_t i = 0; i < all.size(); ++i) co_await told_.check_key(operations_[i], all[i], s_.locks[i].by);
  }

  asio::awaitable<void> linger(multi_lease& all) {
    const auto end = clock::now() + s_.hold;
    bool held = true, to_renew = s_.renew_by_hand;
    while (held && end - clock::now() > look_every) {
      co_await pause(look_every);
      held = look(all);
      if (held && dice_.per_mille(witnessed)) co_await check_keys(all);
      if (!std::exchange(to_renew, false)) continue;
      co_await renew(all);
    }
    if (held) co_await pause(std::chrono::duration_cast<microseconds>(end - clock::now()));
    if (!look(all)) co_await bell_->wait();
  }

  asio::awaitable<void> renew(multi_lease& all) {
    for (const auto operation : operations_) told_.renewing(operation);
    const auto done = co_await as_result(all.renew());
    for (const auto operation : operations_) told_.renewed(operation, done);
  }

  void use_resource(const multi_lease& all) {
    for (std::size_t i = 0; i < all.size(); ++i)
      told_.use_resource(operations_[i], all[i], s_.locks[i].by,
                         s_.counts ? std::optional(counters_[i]) : std::nullopt);
  }

  void releasing() {
    for (const auto operation : operations_) told_.releasing(operation, 0);
  }

  asio::awaitable<void> release(multi_lease all) {
    if (s_.end == section::ending::drop) {
      for (const auto operation : operations_) place_.log.write("drop").add("hold", operation);
      co_return;
    }
    releasing();
    const auto done = co_await as_result(all.unlock());
    for (const auto operation : operations_) told_.released(operation, 0, done);
    if (done && s_.own)
      for (std::size_t i = 0; i < all.size(); ++i) co_await told_.check_gone(operations_[i], all[i].name());
    if (s_.end != section::ending::unlock_twice) co_return;
    const auto again = co_await as_result(all.unlock());
    for (const auto operation : operations_) told_.unlocked_again(operation, again);
  }

  workplace& place_;
  testimony& told_;
  dice& dice_;
  const section& s_;
  const std::vector<mutex> which_;
  const std::shared_ptr<loss_bell> bell_;
  std::vector<std::uint64_t> operations_;
  std::vector<long long> counters_;
};

}  // namespace

asio::awaitable<void> do_joint_section(workplace& place, client& redis, testimony& told, dice& d, const owner& self,
                                       const section& s) {
  joint_section it(place, told, d, s, mutexes_of(redis, s.locks, self), co_await asio::this_coro::executor);
  co_await it.run();
}

}  // namespace holdfast::chaos
