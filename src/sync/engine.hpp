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

#include "sync/command/push_demand.hpp"
#include "sync/command/single_server_sender.hpp"
#include "sync/elections.hpp"
#include "sync/hold/claim_holders.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/inquiry/permission_survey.hpp"
#include "sync/inquiry/questions.hpp"
#include "sync/latches.hpp"
#include "sync/line/wait_notices.hpp"
#include "sync/note/grant_notes.hpp"
#include "sync/registry.hpp"
#include "sync/several/multi_acquisition.hpp"
#include "sync/vote/quorum_sender.hpp"
#include "sync/vote/voting.hpp"
#include "sync/worker/worker_table.hpp"

namespace holdfast::detail {

/// All locks of one client: the calls, and their answers. It knows nothing of Asio, and is used on one strand. A
/// handler is called at most once, perhaps inside the call that was given it.
///
/// A handler must not call the engine, because it runs in the middle of a change. Each handler posts its answer to the
/// caller's executor, and the observer's calls are posted too. So a change runs to its end.
///
/// Decision: several primaries are one client. Their connections belong to one strand and one registry, so line, drain
/// and shutdown work as with one server. Such a client has no other locks.
class engine final {
 public:
  /// `notice` prints a line if there is no observer (wait_notices). Null: nothing is printed.
  engine(environment env, std::weak_ptr<lease_home> home, owner_fields fields, wait_notices::sink notice = {});
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();

  cancellable_ptr lock(const shared_keys& keys, const lock_request& request, lock_handler&& done);
  /// Locks any one of several. They are of one kind, and none is given twice.
  cancellable_ptr lock_any(std::vector<shared_keys> of, lock_request request, lock_handler done);
  /// Locks all of several, or none. They are of one kind and group, in the order that all processes use; none is given
  /// twice. `run`: their server's run, if the order depends on it.
  std::shared_ptr<multi_acquisition> lock_all(std::vector<shared_keys> of, std::string run, lock_request request,
                                              multi_handler done);
  void unlock(const std::shared_ptr<lease_record>& record, done_handler&& done);
  /// Unlocks without a waiting caller. The record's try_release() has succeeded. Errors go to the observer.
  void drop(const std::shared_ptr<lease_record>& record);
  /// The answer comes no later than `answer_by`.
  void renew(const std::shared_ptr<lease_record>& record, milliseconds ttl, done_handler done,
             time_point answer_by = time_point::max());
  void fed(const std::shared_ptr<lease_record>& record);
  /// A write hold of a shared mutex becomes a read hold (downgrade.hpp). `reader`: the lock of the reader's side; null:
  /// it is of another client.
  cancellable_ptr downgrade(const std::shared_ptr<lease_record>& write, const shared_keys& reader, lock_handler done);
  /// Calls `listener` once, when the lease ends; at once if it has ended. The code is the reason of a loss, or not_held
  /// after a release. A cancelled listener gets operation_aborted.
  cancellable_ptr when_ended(const std::shared_ptr<lease_record>& record, lease_record::end_listener listener);

  /// Returns how many holds were broken.
  void force_unlock(const shared_keys& keys, answer_handler<unsigned> done);
  /// Sets the number of permits of a semaphore.
  void set_permits(const shared_keys& keys, std::uint32_t permits, done_handler done);
  void hold_count(const shared_keys& keys, owner_id owner, answer_handler<unsigned> done);
  /// Returns the run of the server that has this name (topology::run_of). Waits for a connection, for `wait` at most,
  /// then fails with unreachable.
  void learn_run(const shared_keys& keys, nanoseconds wait, answer_handler<std::string> done);
  /// The run as far as it is known now. Empty: unknown.
  std::string known_run(const lock_keys& keys) const { return env_.servers.run_of(keys.lock); }
  /// Calls `then` once when the server of this name is another run than `run`; at once if it is already. After the end
  /// of `wanted` nothing is called.
  void when_run_changes(const shared_keys& keys, std::string run, std::weak_ptr<const void> wanted,
                        function<void()> then);
  /// The group of its keys (topology::group_of). One script serves one group.
  key_group group_of(const lock_keys& keys) const noexcept { return env_.servers.group_of(keys.lock); }
  const questions& ask() const noexcept { return questions_; }
  detail::latches& latches() noexcept { return latches_; }
  detail::elections& elections() noexcept { return elections_; }
  /// A field that was never used.
  owner_field new_field() { return registry_.new_field(); }
  /// See voting::initialise. Fails with invalid_config if there is one server.
  void initialise_votes(done_handler done);
  /// Uses each permission that a lock of this kind needs, at each primary, on a name that nobody locks.
  void probe(const kind& kind, done_handler done);

  /// From now on each call about a lease fails with closed, and any other call with shutting_down. Waiters fail, and
  /// holds are lost and released. Calls `done` when the releases have ended, or after `grace`. A second call waits with
  /// the first; the shorter grace counts.
  void close(nanoseconds grace, function<void()> done);
  /// close() that waits for nothing.
  void abandon();
  /// From now on only owners that hold a lock may lock or wait. Others get shutting_down. After the last hold, or after
  /// `grace`, close() follows with one command timeout, and then `done`. A second call waits with the first; the
  /// shorter grace counts. A close() ends the drain.
  void drain(nanoseconds grace, function<void()> done);
  worker_table& workers() noexcept { return workers_; }
  /// True: primaries vote, and a majority holds each lock.
  bool several_primaries() const noexcept { return voting_ != nullptr; }
  const config& settings() const noexcept { return env_.settings; }
  std::string_view client_id() const noexcept { return registry_.client_id(); }
  time_point now() const noexcept { return env_.now(); }
  bool closed() const noexcept { return parts_.closed(); }
  /// The part of the client that any thread may read.
  const client_state_ptr& state() const noexcept { return parts_.client; }
  /// No waiter, no hold, no release under way.
  bool idle() const noexcept {
    return registry_.idle() && latches_.idle() && elections_.idle() && watchdog_.idle() && releases_.idle();
  }

 private:
  struct run_watch {
    shared_keys keys;
    std::string run;
    std::weak_ptr<const void> wanted;
    function<void()> then;
  };

  /// Why this owner may not ask for several locks, as text for a person. Null: it may.
  const char* refusal(owner_id owner) const { return closed() ? "" : registry_.refusal(owner); }
  void server_changed(node_id node);
  bool is_another_run(const run_watch& watch) const;
  void tell_changed_runs();
  void drain_until(time_point end);
  void answer_at_close();
  void end_probes();

  environment env_;
  std::unique_ptr<wait_notices> notices_;  // null if there is an observer
  std::unique_ptr<grant_notes> notes_;     // null without config::notes
  std::unique_ptr<voting> voting_;         // null for one server
  std::optional<quorum_sender> quorum_;    // empty for one server
  const single_server_sender single_{};
  push_demand pushes_;
  releases releases_;
  unlock_time_budget unlock_budget_;
  claim_holders holders_;
  watchdog watchdog_;
  open_calls calls_;
  const engine_parts parts_;  // uses all of the above
  registry registry_;
  const questions questions_;
  detail::latches latches_;
  detail::elections elections_;
  worker_table workers_;
  std::list<permission_survey> probes_;
  std::list<run_watch> run_watches_;
  std::size_t prune_run_watches_at_ = 0;
  bool closing_ = false;
  timer grace_;  // of the drain, then of the close
  std::vector<function<void()>> when_closed_;
};

}  // namespace holdfast::detail
