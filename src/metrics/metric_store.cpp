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

void metric_store::count_slowly(const event& event) noexcept {
  series_of(event.lock_kind, event.name).count(static_cast<std::size_t>(event.kind), event);
}

void metric_store::count_slowly(const measurement& measurement) noexcept {
  using kind = measurement_kind;
  switch (measurement.kind) {
    case kind::wait_began: return series_of(measurement.lock_kind, measurement.name).waiters.add();
    case kind::wait_ended: return series_of(measurement.lock_kind, measurement.name).waiters.add(-1);
    case kind::worker_entered: return worker_count(measurement).add();
    case kind::worker_left: return worker_count(measurement).add(-1);
    case kind::worker_run_ended:
      return series_of(measurement.lock_kind, measurement.name)
          .runs[static_cast<std::size_t>(measurement.outcome)]
          .add();
    case kind::woken: return woken_.add();
    case kind::woken_in_vain: return woken_in_vain_.add();
    case kind::polled: return polled_.add();
    case kind::pushed: return series_of(measurement.lock_kind, measurement.name).pushed.add();
    case kind::renewed: {
      const auto ttl = std::chrono::duration<double, std::nano>(measurement.ttl).count();
      if (ttl > 0) slack_.add(static_cast<std::int64_t>(static_cast<double>(measurement.left.count()) / ttl * 1e9));
      return confirmed_renewals_.add();
    }
    case kind::command: return took_by(measurement)[failure_of(measurement)].add(measurement.took.count());
    case kind::connection_up: {
      if (!measurement.connection) return;
      auto& of = connections_of(*measurement.connection);
      of.up.add();
      if (measurement.count > 1) of.again.add();
      return;
    }
    case kind::in_flight:
      if (measurement.connection) connections_of(*measurement.connection).in_flight.add(measurement.count);
      return;
    case kind::connection_down:
      if (measurement.connection) connections_of(*measurement.connection).up.add(-1);
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

counter& metric_store::worker_count(const measurement& measurement) noexcept {
  return series_of(measurement.lock_kind, measurement.name).workers[static_cast<std::size_t>(measurement.state)];
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

metric_store::durations_of_command& metric_store::took_by(const measurement& measurement) noexcept {
  auto& by = measurement.connection ? connections_of(*measurement.connection) : *connections_[others];
  auto& of = commands_.at(measurement.name);
  auto* const known = of.took(by.server);
  auto& took = known ? *known : of.first_took(by.server, measurement.script);
  if (of.took(by.server) == &took) by.took.add(measurement.name, took);  // without memory the next one tries again
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

metric_store::connections& metric_store::connections_of(const connection_facts& facts) noexcept {
  if (facts.number == 0) return *connections_[others];
  if (const auto known = seen(facts)) return *connections_[*known];
  const std::lock_guard lock(connecting_);
  std::size_t index = others;
  try {
    index = find_or_add(facts);
  } catch (const std::bad_alloc&) {  // what has begun among the others must end there
    connections_full_ = true;
  }
  connections_crowded_ = connections_crowded_ || index == others;
  found_[facts.number % found_.size()].store(facts.number << bits_of_index | index, std::memory_order_release);
  return *connections_[index];
}

std::size_t metric_store::find_or_add(const connection_facts& facts) {
  const auto known = [this](std::string_view role, std::string_view node) {
    const auto begin = connections_.begin() + others + 1;
    const auto end = connections_.begin() + static_cast<std::ptrdiff_t>(connections_used_);
    const auto found =
        std::find_if(begin, end, [&](const auto& each) { return each->role == role && each->node == node; });
    return found != end ? static_cast<std::size_t>(found - connections_.begin()) : others;
  };
  // As they are first, which takes no memory: what has begun there must end there.
  if (const auto n = known(facts.role, facts.node); n != others) return n;
  auto role = label_of(facts.role), node = label_of(facts.node);
  if (const auto n = known(role, node); n != others) return n;
  if (connections_full_ || connections_used_ == connections_.size() || node == other) return others;
  const server at{label_of(facts.address), facts.port != 0 ? std::to_string(facts.port) : std::string()};
  auto server = static_cast<std::size_t>(std::find(servers_.begin(), servers_.end(), at) - servers_.begin());
  if (server > most_servers || at.address == other) server = others;
  if (server == servers_.size()) servers_.push_back(at);
  connections_[connections_used_] = std::make_unique<connections>(std::move(role), std::move(node), server);
  return connections_used_++;
}

}  // namespace holdfast::detail
