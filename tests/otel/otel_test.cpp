// SPDX-License-Identifier: BSL-1.0
#include <holdfast/otel.hpp>

#include <map>
#include <string>

#include <opentelemetry/metrics/provider.h>
#include <opentelemetry/sdk/metrics/data/metric_data.h>
#include <opentelemetry/sdk/metrics/data/point_data.h>
#include <opentelemetry/sdk/metrics/export/metric_producer.h>
#include <opentelemetry/sdk/metrics/meter_provider.h>
#include <opentelemetry/sdk/metrics/metric_reader.h>

#include "support/catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
namespace nostd = opentelemetry::nostd;
namespace sdk = opentelemetry::sdk::metrics;
using kind = event_kind;
using measure = measurement_kind;

namespace {

/// Reads when it is asked.
class reader final : public sdk::MetricReader {
 public:
  sdk::AggregationTemporality GetAggregationTemporality(sdk::InstrumentType) const noexcept override {
    return sdk::AggregationTemporality::kCumulative;
  }

 private:
  bool OnForceFlush(std::chrono::microseconds) noexcept override { return true; }
  bool OnShutDown(std::chrono::microseconds) noexcept override { return true; }
};

template <class Value>
std::string written(const Value& value) {
  if (const auto* number = nostd::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return nostd::get<std::string>(value);
}

/// "holdfast.lock.held lock.type=mutex": of a histogram how many samples there were.
std::map<std::string, double> collected(reader& from) {
  std::map<std::string, double> all;
  from.Collect([&](sdk::ResourceMetrics& said) {
    for (const auto& scope : said.scope_metric_data_)
      for (const auto& metric : scope.metric_data_)
        for (const auto& point : metric.point_data_attr_) {
          auto series = metric.instrument_descriptor.name_;
          for (const auto& [name, value] : point.attributes) series += ' ' + name + '=' + written(value);
          if (const auto* sum = nostd::get_if<sdk::SumPointData>(&point.point_data))
            all[series] = static_cast<double>(nostd::get<std::int64_t>(sum->value_));
          else
            all[series] = static_cast<double>(nostd::get<sdk::HistogramPointData>(point.point_data).count_);
        }
    return true;
  });
  return all;
}

}  // namespace

TEST_CASE("what the metrics count is told to OpenTelemetry by its own names") {
  const auto provider = std::make_shared<sdk::MeterProvider>();
  const auto reads = std::make_shared<reader>();
  provider->AddMetricReader(reads);
  opentelemetry::metrics::Provider::SetMeterProvider(
      nostd::shared_ptr<opentelemetry::metrics::MeterProvider>(provider));
  const auto told = otel_metrics();
  for (const auto what : {kind::acquired, kind::acquired, kind::reentered, kind::released})
    told->on({.kind = what, .waited = 1ms, .held = 1s, .lock_kind = "mutex"});
  told->on({.kind = kind::lost, .lock_kind = "mutex", .cause = loss_cause::denied});
  told->on({.kind = kind::acquired, .lock_kind = "simple_mutex"});
  told->on({.kind = kind::renewal_failed, .lock_kind = "mutex"});
  told->measured({.kind = measure::wait_began, .lock_kind = "mutex"});
  told->measured({.kind = measure::wait_began, .lock_kind = "mutex"});
  told->measured({.kind = measure::wait_ended, .lock_kind = "mutex"});
  told->measured({.kind = measure::woken_in_vain});
  told->measured({.kind = measure::renewed, .lock_kind = "mutex", .left = 2s, .ttl = 3s});
  const connection_facts there{.number = 1, .role = "command", .node = "redis://r:6379", .address = "r", .port = 6379};
  for (const auto what : {measure::connection_up, measure::connection_down, measure::connection_up})
    told->measured({.kind = what, .connection = &there, .count = 2});
  for (const int change : {3, -1}) told->measured({.kind = measure::in_flight, .connection = &there, .count = change});
  told->measured({.kind = measure::command, .script = true, .name = "acquire", .connection = &there, .took = 1ms});
  told->measured({.kind = measure::command, .name = "HGET", .failure = errc::unconfirmed});

  const std::map<std::string, double> expected{
      {"holdfast.lock.wait.duration lock.type=mutex outcome=acquired", 2},
      {"holdfast.lock.wait.duration lock.type=mutex outcome=reentered", 1},
      {"holdfast.lock.wait.duration lock.type=simple_mutex outcome=acquired", 1},
      {"holdfast.lock.hold.duration end=released lock.type=mutex", 1},
      {"holdfast.lock.hold.duration end=lost lock.type=mutex", 1},
      {"holdfast.lock.held lock.type=mutex", 0},
      {"holdfast.lock.held lock.type=simple_mutex", 1},
      {"holdfast.lock.waiters lock.type=mutex", 1},
      {"holdfast.lock.lost lock.type=mutex reason=denied", 1},
      {"holdfast.lock.renewals lock.type=mutex outcome=failed", 1},
      {"holdfast.lock.renewals lock.type=mutex outcome=confirmed", 1},
      {"holdfast.lock.renewal.slack lock.type=mutex", 1},
      {"holdfast.lock.wakeups result=spurious", 1},
      {"db.client.operation.duration db.operation.name=EVALSHA db.stored_procedure.name=acquire db.system.name=redis"
       " server.address=r server.port=6379",
       1},
      {"db.client.operation.duration db.operation.name=HGET db.system.name=redis error.type=unconfirmed", 1},
      {"holdfast.connections node=redis://r:6379 role=command", 1},
      {"holdfast.connection.in_flight node=redis://r:6379 role=command", 2},
      {"holdfast.connection.reconnects node=redis://r:6379 role=command", 2}};
  CHECK(collected(*reads) == expected);
}
