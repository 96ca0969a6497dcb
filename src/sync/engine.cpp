// SPDX-License-Identifier: BSL-1.0
#include "sync/engine.hpp"

#include <utility>

#include "base/cancelled.hpp"
#include "base/if_memory.hpp"
#include "sync/command/send_once.hpp"
#include "sync/hold/unlocking.hpp"
#include "sync/several/any_acquisition.hpp"

namespace holdfast::detail {
namespace {

/// A listener of a lease's end, for those who may cancel it.
class end_watch final : public cancellable {
 public:
  end_watch(std::weak_ptr<lease_record> of, const lease_record::end_listener* which)
      : of_(std::move(of)), which_(which) {}

  void cancel() override {
    const auto record = of_.lock();
    if (!record) return;
    if (const auto listener = record->remove_listener(std::exchange(which_, nullptr))) listener(cancelled());
  }

 private:
  const std::weak_ptr<lease_record> of_;
  const lease_record::end_listener* which_;
};

}  // namespace

engine::engine(environment around, std::weak_ptr<lease_home> home, owner_fields fields, wait_notices::sink notice)
    : around_(around), releases_(around_), unlock_budget_(around_), watchdog_(around_, holders_),
      with_{around_,
            watchdog_,
            releases_,
            unlock_budget_,
            calls_,
            std::move(home),
            new client_state(around_.time, around_.blocks, fields.client())},
      registry_(with_, std::move(fields), [this] { drain_until(now()); }), questions_(with_), grace_(around.alarms) {
  if (notice && !around_.settings.observer && !around_.settings.quiet) {
    notices_ = std::make_unique<wait_notices>(
        around_, std::move(notice),
        [this](const lock_keys& keys, time_point since) { return registry_.held_since(keys, since); });
    around_.notices = notices_.get();
  }
  around_.sender = &single_;
  if (around_.servers.primaries() > 1) {
    voting_ = std::make_unique<voting>(around_, std::string(client_id()));
    around_.sender = &quorum_.emplace(*voting_);
  }
  around_.servers.on_link_change([this](node_id node, bool up) {
    if (voting_) voting_->link_changed(node, up);
    watchdog_.link_changed(node, up);
    if (up)
      server_changed(node);
    else if (notices_)
      registry_.lost_redis();
  });
  around_.servers.on_keys_moved([this](std::optional<key_group> group) {
    unlock_budget_.keys_moved();
    watchdog_.keys_moved();
    if (closed()) return;
    registry_.repeat_releases(group);
    tell_changed_runs();
  });
}

engine::~engine() {
  with_.client->closed.store(true, std::memory_order_release);
  around_.blocks->close();
}

void engine::server_changed(node_id node) {
  if (closed()) return;
  registry_.server_changed(node);
  tell_changed_runs();
}

cancellable_ptr engine::lock(const shared_keys& keys, const lock_request& request, lock_handler&& done) {
  if (!closed()) return registry_.lock(keys, request, std::move(done));
  done({errc::shutting_down, {}, nullptr});
  return nullptr;
}

cancellable_ptr engine::lock_any(std::vector<shared_keys> of, lock_request request, lock_handler done) {
  if (const auto* const refused = refusal(request.who)) {
    done({errc::shutting_down, refused, nullptr});
    return nullptr;
  }
  const auto caller =
      std::make_shared<any_acquisition>(around_, registry_, std::move(of), std::move(request), std::move(done));
  registry_.begin(caller);
  return caller;
}

std::shared_ptr<multi_acquisition> engine::lock_all(std::vector<shared_keys> of, std::string run, lock_request request,
                                                    multi_handler done) {
  if (const auto* const refused = refusal(request.who)) {
    done({.error = errc::shutting_down, .detail = refused});
    return nullptr;
  }
  const auto caller = std::make_shared<multi_acquisition>(around_, registry_, std::move(of), std::move(run),
                                                          std::move(request), std::move(done));
  registry_.begin(caller);
  return caller;
}

void engine::unlock(const std::shared_ptr<lease_record>& record, done_handler&& done) {
  if (!record->try_release()) return done(errc::not_held, {});
  give_up(*record, std::move(done));
}

void engine::drop(const std::shared_ptr<lease_record>& record) {
  auto& h = *record->of;
  const bool ends_it = !h.ended() && !closed() && h.count() == 1 && !h.changing();
  if (record->dropped_at_once && ends_it) h.report(event_kind::dropped_at_once);
  give_up(*record, {});
}

void engine::renew(const std::shared_ptr<lease_record>& record, milliseconds ttl, done_handler done,
                   time_point answer_by) {
  if (record->released.load(std::memory_order_acquire)) return done(errc::not_held, {});
  if (closed()) return done(errc::closed, {});
  record->of->renew(record, ttl, answer_by, std::move(done));
}

// The lease may have ended since: feed() has ended the pause for all leases of its hold.
void engine::fed(const std::shared_ptr<lease_record>& record) {
  watchdog_.confirm_soon(*record->of->on, nanoseconds::zero());
}

cancellable_ptr engine::when_ended(const std::shared_ptr<lease_record>& record, lease_record::end_listener listener) {
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

void engine::force_unlock(const shared_keys& keys, value_handler<bool> done) {
  if (closed()) return done(errc::shutting_down, {}, {});
  const auto copies = std::make_shared<unsigned>(0);
  auto send = [this, keys, copies](time_point end, topology::handler then) {
    ++*copies;
    send_until(around_, end, keys->of.force_release.make(*keys), urgency::refusable, std::move(then));
  };
  auto answered = [this, keys, copies,
                   done = calls_.until_closed(errc::shutting_down, std::move(done))](const outcome& o) {
    const auto said = keys->of.force_release.read(o);
    if (said.failed) return done(said.failed->code, said.failed->detail, {});
    around_.note_withheld_message(o);
    registry_.forced(*keys, said.value);
    if (*copies > 1 && !said.value)
      return done(errc::unconfirmed, "the first answer was lost, and the second found no hold", {});
    done({}, {}, said.value);
  };
  ask_twice(around_, around_.settings.command_timeout, std::move(send), std::move(answered));
}

void engine::hold_count(const shared_keys& keys, owner_id who, value_handler<unsigned> done) {
  const hold_ptr h(registry_.hold_of(*keys, who));
  if (!h && !closed()) return done({}, {}, 0);
  // Redis says whether it is held; how often, this client knows first.
  auto answered = [h, done = std::move(done)](error_code error, const std::string& detail, unsigned at_server) {
    const bool ours = at_server > 0 && h->exclusive() && h->count() > 0;
    done(error, detail, ours ? static_cast<unsigned>(h->count()) : at_server);
  };
  questions_.count(keys, h ? h->field() : owner_field(), std::move(answered));
}

void engine::initialise_votes(done_handler done) {
  if (closed()) return done(errc::shutting_down, {});
  if (!voting_) return done(errc::invalid_config, "there is one server, which needs no vote");
  voting_->initialise(calls_.until_closed(errc::shutting_down, std::move(done)));
}

// Whatever the server answers: it has said who it is when it was connected.
void engine::learn_run(const shared_keys& keys, nanoseconds wait, value_handler<std::string> done) {
  if (closed()) return done(errc::shutting_down, {}, {});
  if (auto known = known_run(*keys); !known.empty()) return done({}, {}, std::move(known));
  auto answered = [this, keys, done = calls_.until_closed(errc::shutting_down, std::move(done))](const outcome& o) {
    if (!o.error) return done({}, {}, known_run(*keys));
    const auto why = redis::failure_of(o);
    done(why.code, why.detail, {});
  };
  send_until(around_, saturating_add(now(), wait), keys->of.exists.make(*keys), urgency::awaited, std::move(answered));
}

void engine::when_run_changes(const shared_keys& keys, std::string run, std::weak_ptr<const void> wanted,
                              function<void()> then) {
  if (closed()) return;
  run_watch watch{keys, std::move(run), std::move(wanted), std::move(then)};
  if (is_another_run(watch)) return watch.then();
  if (run_watches_.size() >= prune_run_watches_at_) {
    run_watches_.remove_if([](const run_watch& w) { return w.wanted.expired(); });
    prune_run_watches_at_ = 2 * run_watches_.size() + 16;  // so that each costs the same, however many there are
  }
  run_watches_.push_back(std::move(watch));
}

bool engine::is_another_run(const run_watch& w) const {
  const auto run = known_run(*w.keys);
  return !run.empty() && run != w.run;
}

// Where there is no memory to tell one, it stays, and is told at the next change.
void engine::tell_changed_runs() {
  std::list<run_watch> told;
  for (auto w = run_watches_.begin(); w != run_watches_.end();) {
    const auto which = w++;
    if_memory([&] {
      if (!is_another_run(*which)) return;
      if (!which->wanted.expired()) which->then();
      told.splice(told.end(), run_watches_, which);
    });
  }
}

void engine::probe(const kind& what, done_handler done) {
  if (closed()) return done(errc::shutting_down, {});
  probes_.remove_if([](const auto& p) { return p.over(); });
  probes_.emplace_back(around_, what, around_.settings.key_prefix + "__probe:" + std::string(client_id()),
                       registry_.new_field(), std::move(done));
  probes_.back().begin();
}

void engine::end_probes() {
  for (auto& p : probes_) p.end(errc::shutting_down, {});
}

void engine::close(nanoseconds grace, function<void()> done) {
  when_closed_.push_back(std::move(done));
  if (!std::exchange(closing_, true)) {
    with_.client->closed.store(true, std::memory_order_release);
    grace_.stop();
    registry_.close();
    end_probes();
  }
  const auto end = now() + grace;
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
  if (closing_) return close(around_.settings.command_timeout, std::move(done));
  when_closed_.push_back(std::move(done));
  if (!registry_.draining()) registry_.drain();
  drain_until(registry_.drained() ? now() : saturating_add(now(), grace));
}

// Always by the timer: the caller that ends the last hold is in the midst of doing so.
void engine::drain_until(time_point end) {
  if (!grace_.due() || end < *grace_.due())
    grace_.start(end, [this] { close(around_.settings.command_timeout, [] {}); });
}

void engine::answer_at_close() {
  grace_.stop();
  calls_.close();
  registry_.end_changes();
  for (const auto& then : std::exchange(when_closed_, {})) then();
}

}  // namespace holdfast::detail
