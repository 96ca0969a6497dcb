// SPDX-License-Identifier: BSL-1.0
#include "metrics/metric_store.hpp"

#include <algorithm>
#include <new>

namespace holdfast::detail {
namespace {

constexpr std::size_t most_names = 100'000;

}  // namespace

metric_store::metric_store(std::size_t lock_names) : room_(std::min(lock_names, most_names)) {}

// ---- counting

void metric_store::count(const event& e) noexcept {
  const auto n = static_cast<std::size_t>(e.what);
  if (n >= events_.size()) return;
  events_[n].add();
  if (n < call_ends.size() + hold_ends.size()) series_of(e.lock_kind, e.name).count(e);
}

void metric_store::count(const measurement& m) noexcept {
  using kind = measurement::kind;
  switch (m.what) {
    case kind::wait_began: return series_of(m.lock_kind, m.name).waiters.add();
    case kind::wait_ended: return series_of(m.lock_kind, m.name).waiters.add(-1);
    case kind::woken: return woken_.add();
    case kind::woken_in_vain: return woken_in_vain_.add();
    case kind::polled: return polled_.add();
    case kind::renewed: {
      const auto ttl = std::chrono::duration<double, std::nano>(m.ttl).count();
      if (ttl > 0) slack_.add(static_cast<std::int64_t>(static_cast<double>(m.left.count()) / ttl * 1e9));
      return confirmed_renewals_.add();
    }
    case kind::command: {
      auto& of = commands_.at(m.name);
      if (m.script) of.script.store(true, std::memory_order_relaxed);
      const auto failed = m.failure == errc{} ? none : m.failure == errc::unconfirmed ? unanswered : error_reply;
      return of.took[failed].add(m.took.count());
    }
    case kind::connection_up:
    case kind::connection_down: return count_connection(m);
  }
}

lock_series& metric_store::series_of(std::string_view lock_kind, std::string_view name) noexcept {
  const auto kind = kinds_.index_of(lock_kind);
  if (room_ > 0 && !name.empty()) return named(kind, name);
  return kinds_.at_index(kind);
}

// Names are never forgotten, or a hold could end in other series than it has begun in.
lock_series& metric_store::named(std::size_t kind, std::string_view name) noexcept {
  auto& rest = kinds_.at_index(kind);
  auto& known = by_name_[kind];
  {
    const std::shared_lock lock(naming_);
    if (const auto found = known.find(name); found != known.end()) return *found->second;
    if (names_full_) return rest;
  }
  const std::lock_guard lock(naming_);
  if (const auto found = known.find(name); found != known.end()) return *found->second;
  if (names_full_) return rest;
  try {
    auto label = label_of(name);
    // A lock of that name is one of the others.
    auto& series = label == other ? rest : by_label_[kind].try_emplace(std::move(label)).first->second;
    known.emplace(name, &series);
    names_full_ = ++named_ == room_;
    return series;
  } catch (const std::bad_alloc&) {
    names_full_ = true;
    return rest;
  }
}

void metric_store::count_connection(const measurement& m) noexcept try {
  const std::lock_guard lock(connecting_);
  const connection_key all_others{label_of(m.role), other};
  connection_key key{label_of(m.role), label_of(m.name)};
  const bool room = connections_.size() < most_connections || connections_.contains(key);
  auto& of = connections_[room ? std::move(key) : all_others];
  const bool up = m.what == measurement::kind::connection_up;
  of.up += up ? 1 : -1;
  if (up && m.count > 1) ++of.again;
} catch (const std::bad_alloc&) {  // it is not counted
}

// ---- the text

template <class Visit>
void metric_store::each_series(Visit visit) const {
  kinds_.each([&](std::string_view kind, const lock_series& rest, std::size_t n) {
    if (room_ > 0)
      for (const auto& [label, series] : by_label_[n]) visit(kind, label, series);
    visit(kind, room_ > 0 ? other : std::string_view(), rest);
  });
}

std::string metric_store::text() const {
  text_format to;
  {
    const std::shared_lock lock(naming_);
    write_locks(to);
  }
  write_renewals(to);
  write_commands(to);
  write_connections(to);
  write_events(to);
  return to.text();
}

void metric_store::write_locks(text_format& to) const {
  // What nothing was counted in is left out, but not what an alarm needs: the first loss must be an increase.
  const auto histogram = [](text_format& into, text_format::labels with, const durations& of) {
    if (of.count() > 0) into.sample(with, of);
  };
  to.family("holdfast_lock_wait_duration_seconds", "histogram", "From the call of lock() to its outcome.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    for (std::size_t n = 0; n < call_ends.size(); ++n)
      histogram(to, {{"kind", kind}, {"lock", lock}, {"outcome", to_string(call_ends[n])}}, of.waits[n]);
  });
  to.family("holdfast_lock_hold_duration_seconds", "histogram", "From the grant of a hold to its end.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    for (std::size_t n = 0; n < hold_ends.size(); ++n)
      histogram(to, {{"kind", kind}, {"lock", lock}, {"end", to_string(hold_ends[n])}}, of.holds[n]);
  });
  to.family("holdfast_lock_held", "gauge", "Holds at present; several leases of one owner are one hold.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    to.sample({{"kind", kind}, {"lock", lock}}, of.held());
  });
  to.family("holdfast_lock_waiters", "gauge", "Calls that stand in line at present.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    to.sample({{"kind", kind}, {"lock", lock}}, of.waiters.get());
  });
  to.family("holdfast_lock_lost_total", "counter", "Holds that ended without their holder's wish, by what is known.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    for (std::size_t n = 0; n < of.losses.size(); ++n) {
      const auto reason = static_cast<loss_cause>(n);
      const auto lost = of.losses[n].get();
      if (reason == loss_cause::none && lost == 0) continue;  // who is told of each has a cause
      to.sample({{"kind", kind}, {"lock", lock}, {"reason", to_string(reason)}}, lost);
    }
  });
}

void metric_store::write_renewals(text_format& to) const {
  to.family("holdfast_lock_renewals_total", "counter", "Renewals in the background, of one hold at one server each.");
  to.sample({{"outcome", "confirmed"}}, confirmed_renewals_.get());
  to.sample({{"outcome", "failed"}}, events_[static_cast<std::size_t>(event::kind::renewal_failed)].get());
  to.family("holdfast_lock_renewal_slack_ratio", "histogram",
            "What was left of the validity when a renewal was confirmed, as a part of the TTL.");
  to.sample({}, slack_);
  to.family("holdfast_lock_wakeups_total", "counter", "How often the first of a line asked Redis again.");
  to.sample({{"result", "useful"}}, woken_.get());
  to.sample({{"result", "spurious"}}, woken_in_vain_.get());
  to.sample({{"result", "poll"}}, polled_.get());
  to.family("holdfast_lock_fence_rejections_total", "counter",
            "Tasks that their resource refused, as the program said.");
  to.sample({}, fence_rejections_.get());
}

void metric_store::write_commands(text_format& to) const {
  to.family("db_client_operation_duration_seconds", "histogram",
            "From when a command about a lock was written until its answer was read.");
  commands_.each([&](std::string_view name, const command& of, std::size_t) {
    const bool script = of.script.load(std::memory_order_relaxed);
    for (std::size_t n = 0; n < failures.size(); ++n)
      if (of.took[n].count() > 0)
        to.sample({{"db_system_name", "redis"},
                   {"db_operation_name", script ? "EVALSHA" : name},
                   {"db_stored_procedure_name", script ? name : ""},
                   {"error_type", failures[n]}},
                  of.took[n]);
  });
}

void metric_store::write_connections(text_format& to) const {
  const std::lock_guard lock(connecting_);
  to.family("holdfast_connections", "gauge", "Connections that are there at present.");
  for (const auto& [key, of] : connections_) to.sample({{"role", key.first}, {"node", key.second}}, of.up);
  to.family("holdfast_connection_reconnects_total", "counter", "How often a connection was made that was lost before.");
  for (const auto& [key, of] : connections_) to.sample({{"role", key.first}, {"node", key.second}}, of.again);
}

void metric_store::write_events(text_format& to) const {
  to.family("holdfast_events_total", "counter", "What the observer was told, by its kind.");
  for (std::size_t n = 0; n < events_.size(); ++n)
    to.sample({{"event", to_string(static_cast<event::kind>(n))}}, events_[n].get());
}

}  // namespace holdfast::detail
