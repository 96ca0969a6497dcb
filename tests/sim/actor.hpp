// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/lock_options.hpp>
#include <holdfast/owner.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/election/election_lock.hpp"
#include "protocol/fair/fair_lock.hpp"
#include "protocol/latch/countdown_latch.hpp"
#include "protocol/permits/permit_lock.hpp"
#include "protocol/shared/shared_lock.hpp"
#include "sim/judge/judge.hpp"

namespace holdfast::sim {

/// What a seed's callers work with.
struct workload {
  scheduler& plan;
  trace& log;
  coverage& met;
  sim::judge& judge;
  detail::random_source& random;
  std::vector<detail::shared_keys> names;
  nanoseconds pace;  // between two turns of one actor, on average
  std::size_t acts_wanted;
  bool hurry = false;      // most sections last for a millisecond
  bool quiet = false;      // nothing ends a hold but its owner
  std::size_t values = 0;  // of leaders: no two are the same
  std::size_t acts = 0;    // verbs called, of all actors together: who waits lets most of its turns pass

  bool chance(unsigned percent) { return random.next() % 100 < percent; }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random.next() % n); }
  nanoseconds between(nanoseconds from, nanoseconds to) { return from + random.up_to(to - from); }
  const detail::shared_keys& some_name() { return names[below(names.size())]; }
  /// The kind of lock that is meant to be at this name.
  const detail::kind& kind_of(const std::string& name) const { return keys_of(name).of; }
  bool is_election(const std::string& name) const { return &kind_of(name) == &detail::election_lock; }
  std::string new_value() { return "v" + std::to_string(++values); }
  bool is_latch(const std::string& name) const { return &kind_of(name) == &detail::countdown_latch; }
  bool is_fair(const std::string& name) const { return &kind_of(name) == &detail::fair_lock; }
  fair_names fair_at(const std::string& name) const { return fair_names(keys_of(name)); }
  bool is_shared(const std::string& name) const { return &kind_of(name) == &detail::shared_writer; }
  shared_names shared_at(const std::string& name) const { return shared_names(keys_of(name)); }
  bool is_semaphore(const std::string& name) const { return &kind_of(name) == &detail::permit_lock; }
  semaphore semaphore_at(const std::string& name) const {
    return semaphore(static_cast<const detail::permit_keys&>(keys_of(name)));
  }

 private:
  const detail::lock_keys& keys_of(const std::string& name) const {
    return **std::find_if(names.begin(), names.end(), [&](const auto& n) { return n->name == name; });
  }
};

/// An owner and what it has.
struct person {
  const owner who;
  std::vector<record_ptr> leases;
  std::vector<record_ptr> given_back;  // some are given back again
  std::vector<record_ptr> downgraded;  // write leases that are becoming read leases
  std::size_t waiting = 0;             // tasks that wait for a lock on its behalf
  std::size_t wants_all = 0;           // of them, those that wait for several, and may have re-entered some
};

/// A task of one client that does something at random every now and then, while its client runs. Several may act for
/// one person at once: then a call of one meets the others' on its way.
class actor : public std::enable_shared_from_this<actor> {
 public:
  actor(workload& w, sim_client& client, std::shared_ptr<person> self) : w_(w), client_(client), me_(std::move(self)) {}

  void start();
  /// From now on it cancels what it waits for and gives back what it has.
  void finish() noexcept { finishing_ = true; }
  bool done() const noexcept { return finishing_ && !waiting_ && me_->leases.empty(); }

 private:
  void act_later();
  void act();
  void act_at_random();
  bool has_lease_of(const detail::lock_keys& name) const;
  bool may_have_lease_of(const detail::lock_keys& name) const { return me_->wants_all > 0 || has_lease_of(name); }
  void lock(const detail::shared_keys& name, bool reenter);
  void ask_for_lock(const detail::shared_keys& keys, detail::lock_request request, std::uint64_t call, bool holds,
                    bool fenced);
  void acquire(const detail::shared_keys& name);
  void read_or_write(const detail::shared_keys& name, bool reenter);
  void lock_any();
  void lock_all();
  detail::lock_request some_request(bool bound);
  void on_any_answer(std::uint64_t call, const detail::lock_answer& a, bool fenced);
  void on_all_answer(std::uint64_t call, const detail::multi_answer& a, std::size_t asked, bool fenced);
  void on_lock_answer(std::uint64_t call, const detail::lock_answer& a, bool reenter, bool fenced);
  void cancel();
  void unlock(const record_ptr& lease);
  void drop(const record_ptr& lease);
  void renew(const record_ptr& lease);
  void feed(const record_ptr& lease);
  void force_unlock(const detail::shared_keys& name);
  void set_permits(const detail::shared_keys& name);
  void ask(const detail::shared_keys& name);
  void use_latch(const detail::shared_keys& name);
  void set_latch(const detail::shared_keys& name);
  void count_down(const detail::shared_keys& name);
  void read_count(const detail::shared_keys& name);
  void wait_for_latch(const detail::shared_keys& name);
  void campaign(const detail::shared_keys& name, bool reenter);
  void proclaim(const record_ptr& leadership);
  void see_leader(const detail::shared_keys& name);
  void observe(const detail::shared_keys& name);
  void downgrade(std::size_t which);
  void on_downgrade_answer(std::uint64_t call, const record_ptr& write, const detail::lock_answer& a);
  void give_back(std::size_t which);
  lock_options some_options();
  void note(std::string_view what, std::string_view about = {}) {
    w_.log.note(w_.plan.now(), client_.name(), what, about);
  }
  /// A verb is being called.
  void begin(std::string_view verb, std::string_view about = {}) {
    ++w_.acts;
    note(verb, about);
  }

  workload& w_;
  sim_client& client_;
  const std::shared_ptr<person> me_;
  detail::cancellable_ptr place_;
  bool waiting_ = false, finishing_ = false;
  std::map<std::string, election_judge::leader> leaders_;  // by name: the last one that it was told of
};

}  // namespace holdfast::sim
