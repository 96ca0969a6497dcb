// SPDX-License-Identifier: BSL-1.0
#include "sync/engine.hpp"

#include <utility>

#include "base/cancelled.hpp"
#include "base/if_memory.hpp"
#include "sync/command/send_once.hpp"
#include "sync/downgrade.hpp"
#include "sync/hold/unlocking.hpp"
#include "sync/several/any_acquisition.hpp"

namespace holdfast::detail {
namespace {

/// Cancels one listener of a lease's end. It keeps no lease alive: the caller's own handle does.
class end_watch final : public cancellable {
 public:
  end_watch(std::weak_ptr<lease_record> of, const lease_record::end_listener* listener)
      : of_(std::move(of)), listener_(listener) {}

  void cancel() override {
    const auto record = of_.lock();
    if (!record) return;
    if (const auto listener = record->remove_listener(std::exchange(listener_, nullptr))) listener(cancelled());
  }

 private:
  const std::weak_ptr<lease_record> of_;
  const lease_record::end_listener* listener_;
};

}  // namespace

engine::engine(environment env, std::weak_ptr<lease_home> home, owner_fields fields, wait_notices::sink notice)
    : env_(env), pushes_(env_.servers, env_.settings), releases_(env_), unlock_budget_(env_), watchdog_(env_, holders_),
      parts_{env_,
             watchdog_,
             releases_,
             unlock_budget_,
             calls_,
             std::move(home),
             new client_state(env_.time, env_.blocks, fields.client())},
      registry_(parts_, std::move(fields), [this] { drain_until(now()); }), questions_(parts_), latches_(parts_),
      elections_(parts_), workers_(env_), grace_(env.alarms) {
  if (notice && !env_.settings.observer && !env_.settings.quiet) {
    notices_ = std::make_unique<wait_notices>(env_, std::move(notice), [this](const lock_keys& keys, time_point since) {
      return registry_.held_since(keys, since);
    });
    env_.notices = notices_.get();
  }
  if (env_.settings.notes) {
    notes_ = std::make_unique<grant_notes>(env_);
    env_.notes = notes_.get();
  }
  // A deployment never changes between one server and several primaries, so no command asks.
  env_.sender = &single_;
  env_.pushes = &pushes_;
  if (env_.servers.primaries() > 1) {
    voting_ = std::make_unique<voting>(env_, std::string(client_id()));
    env_.sender = &quorum_.emplace(*voting_);
  }
  env_.servers.on_link_change([this](node_id node, bool up) {
    // The order matters: watchdog and registry send commands at once, and these need the state of the vote.
    if (voting_) voting_->link_changed(node, up);
    watchdog_.link_changed(node, up);
    if (up)
      server_changed(node);
    else if (notices_)
      registry_.lost_redis();
  });
  env_.servers.on_key_changed([this](std::string_view key, node_id node) {
    if (closed()) return;
    if (!key.empty()) return registry_.key_changed(key, node);
    watchdog_.keys_in_question(node);
    registry_.keys_in_question(node);
  });
  env_.servers.on_keys_moved([this](std::optional<key_group> group) {
    // Another server has the keys now, so the silence of the old one says nothing about it.
    unlock_budget_.keys_moved();
    watchdog_.keys_moved();
    if (closed()) return;
    registry_.repeat_releases(group);
    tell_changed_runs();
  });
}

engine::~engine() {
  // Leases in other threads outlive the engine. They see the flag before the members end.
  parts_.client->closed.store(true, std::memory_order_release);
  env_.blocks->close();
}

void engine::server_changed(node_id node) {
  if (closed()) return;
  registry_.server_changed(node);
  tell_changed_runs();
}

cancellable_ptr engine::lock(const shared_keys& keys, const lock_request& request, lock_handler&& done) {
  if (!closed()) return registry_.lock(keys, request, std::move(done));
  done({failure{errc::shutting_down, {}}});
  return nullptr;
}

cancellable_ptr engine::lock_any(std::vector<shared_keys> of, lock_request request, lock_handler done) {
  if (const auto* const refused = refusal(request.owner)) {
    done({failure{errc::shutting_down, refused}});
    return nullptr;
  }
  const auto caller =
      std::make_shared<any_acquisition>(env_, registry_, std::move(of), std::move(request), std::move(done));
  registry_.begin(caller);
  return caller;
}

std::shared_ptr<multi_acquisition> engine::lock_all(std::vector<shared_keys> of, std::string run, lock_request request,
                                                    multi_handler done) {
  if (const auto* const refused = refusal(request.owner)) {
    done({failure{errc::shutting_down, refused}});
    return nullptr;
  }
  const auto caller = std::make_shared<multi_acquisition>(env_, registry_, std::move(of), std::move(run),
                                                          std::move(request), std::move(done));
  registry_.begin(caller);
  return caller;
}

void engine::unlock(const std::shared_ptr<lease_record>& record, done_handler&& done) {
  // A lease may be unlocked by several threads at once. Exactly one of them releases it.
  if (!record->try_release()) return done(failure{errc::not_held, {}});
  give_up(*record, std::move(done));
}

void engine::drop(const std::shared_ptr<lease_record>& record) {
  auto& hold = *record->of;
  // Only a drop that ends the hold frees the lock, perhaps by mistake. So only that one is reported.
  const bool ends_it = !hold.ended() && !closed() && hold.count() == 1 && !hold.changing();
  if (record->dropped_at_once && ends_it) hold.report(event_kind::dropped_at_once);
  give_up(*record, {});
}

void engine::renew(const std::shared_ptr<lease_record>& record, milliseconds ttl, done_handler done,
                   time_point answer_by) {
  // A released lease stays `not_held`, whatever happens to the client afterwards.
  if (record->released.load(std::memory_order_acquire)) return done(failure{errc::not_held, {}});
  if (closed()) return done(failure{errc::closed, {}});
  record->of->renew(record, ttl, answer_by, std::move(done));
}

// The lease may have ended since feed() was called. The renewal is still due, because feed() has resumed all leases of
// the hold.
void engine::fed(const std::shared_ptr<lease_record>& record) {
  watchdog_.confirm_soon(*record->of->on, nanoseconds::zero());
}

cancellable_ptr engine::downgrade(const std::shared_ptr<lease_record>& write, const shared_keys& reader,
                                  lock_handler done) {
  const auto& held = *write->of->keys();
  const bool of_lock = reader && name::key::of(held) == name::key::of(*reader) && held.of.queue.downgrade.make;
  std::optional<failure> refused;
  // The order is that of renew().
  if (write->released.load(std::memory_order_acquire))
    refused = failure{errc::not_held, {}};
  else if (closed())
    refused = failure{errc::closed, {}};
  else if (!of_lock)
    refused = failure{errc::not_held, "the lease is no write lease of this lock"};
  if (refused) {
    done({std::move(refused)});
    return nullptr;
  }
  const auto caller = std::make_shared<detail::downgrade>(parts_, registry_, write, reader, std::move(done));
  caller->begin();
  return caller;
}

cancellable_ptr engine::when_ended(const std::shared_ptr<lease_record>& record, lease_record::end_listener listener) {
  // The order is that of renew(): the lease's own end counts before that of the client.
  error_code ended;
  if (record->released.load(std::memory_order_acquire)) {
    ended = errc::not_held;
  } else if (closed()) {
    ended = errc::closed;
  } else if (record->of->ended()) {
    ended = record->of->end_reason();
  }
  if (ended) {
    listener(ended);
    return nullptr;
  }
  return std::make_shared<end_watch>(record, record->add_listener(std::move(listener)));
}

void engine::force_unlock(const shared_keys& keys, answer_handler<unsigned> done) {
  if (closed()) return done({failure{errc::shutting_down, {}}});
  // The second copy finds nothing if the first one has done the work. Only the number of copies tells that apart from a
  // free lock.
  const auto copies = std::make_shared<unsigned>(0);
  auto send = [this, keys, copies](time_point end, topology::handler then) {
    ++*copies;
    send_until(env_, end, keys->of.force_release.make(*keys), urgency::refusable, std::move(then));
  };
  auto answered = [this, keys, copies,
                   done = calls_.until_closed(errc::shutting_down, std::move(done))](const outcome& outcome) {
    auto reply = keys->of.force_release.read(outcome);
    if (reply.failed) return done(std::move(reply));
    env_.note_withheld_message(outcome);
    // Waiters and holders of this client are notified directly, whether PUBLISH was allowed or not.
    registry_.forced(*keys, reply.value > 0);
    if (*copies > 1 && reply.value == 0)
      return done({failure{errc::unconfirmed, "the first answer was lost, and the second found no hold"}});
    done(std::move(reply));
  };
  ask_twice(env_, env_.settings.command_timeout, std::move(send), std::move(answered));
}

// The number is absolute, so a second copy changes nothing.
void engine::set_permits(const shared_keys& keys, std::uint32_t permits, done_handler done) {
  if (closed()) return done(failure{errc::shutting_down, {}});
  auto send = [this, keys, permits](time_point end, topology::handler then) {
    send_until(env_, end, keys->of.set_permits.make(*keys, permits), urgency::refusable, std::move(then));
  };
  auto answered = [this, keys,
                   done = calls_.until_closed(errc::shutting_down, std::move(done))](const outcome& outcome) {
    auto reply = keys->of.set_permits.read(outcome);
    if (reply.failed) return done(reply.failed);
    env_.note_withheld_message(outcome);
    registry_.may_be_free(*keys);
    done(std::nullopt);
  };
  ask_twice(env_, env_.settings.command_timeout, std::move(send), std::move(answered));
}

void engine::hold_count(const shared_keys& keys, owner_id owner, answer_handler<unsigned> done) {
  // The reference keeps the hold until the answer: its leases may end meanwhile.
  hold_ptr hold(registry_.hold_of(*keys, owner));
  // Both sides of a shared mutex are one name. A hold counts for its own side alone.
  if (hold && keys->of.bars != hold->keys()->of.bars) hold.reset();
  if (!hold && !closed()) return done({});
  // Redis decides whether the lock is held. The count is newer here, because it is sent in the background.
  auto answered = [hold, owner, done = std::move(done)](answer<unsigned>&& counted) {
    const bool ours = counted.value > 0 && hold->exclusive() && hold->count() > 0;
    if (ours) counted.value = static_cast<unsigned>(hold->count_of(owner));
    done(std::move(counted));
  };
  questions_.count(keys, hold ? hold->field() : owner_field(), std::move(answered));
}

void engine::initialise_votes(done_handler done) {
  if (closed()) return done(failure{errc::shutting_down, {}});
  if (!voting_) return done(failure{errc::invalid_config, "there is one server, which needs no vote"});
  voting_->initialise(calls_.until_closed(errc::shutting_down, std::move(done)));
}

// Any answer will do. The server has told its run id in the handshake, and EXISTS is cheap and changes nothing.
void engine::learn_run(const shared_keys& keys, nanoseconds wait, answer_handler<std::string> done) {
  if (closed()) return done({failure{errc::shutting_down, {}}});
  if (auto known = known_run(*keys); !known.empty()) return done({{}, std::move(known)});
  auto answered = [this, keys,
                   done = calls_.until_closed(errc::shutting_down, std::move(done))](const outcome& outcome) {
    if (outcome.error) return done({redis::failure_of(outcome)});
    done({{}, known_run(*keys)});
  };
  send_until(env_, saturating_add(now(), wait), keys->of.exists.make(*keys), urgency::awaited, std::move(answered));
}

void engine::when_run_changes(const shared_keys& keys, std::string run, std::weak_ptr<const void> wanted,
                              function<void()> then) {
  if (closed()) return;
  run_watch watch{keys, std::move(run), std::move(wanted), std::move(then)};
  // The run may have changed between the caller's own comparison and this call.
  if (is_another_run(watch)) return watch.then();
  if (run_watches_.size() >= prune_run_watches_at_) {
    run_watches_.remove_if([](const run_watch& known) { return known.wanted.expired(); });
    // Doubling keeps the cost of each watch constant, however many there are.
    prune_run_watches_at_ = 2 * run_watches_.size() + 16;
  }
  run_watches_.push_back(std::move(watch));
}

bool engine::is_another_run(const run_watch& watch) const {
  const auto run = known_run(*watch.keys);
  // An unknown run is no other run: a disconnected server may come back as the same.
  return !run.empty() && run != watch.run;
}

// A watch that cannot be notified for lack of memory stays for the next change. Notified watches are destroyed after
// the loop, because the end of a `then` may change the list.
void engine::tell_changed_runs() {
  std::list<run_watch> ended;
  for (auto watch = run_watches_.begin(); watch != run_watches_.end();) {
    const auto this_watch = watch++;
    if_memory([&] {
      if (!is_another_run(*this_watch)) return;
      if (!this_watch->wanted.expired()) this_watch->then();
      ended.splice(ended.end(), run_watches_, this_watch);
    });
  }
}

void engine::probe(const kind& kind, done_handler done) {
  if (closed()) return done(failure{errc::shutting_down, {}});
  // A survey cannot be destroyed inside its own handler, so the next call does it.
  probes_.remove_if([](const auto& probe) { return probe.over(); });
  probes_.emplace_back(env_, kind, env_.settings.key_prefix + "__probe:" + std::string(client_id()),
                       registry_.new_field(), std::move(done));
  probes_.back().begin();
}

void engine::end_probes() {
  for (auto& probe : probes_) probe.end(failure{errc::shutting_down, {}});
}

void engine::close(nanoseconds grace, function<void()> done) {
  // A later call with a shorter grace must still shorten the first one, so only the first part is done once.
  when_closed_.push_back(std::move(done));
  if (!std::exchange(closing_, true)) {
    parts_.client->closed.store(true, std::memory_order_release);
    grace_.stop();
    registry_.close();
    latches_.close();
    elections_.close();
    workers_.close();
    end_probes();
  }
  const auto end = now() + grace;
  // The grace is for releases only. Waiters and holds have ended already.
  if (!grace_.due() || end < *grace_.due())
    grace_.start(end, [this] {
      releases_.abandon();
      answer_at_close();
    });
  releases_.when_idle([this] { answer_at_close(); });
}

void engine::abandon() {
  close(nanoseconds::zero(), [] {});
  releases_.abandon();
  answer_at_close();
}

void engine::drain(nanoseconds grace, function<void()> done) {
  // Nobody holds after a close, so nothing is left to drain.
  if (closing_) return close(env_.settings.command_timeout, std::move(done));
  when_closed_.push_back(std::move(done));
  if (!registry_.draining()) registry_.drain();
  latches_.drain();
  elections_.drain();
  workers_.drain();
  drain_until(registry_.drained() ? now() : saturating_add(now(), grace));
}

// Always by the timer, because the last hold may be ending further up the stack, and close() would take it apart.
void engine::drain_until(time_point end) {
  if (!grace_.due() || end < *grace_.due()) grace_.start(end, [this] { close(env_.settings.command_timeout, [] {}); });
}

void engine::answer_at_close() {
  // The handlers come last, because they close the connections.
  grace_.stop();
  calls_.close();
  registry_.end_changes();
  for (const auto& then : std::exchange(when_closed_, {})) then();
}

}  // namespace holdfast::detail
