// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sync/command/single_server_sender.hpp"
#include "sync/hold/claim_holders.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/inquiry/permission_survey.hpp"
#include "sync/inquiry/questions.hpp"
#include "sync/line/wait_notices.hpp"
#include "sync/registry.hpp"
#include "sync/several/multi_acquisition.hpp"
#include "sync/vote/quorum_sender.hpp"
#include "sync/vote/voting.hpp"

namespace holdfast::detail {

/// All locks of one client: the verbs, and how they end. Nothing of Asio. Used on one strand. A handler is called at
/// most once, perhaps inside the verb that was given it. It must not call a verb: what it does for its caller, it
/// posts.
class engine final {
 public:
  /// `notice`: prints a line if nobody observes (wait_notices); null: nothing is printed.
  engine(environment env, std::weak_ptr<lease_home> home, owner_fields fields, wait_notices::sink notice = {});
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();

  cancellable_ptr lock(const shared_keys& keys, const lock_request& request, lock_handler&& done);
  /// Any one of several, all of one kind, none twice.
  cancellable_ptr lock_any(std::vector<shared_keys> of, lock_request request, lock_handler done);
  /// Several, all or none: of one kind and group, none twice, in the order in which all processes wait for them. `run`:
  /// of their server, where the order depends on it.
  std::shared_ptr<multi_acquisition> lock_all(std::vector<shared_keys> of, std::string run, lock_request request,
                                              multi_handler done);
  void unlock(const std::shared_ptr<lease_record>& record, done_handler&& done);
  /// unlock() with nobody waiting, for a record whose try_release() succeeded; errors go to the observer.
  void drop(const std::shared_ptr<lease_record>& record);
  /// The answer comes at `answer_by` or before.
  void renew(const std::shared_ptr<lease_record>& record, milliseconds ttl, done_handler done,
             time_point answer_by = time_point::max());
  void fed(const std::shared_ptr<lease_record>& record);
  /// `listener` hears once how the lease ends: the reason of a loss, or not_held when it is released; at once if it has
  /// ended; operation_aborted when it no longer wants to know.
  cancellable_ptr when_ended(const std::shared_ptr<lease_record>& record, lease_record::end_listener listener);

  void force_unlock(const shared_keys& keys, value_handler<bool> done);
  void hold_count(const shared_keys& keys, owner_id owner, value_handler<unsigned> done);
  /// Which run of a server has this name (topology::run_of), once it is connected. In `wait` at most, else unreachable.
  void learn_run(const shared_keys& keys, nanoseconds wait, value_handler<std::string> done);
  /// The same by what is known now.
  std::string known_run(const lock_keys& keys) const { return env_.servers.run_of(keys.lock); }
  /// Calls `then` once when the server of this name is another run than `run`; at once if it is. Not after `wanted` has
  /// ended.
  void when_run_changes(const shared_keys& keys, std::string run, std::weak_ptr<const void> wanted,
                        function<void()> then);
  /// Which group of keys it is of (topology::group_of): one script asks for one group.
  key_group group_of(const lock_keys& keys) const noexcept { return env_.servers.group_of(keys.lock); }
  const questions& ask() const noexcept { return questions_; }
  /// See voting::initialise. Of one with several primaries; else invalid_config.
  void initialise_votes(done_handler done);
  /// Uses every permission that a lock of this kind needs, on a name of nobody at each primary.
  void probe(const kind& kind, done_handler done);

  /// From now on every call about a lease gets closed, and every other one shutting_down: waiters fail, holds are lost
  /// and released. `done` when the releases have ended, or after `grace`. A second call waits with the first; the grace
  /// that ends first counts.
  void close(nanoseconds grace, function<void()> done);
  /// close() at once: nothing is waited for.
  void abandon();
  /// From now on only owners that hold may lock or wait; the others get shutting_down. When nothing is held any more,
  /// or after `grace`: close(), for one command timeout; `done` with that. A second call waits with the first; the
  /// grace that ends first counts, and so does a close() meanwhile.
  void drain(nanoseconds grace, function<void()> done);
  /// All that belongs to a lock must be in one slot.
  bool has_slots() const noexcept { return env_.servers.has_slots(); }
  /// Then they vote, and every lock is one of a majority.
  bool several_primaries() const noexcept { return voting_ != nullptr; }
  const config& settings() const noexcept { return env_.settings; }
  std::string_view client_id() const noexcept { return registry_.client_id(); }
  time_point now() const noexcept { return env_.now(); }
  bool closed() const noexcept { return parts_.closed(); }
  /// What any thread may know of it, and whose end any thread may declare.
  const client_state_ptr& state() const noexcept { return parts_.client; }
  /// No waiter, no hold, no release under way.
  bool idle() const noexcept { return registry_.idle() && watchdog_.idle() && releases_.idle(); }

 private:
  struct run_watch {
    shared_keys keys;
    std::string run;
    std::weak_ptr<const void> wanted;
    function<void()> then;
  };

  /// Why this owner may not ask for several locks, for a person; null: it may.
  const char* refusal(owner_id owner) const { return closed() ? "" : registry_.refusal(owner); }
  void server_changed(node_id node);
  bool is_another_run(const run_watch& watch) const;
  void tell_changed_runs();
  void drain_until(time_point end);
  void answer_at_close();
  void end_probes();

  environment env_;
  std::unique_ptr<wait_notices> notices_;  // where nobody observes
  std::unique_ptr<voting> voting_;         // where there are several primaries
  std::optional<quorum_sender> quorum_;    // the same
  const single_server_sender single_{};    // where there is one
  releases releases_;
  unlock_time_budget unlock_budget_;
  claim_holders holders_;
  watchdog watchdog_;
  open_calls calls_;
  const engine_parts parts_;  // uses all of the above
  registry registry_;
  const questions questions_;
  std::list<permission_survey> probes_;
  std::list<run_watch> run_watches_;
  std::size_t prune_run_watches_at_ = 0;
  bool closing_ = false;
  timer grace_;  // of the drain, then of the close
  std::vector<function<void()>> when_closed_;
};

}  // namespace holdfast::detail
