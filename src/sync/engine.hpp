// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <boost/container/small_vector.hpp>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/lock_holder.hpp>

#include "sync/hold.hpp"
#include "sync/last_holders.hpp"
#include "sync/releases.hpp"
#include "sync/surroundings.hpp"
#include "sync/unlock_patience.hpp"
#include "sync/waiting_line.hpp"
#include "sync/watchdog.hpp"

namespace holdfast::detail {

using done_handler = function<void(error_code, std::string detail)>;
template <class T>
using value_handler = function<void(error_code, std::string detail, T)>;

/// Every lock of one client, with nothing of Asio in it: the registry of holds and lines, and the verbs. All on one
/// strand; a handler is called once, perhaps inside the verb that takes it, and may call verbs.
class engine final {
 public:
  engine(surroundings around, std::weak_ptr<core> home, owner_fields fields);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();

  cancellable_ptr lock(const shared_keys& keys, lock_request request, lock_handler done);
  void unlock(const std::shared_ptr<lease_record>& record, done_handler done);
  /// unlock() with nobody waiting, for a record whose try_release() succeeded; errors go to the observer.
  void drop(const std::shared_ptr<lease_record>& record);
  void renew(const std::shared_ptr<lease_record>& record, milliseconds ttl, done_handler done);
  void fed(const std::shared_ptr<lease_record>& record);
  /// `listener` hears once how the lease ends: the reason of a loss, or not_held when it is released; at once if it has
  /// ended; operation_aborted when it no longer wants to know.
  cancellable_ptr when_ended(const std::shared_ptr<lease_record>& record, lease_record::end_listener listener);

  void force_unlock(const shared_keys& keys, value_handler<bool> done);
  void is_locked(const shared_keys& keys, value_handler<bool> done);
  void hold_count(const shared_keys& keys, owner_id who, value_handler<unsigned> done);
  void holder(const shared_keys& keys, value_handler<std::optional<lock_holder>> done);
  void remaining_ttl(const shared_keys& keys, value_handler<std::optional<milliseconds>> done);
  void last_token(const shared_keys& keys, value_handler<std::optional<std::uint64_t>> done);
  /// Uses every permission that a lock needs, on a name of nobody.
  void probe(done_handler done);

  /// From now on every verb answers closed: waiters fail, holds are lost and released. `done` when the releases have
  /// ended, at the latest after `grace`. A second call waits with the first; the grace that ends first counts.
  void close(nanoseconds grace, function<void()> done);
  /// close() at once: nothing is waited for.
  void abandon();
  /// From now on only owners that hold may lock or wait; the others get closed. When nothing is held any more, at the
  /// latest after `grace`: close(), for one command timeout; `done` with that. A second call waits with the first; the
  /// grace that ends first counts, and so does a close() meanwhile.
  void drain(nanoseconds grace, function<void()> done);
  const config& settings() const noexcept { return around_.settings; }
  const std::string& client_id() const noexcept { return fields_.client_uuid(); }
  time_point now() const noexcept { return around_.now(); }
  /// Also in a child process: what was copied by fork() is the parent's.
  bool closed() const noexcept { return closed_->load(std::memory_order_acquire) || here_.elsewhere(); }
  /// The flag that holds read: setting it ends all of them, from any thread.
  const std::shared_ptr<std::atomic<bool>>& closed_flag() const noexcept { return closed_; }
  /// No waiter, no hold, no release under way.
  bool idle() const noexcept { return names_.empty() && watchdog_.idle() && releases_.idle(); }

 private:
  class end_watch;
  class reentry;
  class permission_probe;
  /// One name of the registry. Its line finds the holds here, without a look-up.
  struct entry final : line_host {
    entry(engine& of, shared_keys k) : registry(of), keys(std::move(k)) {}

    hold* live_hold() const;
    std::shared_ptr<hold> hold_of(owner_id who) const;

    owner_field new_field() override { return registry.fields_.next(); }
    bool held_here() override { return live_hold() != nullptr; }
    void doubt_hold_here() override;
    std::shared_ptr<lease_record> granted(waiter& w, std::optional<std::uint64_t> token) override;
    void give_back(const owner_field& field, milliseconds ttl, function<void()> tried) override;
    void line_empty() override;

    engine& registry;
    const shared_keys keys;  // the registry's key is a view of keys->name
    std::shared_ptr<waiting_line> line;
    // Lost ones stay until their leases are gone, so that re-entry finds the loss.
    boost::container::small_vector<std::shared_ptr<hold>, 1> holds;
  };

  hold* live_hold(std::string_view name);
  std::shared_ptr<hold> hold_of(std::string_view name, owner_id who);
  void tell_if_waiting_for_ourselves(const entry& e, const lock_request& request);
  cancellable_ptr reenter(std::shared_ptr<hold> h, lock_request request, lock_handler done, time_point since);
  /// A command about the hold that was sent at `sent` is answered with yes. False: the validity was over before.
  bool confirm(hold& h, time_point sent, milliseconds ttl);
  key_ttl ttl_to_send(hold& h, milliseconds wanted);
  std::shared_ptr<lease_record> add_lease(hold& h, const terms& asked, time_point sent);

  void give_up_lease(const std::shared_ptr<lease_record>& record, done_handler done);
  void send_unlock(const std::shared_ptr<hold>& h, bool last, hold::last_unlock u);
  void take_from_count(const std::shared_ptr<hold>& h, done_handler done);
  void free_or_lower(const std::shared_ptr<hold>& h);
  void lower_count(const std::shared_ptr<hold>& h, function<void(error_code)> done);
  void free_hold(const std::shared_ptr<hold>& h, hold::last_unlock u);
  void report_release(const hold& h, time_point called, milliseconds ttl, error_code error,
                      std::string_view detail) const;
  /// The change of its count that was under way has ended.
  void changed(const std::shared_ptr<hold>& h);
  template <class Holds>
  static void forget_changes(const Holds& holds);
  void lose(hold& h, error_code reason);
  void end_by_loss(hold& h, error_code reason);
  void tell_reentries(hold& h);
  std::string text_of_loss(const hold& h, error_code reason) const noexcept;
  void forget(const hold& h);
  void wake(std::string_view name);
  void watch_link();
  void answer_at_close();
  void close_waiters_without_hold();
  void hold_is_over(owner_id who);
  void drain_until(time_point end);
  bool drains_without(owner_id who) const { return draining_ && !draining_->contains(who); }
  static constexpr auto* drained_without = "it is being drained, and only an owner that holds may still lock or wait";
  void end_probes();

  template <class T, class Send, class Read>
  void ask_by(Send send, Read read, value_handler<T> done);
  template <class T, class Read>
  void ask(const shared_keys& keys, std::string command, Read read, value_handler<T> done);
  /// `done`, which close() answers with closed in the end if nothing else has by then.
  template <class... T>
  function<void(error_code, std::string, T...)> until_closed(function<void(error_code, std::string, T...)> done);
  /// `done`, which gets `late` if nothing else has come by `deadline`, or as soon afterwards as the servers do not
  /// answer.
  done_handler until(const shared_keys& keys, time_point deadline, error_code late, done_handler done);
  /// Sends until there is an answer that is not "unconfirmed", at most twice; both copies together take no more than
  /// `timeout` from the first write on. `send` gets what is left of it.
  using sender = function<void(nanoseconds left, topology::handler)>;
  void ask_twice(nanoseconds timeout, sender send, topology::handler done);

  surroundings around_;
  const std::weak_ptr<core> home_;
  const std::shared_ptr<std::atomic<bool>> closed_;
  const birthplace here_;
  owner_fields fields_;
  std::map<std::string_view, entry> names_;  // no hash table, because one insertion would pay for moving all
  releases releases_;
  unlock_patience patience_;
  watchdog watchdog_;
  std::list<reentry*> reentries_;                        // not answered yet
  std::list<std::shared_ptr<permission_probe>> probes_;  // not answered yet
  std::list<function<void()>> unanswered_;               // each answers a caller with closed
  std::vector<std::shared_ptr<hold>> changing_;          // when close() began
  bool closing_ = false;
  std::optional<last_holders> draining_;  // from drain() until close()
  timer grace_;                           // of the drain, then of the close
  std::vector<function<void()>> when_closed_;
};

template <class... T>
function<void(error_code, std::string, T...)> engine::until_closed(function<void(error_code, std::string, T...)> done) {
  const auto kept = std::make_shared<decltype(done)>(std::move(done));
  auto end = [kept] { std::exchange(*kept, {})(errc::closed, {}, T{}...); };
  const auto place = unanswered_.insert(unanswered_.end(), std::move(end));
  return [this, kept, place](error_code error, std::string detail, T... value) {
    if (!*kept) return;  // close() came first
    unanswered_.erase(place);
    std::exchange(*kept, {})(error, std::move(detail), std::move(value)...);
  };
}

// A queued change and its hold refer to each other, and the command before the change may never be answered. Needs no
// memory.
template <class Holds>
void engine::forget_changes(const Holds& holds) {
  for (const auto& h : holds) {
    h->changes.forget();
    h->last_unlocks.clear();
  }
}

}  // namespace holdfast::detail
