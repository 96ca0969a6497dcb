// SPDX-License-Identifier: BSL-1.0
#include <holdfast/otel.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <opentelemetry/common/key_value_iterable_view.h>
#include <opentelemetry/metrics/meter.h>
#include <opentelemetry/metrics/meter_provider.h>
#include <opentelemetry/metrics/provider.h>
#include <opentelemetry/metrics/sync_instruments.h>

namespace holdfast {
namespace {

namespace api = opentelemetry::metrics;
namespace nostd = opentelemetry::nostd;
using attribute = std::pair<nostd::string_view, opentelemetry::common::AttributeValue>;
using attributes = std::initializer_list<attribute>;

nostd::string_view text(std::string_view of) { return {of.data(), of.size()}; }

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

class otel_observer final : public observer {
 public:
  otel_observer() : meter_(api::Provider::GetMeterProvider()->GetMeter("holdfast")) {}

  void on(const event& event) noexcept override {
    using kind = event_kind;
    const attribute type{"lock.type", text(event.lock_kind)};
    switch (event.kind) {
      case kind::acquired: held_->Add(1, {type}); [[fallthrough]];
      case kind::reentered:
      case kind::not_acquired:
      case kind::acquire_failed:
      case kind::acquire_cancelled:
        return record(*waits_, seconds(event.waited), {type, {"outcome", text(to_string(event.kind))}});
      case kind::lost: lost_->Add(1, {type, {"reason", text(to_string(event.cause))}}); break;
      case kind::renewal_failed: return renewals_->Add(1, {type, {"outcome", "failed"}});
      default: break;
    }
    if (!ends_hold(event.kind)) return;
    held_->Add(-1, {type});
    record(*holds_, seconds(event.held), {type, {"end", text(to_string(event.kind))}});
  }

  void measured(const measurement& measured) noexcept override {
    using kind = measurement_kind;
    const attribute type{"lock.type", text(measured.lock_kind)};
    switch (measured.kind) {
      case kind::wait_began: return waiters_->Add(1, {type});
      case kind::wait_ended: return waiters_->Add(-1, {type});
      case kind::woken: return wakeups_->Add(1, {{"result", "useful"}});
      case kind::woken_in_vain: return wakeups_->Add(1, {{"result", "spurious"}});
      case kind::polled: return wakeups_->Add(1, {{"result", "poll"}});
      case kind::pushed: return pushed_->Add(1, {type});
      case kind::renewed:
        renewals_->Add(1, {type, {"outcome", "confirmed"}});
        return record(*slack_, measured.ttl.count() > 0 ? seconds(measured.left) / seconds(measured.ttl) : 0, {type});
      case kind::command: return count_command(measured);
      case kind::worker_entered: return workers_->Add(1, {type, {"state", text(to_string(measured.state))}});
      case kind::worker_left: return workers_->Add(-1, {type, {"state", text(to_string(measured.state))}});
      case kind::worker_run_ended: return runs_->Add(1, {type, {"outcome", text(to_string(measured.outcome))}});
      case kind::connection_up:
      case kind::in_flight:
      case kind::connection_down:
        if (measured.connection) count_connection(measured, *measured.connection);
        return;
    }
  }

  bool wants_ids() const noexcept override { return false; }

 private:
  template <class Number>
  using histogram = nostd::unique_ptr<api::Histogram<Number>>;
  using counter = nostd::unique_ptr<api::Counter<std::uint64_t>>;
  using up_down = nostd::unique_ptr<api::UpDownCounter<std::int64_t>>;

  void record(api::Histogram<double>& into, double value, attributes with) const noexcept {
    into.Record(value, with, nowhere_);
  }

  void count_connection(const measurement& measured, const connection_facts& of) const noexcept {
    const attribute role{"role", text(of.role)}, node{"node", text(of.node)};
    if (measured.kind == measurement_kind::in_flight) return in_flight_->Add(measured.count, {role, node});
    const bool up = measured.kind == measurement_kind::connection_up;
    connections_->Add(up ? 1 : -1, {role, node});
    if (up && measured.count > 1) reconnects_->Add(1, {role, node});
  }

  void count_command(const measurement& measured) const noexcept {
    std::array<attribute, 6> all{attribute{"db.system.name", "redis"},
                                 attribute{"db.operation.name", measured.script ? "EVALSHA" : text(measured.name)}};
    std::size_t used = 2;
    if (measured.script) all[used++] = {"db.stored_procedure.name", text(measured.name)};
    if (measured.failure != errc{})
      all[used++] = {"error.type", measured.failure == errc::unconfirmed ? "unconfirmed" : "error_reply"};
    if (measured.connection) all[used++] = {"server.address", text(measured.connection->address)};
    if (measured.connection && measured.connection->port != 0)
      all[used++] = {"server.port", static_cast<std::int64_t>(measured.connection->port)};
    const nostd::span<const attribute> with(all.data(), used);
    commands_->Record(seconds(measured.took), opentelemetry::common::KeyValueIterableView(with), nowhere_);
  }

  const opentelemetry::context::Context nowhere_;
  const nostd::shared_ptr<api::Meter> meter_;
  const histogram<double> waits_ =
      meter_->CreateDoubleHistogram("holdfast.lock.wait.duration", "From the call of lock() to its outcome", "s");
  const histogram<double> holds_ =
      meter_->CreateDoubleHistogram("holdfast.lock.hold.duration", "From the grant of a hold to its end", "s");
  const histogram<double> slack_ = meter_->CreateDoubleHistogram(
      "holdfast.lock.renewal.slack", "Of the validity, what was left when a renewal was confirmed", "1");
  const histogram<double> commands_ = meter_->CreateDoubleHistogram(
      "db.client.operation.duration", "From when a command was written until its answer was read", "s");
  const up_down held_ = meter_->CreateInt64UpDownCounter("holdfast.lock.held", "Holds at present", "{hold}");
  const up_down waiters_ =
      meter_->CreateInt64UpDownCounter("holdfast.lock.waiters", "Calls that stand in line at present", "{call}");
  const up_down connections_ =
      meter_->CreateInt64UpDownCounter("holdfast.connections", "Connections at present", "{connection}");
  const up_down in_flight_ = meter_->CreateInt64UpDownCounter(
      "holdfast.connection.in_flight", "Commands that were written and have no answer at present", "{command}");
  const counter renewals_ =
      meter_->CreateUInt64Counter("holdfast.lock.renewals", "Renewals in the background", "{renewal}");
  const counter lost_ = meter_->CreateUInt64Counter("holdfast.lock.lost", "Holds that were lost", "{hold}");
  const up_down workers_ = meter_->CreateInt64UpDownCounter(
      "holdfast.keep.workers", "Workers of keep_running() at present, by their state", "{worker}");
  const counter runs_ = meter_->CreateUInt64Counter("holdfast.keep.runs",
                                                    "Runs of the bodies of keep_running() that have ended", "{run}");
  const counter wakeups_ =
      meter_->CreateUInt64Counter("holdfast.lock.wakeups", "How often the first of a line asked again", "{attempt}");
  const counter pushed_ =
      meter_->CreateUInt64Counter("holdfast.pushed", "Changes by other clients that the server has pushed", "{change}");
  const counter reconnects_ = meter_->CreateUInt64Counter("holdfast.connection.reconnects",
                                                          "Connections that were made after a loss", "{connection}");
};

}  // namespace

std::shared_ptr<observer> otel_metrics() { return std::make_shared<otel_observer>(); }

}  // namespace holdfast
