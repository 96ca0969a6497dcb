// SPDX-License-Identifier: BSL-1.0
#include "metrics/exposition.hpp"

#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <string_view>

namespace holdfast::detail {

template <class Visit>
void exposition::each_series(Visit visit) const {
  counted_.kinds_.each([&](std::string_view kind, const lock_series& rest, std::size_t index) {
    if (counted_.room_ > 0)
      for (const auto& [label, series] : counted_.by_label_[index]) visit(kind, label, series);
    visit(kind, counted_.room_ > 0 ? other : std::string_view(), rest);
  });
}

std::string exposition::text() {
  {
    const std::shared_lock lock(counted_.naming_);
    write_locks();
    write_workers();
  }
  write_renewals();
  write_commands();
  write_connections();
  write_events();
  return out_.text();
}

void exposition::write_locks() {
  // An empty histogram is left out. A counter that an alarm needs is not: the first loss must be an increase.
  const auto histogram = [this](text_format::labels with, const durations& of) {
    if (of.count() > 0) out_.sample(with, of);
  };
  out_.family("holdfast_lock_wait_duration_seconds", "histogram", "From the call of lock() to its outcome.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    for (std::size_t n = 0; n < call_ends.size(); ++n)
      histogram({{"kind", kind}, {"lock", lock}, {"outcome", to_string(call_ends[n])}}, of.waits(n));
  });
  out_.family("holdfast_lock_hold_duration_seconds", "histogram", "From the grant of a hold to its end.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    for (std::size_t n = 0; n < hold_ends.size(); ++n)
      histogram({{"kind", kind}, {"lock", lock}, {"end", to_string(hold_ends[n])}}, of.holds(n));
  });
  out_.family("holdfast_lock_held", "gauge", "Holds at present; several leases of one owner are one hold.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    out_.sample({{"kind", kind}, {"lock", lock}}, of.held());
  });
  out_.family("holdfast_lock_waiters", "gauge", "Calls that stand in line at present.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    out_.sample({{"kind", kind}, {"lock", lock}}, of.waiters.get());
  });
  out_.family("holdfast_pushed_total", "counter", "Changes by other clients that the server has pushed.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    out_.sample({{"kind", kind}, {"lock", lock}}, of.pushed.get());
  });
  out_.family("holdfast_lock_lost_total", "counter", "Holds that ended without their holder's wish, by what is known.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    for (std::size_t n = 0; n < of.losses.size(); ++n) {
      const auto reason = static_cast<loss_cause>(n);
      const auto lost = of.losses[n].get();
      if (reason == loss_cause::none && lost == 0) continue;  // who is told of each has a cause
      out_.sample({{"kind", kind}, {"lock", lock}, {"reason", to_string(reason)}}, lost);
    }
  });
}

void exposition::write_workers() {
  out_.family("holdfast_keep_workers", "gauge", "Workers of keep_running() at present, by their state.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    if (!of.has_workers()) return;
    for (std::size_t n = 0; n < of.workers.size(); ++n)
      if (const auto state = static_cast<worker_state>(n); state != worker_state::stopped)
        out_.sample({{"kind", kind}, {"lock", lock}, {"state", to_string(state)}}, of.workers[n].get());
  });
  out_.family("holdfast_keep_runs_total", "counter", "Runs of the bodies of keep_running() that have ended.");
  each_series([&](std::string_view kind, std::string_view lock, const lock_series& of) {
    if (!of.has_workers()) return;
    for (std::size_t n = 0; n < of.runs.size(); ++n)
      out_.sample({{"kind", kind}, {"lock", lock}, {"outcome", to_string(static_cast<run_outcome>(n))}},
                  of.runs[n].get());
  });
}

void exposition::write_renewals() {
  out_.family("holdfast_lock_renewals_total", "counter", "Renewals in the background, of one hold at one server each.");
  out_.sample({{"outcome", "confirmed"}}, counted_.confirmed_renewals_.get());
  out_.sample({{"outcome", "failed"}}, counted_.events_[static_cast<std::size_t>(event_kind::renewal_failed)].get());
  out_.family("holdfast_lock_renewal_slack_ratio", "histogram",
              "What was left of the validity when a renewal was confirmed, as a part of the TTL.");
  out_.sample({}, counted_.slack_);
  out_.family("holdfast_lock_wakeups_total", "counter", "How often the first of a line asked Redis again.");
  out_.sample({{"result", "useful"}}, counted_.woken_.get());
  out_.sample({{"result", "spurious"}}, counted_.woken_in_vain_.get());
  out_.sample({{"result", "poll"}}, counted_.polled_.get());
  out_.family("holdfast_lock_fence_rejections_total", "counter",
              "Tasks that their resource refused, as the program said.");
  out_.sample({}, counted_.fence_rejections_.get());
}

void exposition::write_commands() {
  const auto servers = [this] {
    const std::lock_guard lock(counted_.connecting_);
    return counted_.servers_;
  }();
  out_.family("db_client_operation_duration_seconds", "histogram",
              "From when a command about a lock was written until its answer was read.");
  counted_.commands_.each([&](std::string_view name, const metric_store::command& of, std::size_t) {
    const bool script = of.script();
    const auto write = [&](const metric_store::server& at, const metric_store::durations_of_command& took) {
      for (std::size_t n = 0; n < metric_store::failures.size(); ++n)
        if (took[n].count() > 0)
          out_.sample({{"db_system_name", "redis"},
                       {"db_operation_name", script ? "EVALSHA" : name},
                       {"db_stored_procedure_name", script ? name : ""},
                       {"server_address", at.address},
                       {"server_port", at.port},
                       {"error_type", metric_store::failures[n]}},
                      took[n]);
    };
    for (std::size_t n = 0; n < servers.size(); ++n)
      if (const auto* took = of.took(n)) write(servers[n], *took);
  });
}

void exposition::write_connections() {
  const std::lock_guard lock(counted_.connecting_);
  out_.family("holdfast_connections", "gauge", "Connections that are there at present.");
  const auto each = [&](counter metric_store::connections::*number) {
    const auto sample = [&](const metric_store::connections& of) {
      out_.sample({{"role", of.role}, {"node", of.node}}, (of.*number).get());
    };
    for (std::size_t n = counted_.connections_crowded_ ? metric_store::others : metric_store::others + 1;
         n < counted_.connections_used_; ++n)
      sample(*counted_.connections_[n]);
  };
  each(&metric_store::connections::up);
  out_.family("holdfast_connection_in_flight", "gauge", "Commands that were written and have no answer at present.");
  each(&metric_store::connections::in_flight);
  out_.family("holdfast_connection_reconnects_total", "counter",
              "How often a connection was made that was lost before.");
  each(&metric_store::connections::again);
}

void exposition::write_events() {
  out_.family("holdfast_events_total", "counter", "What the observer was told, by its kind.");
  for (std::size_t n = 0; n < counted_.events_.size(); ++n)
    out_.sample({{"event", to_string(static_cast<event_kind>(n))}}, counted_.events_[n].get());
}

}  // namespace holdfast::detail
