// SPDX-License-Identifier: BSL-1.0
#include "metrics/metric_store.hpp"

#include <algorithm>
#include <new>

namespace holdfast::detail {
namespace {

constexpr std::size_t most_names = 100'000;

}  // namespace

metric_store::metric_store(std::size_t lock_names) : room_(std::min(lock_names, most_names)) {
  connections_[others] = std::make_unique<connections>(std::string(other), std::string(other), others);
}

// ---- counting

void metric_store::count_slowly(const event& e) noexcept {
  series_of(e.lock_kind, e.name).count(static_cast<std::size_t>(e.what), e);
}

void metric_store::count_slowly(const measurement& m) noexcept {
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
    case kind::command: return took_by(m)[failure_of(m)].add(m.took.count());
    case kind::connection_up: {
      if (!m.connection) return;
      auto& of = connections_of(*m.connection);
      of.up.add();
      if (m.count > 1) of.again.add();
      return;
    }
    case kind::in_flight:
      if (m.connection) connections_of(*m.connection).in_flight.add(m.count);
      return;
    case kind::connection_down:
      if (m.connection) connections_of(*m.connection).up.add(-1);
      return;
  }
}

lock_series& metric_store::series_of(std::string_view lock_kind, std::string_view name) noexcept {
  const auto kind = kinds_.index_of(lock_kind);
  if (room_ > 0 && !name.empty()) return named(kind, name);
  auto& all = kinds_.at_index(kind);
  if (room_ == 0) nameless_.add(lock_kind, all);
  return all;
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

metric_store::durations_of_command& metric_store::took_by(const measurement& m) noexcept {
  auto& by = m.connection ? connections_of(*m.connection) : *connections_[others];
  auto& of = commands_.at(m.name);
  auto* const known = of.took(by.server);
  auto& took = known ? *known : of.first_took(by.server, m.script);
  if (of.took(by.server) == &took) by.took.add(m.name, took);  // without memory the next one tries again
  return took;
}

metric_store::command::~command() {
  for (std::size_t n = others + 1; n < took_.size(); ++n) delete took_[n].load(std::memory_order_relaxed);
}

// Where two threads make them at once, one is too much.
metric_store::durations_of_command& metric_store::command::first_took(std::size_t server, bool script) noexcept {
  if (script) script_.store(true, std::memory_order_relaxed);
  auto made =
      std::unique_ptr<durations_of_command>(server != others ? new (std::nothrow) durations_of_command() : nullptr);
  if (!made) {
    took_[others].store(&others_, std::memory_order_release);
    return others_;
  }
  durations_of_command* known = nullptr;
  if (!took_[server].compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return *known;
  return *made.release();
}

metric_store::connections& metric_store::connections_of(const connection_facts& c) noexcept {
  if (c.number == 0) return *connections_[others];
  if (const auto known = seen(c)) return *connections_[*known];
  const std::lock_guard lock(connecting_);
  std::size_t index = others;
  try {
    index = find_or_add(c);
  } catch (const std::bad_alloc&) {  // what has begun among the others must end there
    connections_full_ = true;
  }
  connections_crowded_ = connections_crowded_ || index == others;
  found_[c.number % found_.size()].store(c.number << bits_of_index | index, std::memory_order_release);
  return *connections_[index];
}

std::size_t metric_store::find_or_add(const connection_facts& c) {
  const auto known = [this](std::string_view role, std::string_view node) {
    const auto begin = connections_.begin() + others + 1;
    const auto end = connections_.begin() + static_cast<std::ptrdiff_t>(connections_used_);
    const auto found =
        std::find_if(begin, end, [&](const auto& each) { return each->role == role && each->node == node; });
    return found != end ? static_cast<std::size_t>(found - connections_.begin()) : others;
  };
  // As they are first, which takes no memory: what has begun there must end there.
  if (const auto n = known(c.role, c.node); n != others) return n;
  auto role = label_of(c.role), node = label_of(c.node);
  if (const auto n = known(role, node); n != others) return n;
  if (connections_full_ || connections_used_ == connections_.size() || node == other) return others;
  const server at{label_of(c.address), c.port != 0 ? std::to_string(c.port) : std::string()};
  auto server = static_cast<std::size_t>(std::find(servers_.begin(), servers_.end(), at) - servers_.begin());
  if (server > most_servers || at.address == other) server = others;
  if (server == servers_.size()) servers_.push_back(at);
  connections_[connections_used_] = std::make_unique<connections>(std::move(role), std::move(node), server);
  return connections_used_++;
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
      histogram(to, {{"kind", kind}, {"lock", lock}, {"outcome", to_string(call_ends[n])}}, of.waits(n));
  });
  to.family("holdfast_lock_hold_duration_seconds", "histogram", "From the grant of a hold to its end.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    for (std::size_t n = 0; n < hold_ends.size(); ++n)
      histogram(to, {{"kind", kind}, {"lock", lock}, {"end", to_string(hold_ends[n])}}, of.holds(n));
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
  const auto servers = [this] {
    const std::lock_guard lock(connecting_);
    return servers_;
  }();
  to.family("db_client_operation_duration_seconds", "histogram",
            "From when a command about a lock was written until its answer was read.");
  commands_.each([&](std::string_view name, const command& of, std::size_t) {
    const bool script = of.script();
    const auto write = [&](const server& at, const durations_of_command& took) {
      for (std::size_t n = 0; n < failures.size(); ++n)
        if (took[n].count() > 0)
          to.sample({{"db_system_name", "redis"},
                     {"db_operation_name", script ? "EVALSHA" : name},
                     {"db_stored_procedure_name", script ? name : ""},
                     {"server_address", at.address},
                     {"server_port", at.port},
                     {"error_type", failures[n]}},
                    took[n]);
    };
    for (std::size_t n = 0; n < servers.size(); ++n)
      if (const auto* took = of.took(n)) write(servers[n], *took);
  });
}

void metric_store::write_connections(text_format& to) const {
  const std::lock_guard lock(connecting_);
  to.family("holdfast_connections", "gauge", "Connections that are there at present.");
  const auto each = [&](counter connections::*number) {
    const auto sample = [&](const connections& of) {
      to.sample({{"role", of.role}, {"node", of.node}}, (of.*number).get());
    };
    for (std::size_t n = connections_crowded_ ? others : others + 1; n < connections_used_; ++n)
      sample(*connections_[n]);
  };
  each(&connections::up);
  to.family("holdfast_connection_in_flight", "gauge", "Commands that were written and have no answer at present.");
  each(&connections::in_flight);
  to.family("holdfast_connection_reconnects_total", "counter", "How often a connection was made that was lost before.");
  each(&connections::again);
}

void metric_store::write_events(text_format& to) const {
  to.family("holdfast_events_total", "counter", "What the observer was told, by its kind.");
  for (std::size_t n = 0; n < events_.size(); ++n)
    to.sample({{"event", to_string(static_cast<event::kind>(n))}}, events_[n].get());
}

}  // namespace holdfast::detail
