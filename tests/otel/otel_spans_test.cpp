// SPDX-License-Identifier: BSL-1.0
#include <holdfast/otel_spans.hpp>

#include <holdfast/owner.hpp>

#include <stdexcept>
#include <string>
#include <vector>

#include <opentelemetry/exporters/memory/in_memory_span_exporter.h>
#include <opentelemetry/sdk/trace/simple_processor.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/scope.h>

#include "support/catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
namespace api = opentelemetry::trace;
namespace nostd = opentelemetry::nostd;
namespace sdk = opentelemetry::sdk::trace;
using kind = event_kind;

namespace {

struct collector {
  collector() {
    auto exporter = std::make_unique<opentelemetry::exporter::memory::InMemorySpanExporter>();
    data = exporter->GetData();
    api::Provider::SetTracerProvider(nostd::shared_ptr<api::TracerProvider>(
        new sdk::TracerProvider(std::make_unique<sdk::SimpleSpanProcessor>(std::move(exporter)))));
  }
  /// "lock.acquire lock.outcome=acquired lock.type=mutex", in the order in which they ended.
  static std::string written(const sdk::SpanData& s) {
    std::string all(s.GetName());
    for (const auto& name : {"lock.end", "lock.loss.reason", "lock.name", "lock.outcome", "lock.type"})
      if (const auto found = s.GetAttributes().find(name); found != s.GetAttributes().end())
        all += ' ' + std::string(name) + '=' + nostd::get<std::string>(found->second);
    for (const auto& e : s.GetEvents()) all += " +" + e.GetName();
    return all + (s.GetStatus() == api::StatusCode::kError ? " error" : "");
  }
  std::vector<std::string> spans() {
    std::vector<std::string> all;
    for (const auto& s : ended = data->GetSpans()) all.push_back(written(*s));
    return all;
  }

  std::shared_ptr<opentelemetry::exporter::memory::InMemorySpanData> data;
  std::vector<std::unique_ptr<sdk::SpanData>> ended;
};

}  // namespace

TEST_CASE("a call is a span from its beginning to its outcome, in the span of its owner's task") {
  collector all;
  const owner_id task = owner(), other = owner();
  const auto request = api::Provider::GetTracerProvider()->GetTracer("test")->StartSpan("request");
  const auto told = otel_spans(
      {.parent = [&](owner_id who) { return who == task ? request->GetContext() : api::SpanContext::GetInvalid(); }});
  const auto elsewhere = api::Provider::GetTracerProvider()->GetTracer("test")->StartSpan("elsewhere");
  const api::Scope active(elsewhere);  // what this thread happens to do is no parent
  told->on({.kind = kind::acquired, .name = "a", .waited = 2s, .owner = task, .lock_kind = "mutex"});
  told->on({.kind = kind::not_acquired, .name = "a", .owner = other, .lock_kind = "mutex"});
  told->on({.kind = kind::acquire_failed, .reason = errc::unreachable, .detail = "no answer", .lock_kind = "mutex"});
  told->on({.kind = kind::released, .name = "a", .lock_kind = "mutex"});
  CHECK(all.spans() == std::vector<std::string>{"lock.acquire lock.outcome=acquired lock.type=mutex",
                                                "lock.acquire lock.outcome=not_acquired lock.type=mutex",
                                                "lock.acquire lock.outcome=acquire_failed lock.type=mutex error"});
  REQUIRE(all.ended.size() == 3);
  const auto& first = *all.ended[0];
  CHECK(first.GetParentSpanId() == request->GetContext().span_id());
  CHECK(first.GetTraceId() == request->GetContext().trace_id());
  CHECK((first.GetDuration() >= 2s && first.GetDuration() < 60s));
  CHECK(first.GetSpanKind() == api::SpanKind::kInternal);
  for (const auto n : {1u, 2u}) {
    CHECK_FALSE(all.ended[n]->GetParentSpanId().IsValid());
    CHECK(all.ended[n]->GetTraceId() != elsewhere->GetContext().trace_id());
  }
  CHECK(all.ended[2]->GetDescription() == "no answer");
}

TEST_CASE("a hold is a span until its end, and what happens meanwhile is an event of it") {
  collector all;
  const auto told = otel_spans({.holds = true, .lock_names = true});
  for (const auto* name : {"a", "b", "c"}) told->on({.kind = kind::acquired, .name = name, .lock_kind = "mutex"});
  told->measured({.kind = measurement_kind::renewed, .lock_kind = "mutex", .name = "a", .left = 1s, .ttl = 3s});
  told->measured({.kind = measurement_kind::renewed, .lock_kind = "simple_mutex", .name = "a"});  // not held
  told->on({.kind = kind::renewal_failed, .name = "b", .lock_kind = "mutex"});
  told->on({.kind = kind::reentered, .name = "a", .lock_kind = "mutex"});
  told->on({.kind = kind::released, .name = "a", .lock_kind = "mutex"});
  told->on({.kind = kind::lost,
            .name = "b",
            .reason = errc::lost,
            .detail = "cut off",
            .lock_kind = "mutex",
            .cause = loss_cause::unconfirmed});
  told->on({.kind = kind::released, .name = "a", .lock_kind = "mutex"});  // was told of already
  const auto said = all.spans();
  REQUIRE(said.size() == 6);
  CHECK(said[3] == "lock.acquire lock.name=a lock.outcome=reentered lock.type=mutex");
  CHECK(said[4] == "lock.hold lock.end=released lock.name=a lock.type=mutex +renewed");
  CHECK(said[5] ==
        "lock.hold lock.end=lost lock.loss.reason=unconfirmed lock.name=b lock.type=mutex +renewal_failed error");
}

TEST_CASE("a parent that throws costs its span, and nothing else") {
  collector all;
  const owner_id task = owner();
  const auto told = otel_spans({.parent = [](owner_id) -> api::SpanContext { throw std::runtime_error("no"); }});
  told->on({.kind = kind::acquired, .owner = task, .lock_kind = "mutex"});
  told->on({.kind = kind::acquired, .lock_kind = "mutex"});
  CHECK(all.spans().size() == 1);
}
