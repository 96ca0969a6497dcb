// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/any_of.hpp>
#include <holdfast/client.hpp>
#include <holdfast/election.hpp>
#include <holdfast/expirable_semaphore.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/worker_monitor.hpp>

#include "base/context_end.hpp"
#include "base/direct_executor.hpp"
#include "protocol/election/election_lock.hpp"
#include "protocol/latch/countdown_latch.hpp"
#include "protocol/shared/shared_lock.hpp"
#include "sync/engine.hpp"

namespace holdfast::detail {

namespace asio = boost::asio;

/// A client in plain memory. Mutexes and leases refer to it, and may outlive everything else. It leads to the engine,
/// and to the strand, which alone may touch the engine.
///
/// The client's context owns strand, engine, timers and connections (a guest of its context_life). The engine ends with
/// the context, or when its client has closed. The latter is a handler of its own, so that no frame of the engine is on
/// the stack. The client, the engine, leases and handlers own this object; it owns nothing of Asio. Handlers on the
/// strand refer to the engine by locks(), which is null after its end.
///
/// A dropped lease needs no memory (dropped_leases.hpp). The handler that tells the strand of it goes by the executor
/// below the strand: Asio's strand never runs again if it queues a handler and then finds no memory to start.
class core : public lease_home, public std::enable_shared_from_this<core> {
 public:
  using strand_type = asio::strand<asio::any_io_executor>;

  // Any thread, also after the end of the context: `run` is then destroyed without being called.
  /// Runs it on the strand: at once if the strand is idle and this thread may run it, but never inside the engine.
  template <class Run>
  void enter(Run&& run) {
    static_assert(!std::is_reference_v<Run>, "it is moved to where it runs");
    const context_life::visit here(*life_);
    if (!here) return;
    // A child process ends its copies outside of the strand.
    if (strand_->any().running_in_this_thread() || life_->elsewhere()) return enter_later(std::move(run));
    strand_->dispatch(std::move(run));
  }
  /// The same, never inside the call, and in a handler of its own, by the executor below the strand
  /// (redis::io_services::post).
  template <class Run>
  void enter_later(Run run) {
    const context_life::visit here(*life_);
    if (!here) return;
    asio::post(strand_->any().get_inner_executor(),
               [strand = strand_->any(), run = std::move(run)]() mutable { asio::dispatch(strand, std::move(run)); });
  }
  /// Gives up a lease whose try_release() succeeded. It needs no memory: without any the strand finds the lease at its
  /// next run.
  void drop(std::shared_ptr<lease_record> lease) noexcept {
    dropped_.push(std::move(lease));
    look_soon();
  }
  /// Every hold has ended when it returns. The rest happens on the strand and needs no memory, as above.
  void close_in_background() noexcept {
    state_->closed.store(true, std::memory_order_release);
    abandoned_.store(true, std::memory_order_release);
    look_soon();
  }
  const detail::naming& naming() const noexcept { return naming_; }
  bool takes_turns() const noexcept { return turns_; }
  const std::string& client_id() const noexcept { return client_id_; }
  /// By the clock of the client.
  time_point now() const noexcept { return state_->time.now(); }
  bool closed() const noexcept { return state_->closed.load(std::memory_order_acquire); }
  const std::shared_ptr<context_life>& life() const noexcept { return life_; }
  /// Empty when the context has ended.
  asio::any_io_executor executor() const {
    const context_life::visit here(*life_);
    return here ? strand_->any().get_inner_executor() : asio::any_io_executor();
  }

  // The strand.
  /// Null after its end.
  virtual engine* locks() noexcept = 0;
  /// engine::close(), then the connections.
  virtual void close(nanoseconds grace, function<void()> done) = 0;
  /// engine::drain(), then the connections.
  virtual void drain(nanoseconds grace, function<void()> done) = 0;
  /// Does the work that other threads have left for the strand. Call it before any other work there.
  void catch_up() {
    while (const auto lease = dropped_.pop())
      if (auto* engine = locks()) engine->drop(lease);
    if (abandoned_.exchange(false, std::memory_order_acq_rel)) end_by_closing();
  }
  /// Also in the thread that ends the context.
  void engine_has_ended() noexcept { dropped_.close(); }

 protected:
  core(std::shared_ptr<context_life> life, detail::naming naming, bool turns)
      : life_(std::move(life)), naming_(std::move(naming)), turns_(turns) {}
  /// Called once, before another object knows this one. Both belong to the guest of life() that has the engine.
  void lives_by(const direct_strand& strand, const engine& locks) {
    strand_ = &strand;
    client_id_ = locks.client_id();
    state_ = locks.state();
  }

 private:
  virtual void end_by_closing() = 0;

  void look_soon() noexcept {
    if (looking_.exchange(true, std::memory_order_acq_rel)) return;
    try {
      const context_life::visit here(*life_);
      if (!here) return;
      asio::post(strand_->any().get_inner_executor(), [self = shared_from_this(), strand = strand_->any()] {
        self->looking_.exchange(false, std::memory_order_acq_rel);
        asio::dispatch(strand, [self] { self->catch_up(); });
      });
    } catch (...) {
      looking_.store(false, std::memory_order_release);  // no memory: the timers look, too
    }
  }

  const std::shared_ptr<context_life> life_;
  const detail::naming naming_;
  const bool turns_;
  std::string client_id_;
  const direct_strand* strand_ = nullptr;  // touched in a visit only
  client_state_ptr state_;
  dropped_leases dropped_;
  std::atomic<bool> abandoned_{false};  // its client is gone, and the strand has not closed it yet
  std::atomic<bool> looking_{false};    // a handler is on its way to catch_up()
};

/// The client that a lease came from; null in tests without one.
inline std::shared_ptr<core> home_of(const lease_record& lease) { return std::static_pointer_cast<core>(lease.home); }

/// Gives the library access to the private parts of public types.
struct access {
  static lease make_lease(std::shared_ptr<lease_record> record) {
    lease lease;
    lease.record_ = std::move(record);
    return lease;
  }
  static const std::shared_ptr<lease_record>& record(const lease& lease) { return lease.record_; }
  static client make_client(std::shared_ptr<core> core) { return client(std::move(core)); }
  static multi_lease make_multi_lease(std::vector<lease> leases) {
    multi_lease lease;
    lease.leases_ = std::move(leases);
    return lease;
  }
  static std::vector<lease> take_leases(multi_lease leases) { return std::move(leases.leases_); }
  static std::vector<std::shared_ptr<lease_record>> records(const lease& lease) { return {lease.record_}; }
  static std::vector<std::shared_ptr<lease_record>> records(const multi_lease& leases) {
    std::vector<std::shared_ptr<lease_record>> all;
    for (const auto& lease : leases.leases_) all.push_back(lease.record_);
    return all;
  }
  /// multi_lease::renew(). The answer comes no later than `answer_by`.
  static asio::awaitable<void> renew(const multi_lease& leases, milliseconds ttl, time_point answer_by);
  static const std::weak_ptr<core>& home(const mutex& mutex) { return mutex.core_; }
  static const std::weak_ptr<core>& home(const any_of& locks) { return locks.core_; }
  static const auto& locks(const any_of& locks) { return locks.locks_; }
  static const std::shared_ptr<worker_record>& record(const worker_monitor& monitor) { return monitor.record_; }
  static const std::shared_ptr<core>& home(const client& client) { return client.core_; }
  static const shared_keys& keys(const mutex& mutex) { return mutex.keys_; }
  static const std::optional<holdfast::owner>& given_owner(const mutex& mutex) { return mutex.owner_; }
  static mutex make_mutex(const std::weak_ptr<core>& core, const shared_keys& keys) {
    return {core, keys, std::nullopt};
  }
  static shared_mutex make_shared_mutex(const std::shared_ptr<core>& core, std::string_view name,
                                        std::optional<holdfast::owner> owner) {
    return {make_mutex<mutex>(core, shared_writer, name, owner), make_mutex<mutex>(core, shared_reader, name, owner)};
  }
  static expirable_semaphore make_semaphore(const std::shared_ptr<core>& core, shared_keys keys) {
    return {core, std::move(keys)};
  }
  static latch make_latch(const std::shared_ptr<core>& core, std::string_view name) {
    return {core, latch_keys(name, core ? core->naming() : detail::naming())};
  }
  static election make_election(const std::shared_ptr<core>& core, std::string_view name,
                                std::optional<holdfast::owner> owner) {
    return election(
        mutex(core, std::make_shared<const election_keys>(name, core ? core->naming() : detail::naming()), owner));
  }
  /// Null: the election was moved from.
  static std::shared_ptr<const election_keys> keys_with(const mutex& election, std::string value) {
    const auto& keys = election.keys_;
    return keys ? std::make_shared<const election_keys>(*keys, std::move(value)) : nullptr;
  }
  static mutex make_candidate(const mutex& election, std::string value) {
    return {election.core_, keys_with(election, std::move(value)), election.owner_};
  }
  /// `Mutex`: mutex or a class of it.
  template <class Mutex>
  static Mutex make_mutex(const std::shared_ptr<core>& core, const kind& of, std::string_view name,
                          std::optional<holdfast::owner> owner) {
    return {core,
            core ? std::make_shared<const lock_keys>(of, name, core->naming())
                 : std::make_shared<const lock_keys>(of, name),
            owner};
  }
};

}  // namespace holdfast::detail
