// SPDX-License-Identifier: BSL-1.0
#include <holdfast/multi_lock.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "api/lock_call.hpp"
#include "api/lock_order.hpp"
#include "base/function.hpp"
#include "base/if_memory.hpp"
#include "protocol/kind.hpp"

namespace holdfast {
namespace detail {

/// The locks of a multi_lock, each once.
struct lock_plan {
  std::vector<wanted_lock> locks;
  std::optional<owner> locker;
};

}  // namespace detail

namespace {

using detail::access;
using detail::caller;
using detail::calling_coroutine;
using detail::engine;
using detail::lock_call;
using detail::lock_plan;
using detail::lock_request;
using detail::time_point;
using wanted = detail::wanted_lock;
using group = detail::lock_group;
using placed = detail::placed_lock;
using detail::place_of;
using detail::same_client;
using detail::same_lock;
using plan_ptr = std::shared_ptr<const lock_plan>;

/// Null if one was moved from.
plan_ptr plan_of(const std::vector<mutex>& mutexes) {
  if (mutexes.empty()) throw error(errc::invalid_name, "all of no locks");
  if (mutexes.size() > multi_lock::most)
    throw error(errc::invalid_name,
                "all of " + std::to_string(mutexes.size()) + " locks, more than " + std::to_string(multi_lock::most));
  if (std::any_of(mutexes.begin(), mutexes.end(), [](const mutex& mutex) { return !access::keys(mutex); }))
    return nullptr;
  lock_plan plan{{}, access::given_owner(mutexes.front())};
  std::vector<std::size_t> order;
  for (const auto& mutex : mutexes) {
    const auto& row = access::keys(mutex)->of;
    if (row.voted) throw error(errc::invalid_config, "multi_lock takes no " + std::string(row.name));
    if (access::given_owner(mutex) != plan.locker)
      throw error(errc::invalid_config, "all of locks of different owners");
    order.push_back(order.size());
  }
  const auto at = [&](std::size_t index) { return wanted{access::home(mutexes[index]), access::keys(mutexes[index])}; };
  std::sort(order.begin(), order.end(), [&](std::size_t first, std::size_t second) {
    const auto left = at(first), right = at(second);
    if (!same_client(left, right)) return left.home.owner_before(right.home);
    return std::tuple(place_of(left.keys), first) < std::tuple(place_of(right.keys), second);
  });
  const auto again = std::unique(order.begin(), order.end(), [&](std::size_t first, std::size_t second) {
    const auto left = at(first), right = at(second);
    return same_client(left, right) && same_lock(left, right);
  });
  order.erase(again, order.end());
  std::sort(order.begin(), order.end());
  for (const auto n : order) plan.locks.push_back(at(n));
  return std::make_shared<const lock_plan>(std::move(plan));
}

/// One call for all groups: the part that is the same for each of them.
struct joint_call {
  lock_call call;
  owner own;  // used if none was given or bound
  std::optional<time_point> deadline{};
  std::vector<detail::key_group> slots{};  // of each lock of the plan; empty: not known yet

  lock_request request(const engine& locks, const calling_coroutine& by) {
    auto request = call.request(locks, by);
    if (!request.bound) request.owner = own;
    if (!deadline) deadline = request.deadline;
    request.deadline = *deadline;
    return request;
  }
};
using joint_call_ptr = std::shared_ptr<joint_call>;

/// Learns the slots of all locks that belong to the client of `like`, whose engine is `locks`.
void learn_slots(const engine& locks, const lock_plan& plan, const wanted& like, joint_call& call) {
  call.slots.resize(plan.locks.size());
  for (std::size_t n = 0; n < plan.locks.size(); ++n)
    if (same_client(plan.locks[n], like)) call.slots[n] = locks.group_of(*plan.locks[n].keys);
}

/// The run of the server of this lock. A lock() waits through outages.
asio::awaitable<std::string> run_of(plan_ptr plan, wanted lock, joint_call_ptr call) {
  for (;;) {
    auto ask = [plan, lock, keys = lock.keys, call](engine& locks, const std::shared_ptr<caller<std::string>>& to,
                                                    const calling_coroutine& by) {
      detail::check_lock(locks, *keys);
      learn_slots(locks, *plan, lock, *call);
      const auto request = call->request(locks, by);
      to->concerns(keys);
      const auto budget = detail::command_budget(locks.settings(), request.asked.ttl);
      const auto bounded = request.wait == lock_request::wait_mode::until_deadline;
      locks.learn_run(keys, bounded ? request.deadline - locks.now() : budget,
                      [to](detail::answer<std::string>&& run) { to->answer(run.failed, std::move(run.value)); });
    };
    try {
      co_return co_await detail::on_strand<std::string>(lock.home.lock(), std::move(ask),
                                                        detail::refused_by(lock.home));
    } catch (const error& failure) {
      if (failure.code() != errc::unreachable || !call->call.forever()) throw;
    }
  }
}

asio::awaitable<std::vector<group>> in_order(plan_ptr plan, joint_call_ptr call) {
  const auto& locks = plan->locks;
  std::vector<placed> all;
  for (const auto& lock : locks) all.push_back({&lock, all.size(), {}});
  const bool one_client =
      std::all_of(locks.begin(), locks.end(), [&](const wanted& wanted) { return same_client(wanted, locks.front()); });
  if (!one_client) {
    for (auto& next : all) {
      const auto known = std::find_if(all.begin(), all.end(),
                                      [&](const placed& other) { return same_client(*other.lock, *next.lock); });
      if (known->lock != next.lock)
        next.run = known->run;
      else
        next.run = co_await run_of(plan, *next.lock, call);
    }
  }
  if (!call->slots.empty())
    for (auto& placed : all) placed.slot = call->slots[placed.place];
  co_return detail::groups_of(std::move(all));
}

struct group_answer {
  /// moved: its server is another run than before. apart: its locks turned out to be in several slots.
  enum class kind { busy, had, moved, apart } type = kind::busy;
  std::vector<lease> leases{};
};

using groups_ptr = std::shared_ptr<const std::vector<group>>;
using group_caller = std::shared_ptr<caller<group_answer>>;

/// A group that is being taken.
struct group_call {
  detail::cancellable_ptr place{};           // null: it was answered at once
  detail::function<void()> order_changed{};  // answers it as moved, unless it was answered before
};

/// One script takes all of them.
group_call take_together(engine& locks, const group& group, const lock_request& request, const group_caller& to) {
  std::vector<lease> room;  // there may be no memory once the locks are held
  room.reserve(group.keys.size());
  auto answered = [to, room = std::move(room)](detail::multi_answer answer) mutable {
    using kind = group_answer::kind;
    if (answer.failed) return to->answer(answer.failed);
    auto& [records, moved] = answer.value;
    group_answer reply{moved ? kind::moved : records.empty() ? kind::busy : kind::had, std::move(room)};
    for (auto& record : records) reply.leases.push_back(access::make_lease(std::move(record)));
    to->answer({}, std::move(reply));
  };
  const auto place = locks.lock_all(group.keys, group.run, request, std::move(answered));
  return {place, [place = std::weak_ptr(place)] {
            if (const auto still = place.lock()) still->order_changed();
          }};
}

/// The only one of its group is taken as by its own lock(), which also reports a change of the order as cancelled.
group_call take_alone(engine& locks, const group& group, const lock_request& request, const group_caller& to) {
  std::vector<lease> room;  // as above
  room.reserve(1);
  to->concerns(group.keys.front());
  auto answered = [to, room = std::move(room)](detail::lock_answer&& answer) mutable {
    if (answer.failed) return to->answer(answer.failed);
    if (!answer.value) return to->answer({}, {group_answer::kind::busy});
    room.push_back(access::make_lease(std::move(answer.value)));
    to->answer({}, {group_answer::kind::had, std::move(room)});
  };
  const auto place = locks.lock(group.keys.front(), request, std::move(answered));
  return {place, [to = std::weak_ptr(to), place = std::weak_ptr(place)] {
            if (const auto waits = to.lock()) waits->answer({}, {group_answer::kind::moved});
            if (const auto still = place.lock()) still->cancel();
          }};
}

/// Makes the call begin anew when one of these servers is another run, with another place in the order. Other calls
/// take their locks in the new order. A call that waited with locks of the old order could wait for them in a circle.
void watch_order(const groups_ptr& groups, std::size_t upto, const group_caller& to,
                 detail::function<void()> order_changed) {
  const auto here = (*groups)[upto].home;
  const auto begin_anew = std::make_shared<const detail::function<void()>>(std::move(order_changed));
  const auto moved = [here, to = std::weak_ptr(to), begin_anew] {
    const auto home = here.lock();
    if (!home || to.expired()) return;
    home->enter_later([begin_anew] { detail::if_memory([&] { (*begin_anew)(); }); });
  };
  for (std::size_t n = 0; n <= upto; ++n) {
    const auto home = (*groups)[n].home.lock();
    if (!home || (*groups)[n].run.empty()) continue;
    home->enter_later([groups, n, home, moved, wanted = std::weak_ptr<const void>(to)] {
      const auto& group = (*groups)[n];
      if (auto* const locks = home->locks())
        detail::if_memory([&] { locks->when_run_changes(group.keys.front(), group.run, wanted, moved); });
    });
  }
}

asio::awaitable<group_answer> taken(plan_ptr plan, groups_ptr groups, std::size_t position, joint_call_ptr call) {
  const auto& group = (*groups)[position];
  auto begin = [plan, groups, position, call](engine& locks, const group_caller& to, const calling_coroutine& by) {
    const auto& group = (*groups)[position];
    for (const auto& keys : group.keys) detail::check_lock(locks, *keys);
    if (call->slots.empty()) {  // there is one client
      learn_slots(locks, *plan, plan->locks.front(), *call);
      const auto& slots = call->slots;
      if (std::adjacent_find(slots.begin(), slots.end(), std::not_equal_to<>()) != slots.end())
        return to->answer({}, {group_answer::kind::apart});
    }
    const auto take = group.keys.front()->of.acquire_all.make ? take_together : take_alone;
    auto taking = take(locks, group, call->request(locks, by), to);
    if (!taking.place) return;
    to->cancels(taking.place);
    if (position == 0) return;  // it holds nothing yet that others could wait for
    try {
      watch_order(groups, position, to, std::move(taking.order_changed));
    } catch (...) {
      to->fail(std::current_exception());
      taking.place->cancel();
    }
  };
  return detail::on_strand<group_answer>(group.home.lock(), std::move(begin), detail::refused_by(group.home));
}

/// Takes all groups in order, while the servers are the same runs. Empty leases: contention.
asio::awaitable<group_answer> taken_in_order(plan_ptr plan, joint_call_ptr call) {
  const auto groups = std::make_shared<const std::vector<group>>(co_await in_order(plan, call));
  std::vector<std::pair<std::size_t, lease>> had;  // the place of each in the plan
  for (std::size_t position = 0; position < groups->size(); ++position) {
    const auto& group = (*groups)[position];
    auto more = co_await taken(plan, groups, position, call);
    if (more.type != group_answer::kind::had) co_return more;
    for (std::size_t n = 0; n < group.places.size(); ++n) had.emplace_back(group.places[n], std::move(more.leases[n]));
  }
  std::sort(had.begin(), had.end(), [](const auto& left, const auto& right) { return left.first < right.first; });
  group_answer all{group_answer::kind::had};
  for (auto& [place, lease] : had) all.leases.push_back(std::move(lease));
  if (groups->size() == 1) co_return all;
  // The earlier leases have aged during the wait for the later ones: a lease that is not renewed is renewed here.
  auto together = access::make_multi_lease(std::move(all.leases));
  together.feed();
  try {
    if (!call->call.renewed()) co_await access::renew(together, {}, call->deadline.value_or(time_point::max()));
  } catch (const error& failure) {
    // A call that waits through outages waits through this one as well.
    if (failure.code() == condition::retry_later && !call->call.once())
      co_return group_answer{group_answer::kind::moved};
    if (failure.code() != errc::lost) throw;
  }
  if (!together.held()) co_return group_answer{group_answer::kind::moved};
  all.leases = access::take_leases(std::move(together));
  co_return all;
}

/// `T`: multi_lease or optional<multi_lease>.
template <class T>
asio::awaitable<T> acquire(plan_ptr plan, lock_call request) {
  if (!plan) co_return co_await detail::without_client<T>();
  for (const auto& wanted : plan->locks) detail::check_name(*wanted.keys);
  const auto call = std::make_shared<joint_call>(joint_call{request, request.locker().value_or(owner())});
  for (;;) {
    auto answer = co_await taken_in_order(plan, call);
    if (answer.type == group_answer::kind::had) co_return access::make_multi_lease(std::move(answer.leases));
    if (answer.type == group_answer::kind::apart) continue;
    if (answer.type == group_answer::kind::moved && !call->call.once()) continue;
    if (answer.type == group_answer::kind::moved) throw error(errc::unreachable, "a server has restarted meanwhile");
    if constexpr (!std::is_same_v<T, multi_lease>) co_return std::nullopt;
  }
}

std::optional<owner> given_owner(const plan_ptr& plan) { return plan ? plan->locker : std::nullopt; }

}  // namespace

multi_lock::multi_lock(const std::vector<mutex>& mutexes) : plan_(plan_of(mutexes)) {}

asio::awaitable<multi_lease> multi_lock::lock(lock_options options) const {
  return acquire<multi_lease>(plan_, {given_owner(plan_), options});
}

asio::awaitable<std::optional<multi_lease>> multi_lock::try_lock(lock_options options) const {
  return acquire<std::optional<multi_lease>>(plan_, {given_owner(plan_), options, milliseconds::zero()});
}

asio::awaitable<std::optional<multi_lease>> multi_lock::try_lock_for(milliseconds wait, lock_options options) const {
  return acquire<std::optional<multi_lease>>(plan_, {given_owner(plan_), options, wait});
}

}  // namespace holdfast
