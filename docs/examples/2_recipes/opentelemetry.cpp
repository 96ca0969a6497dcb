// SPDX-License-Identifier: BSL-1.0
// OpenTelemetry: a span for each lock() and each hold, inside the span of the request that asks; and the metrics.
#include <opentelemetry/exporters/memory/in_memory_span_exporter.h>
#include <opentelemetry/sdk/trace/simple_processor.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/trace/provider.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/otel.hpp>
#include <holdfast/otel_spans.hpp>
#include <iostream>
#include <map>
#include <set>
namespace asio = boost::asio;
namespace trace = opentelemetry::trace;
namespace memory = opentelemetry::exporter::memory;
namespace sdk = opentelemetry::sdk::trace;

std::map<holdfast::owner_id, trace::SpanContext> requests;  // with several threads it needs a std::mutex

asio::awaitable<void> handle(holdfast::client& redis, holdfast::owner who) {
  const auto span = trace::Provider::GetTracerProvider()->GetTracer("shop")->StartSpan("request");
  requests.insert({who, span->GetContext()});
  auto lease = co_await redis.mutex("orders:42", who).lock();
  co_await lease.unlock();
  requests.erase(who);
  span->End();
}

trace::SpanContext span_of(holdfast::owner_id who) {  // called on the client's strand
  const auto found = requests.find(who);
  return found == requests.end() ? trace::SpanContext::GetInvalid() : found->second;
}

int main(int argc, char** argv) {
  // Once in a program, before the observers are made. Take the OTLP exporter in place of this one.
  auto exporter = std::make_unique<memory::InMemorySpanExporter>();
  const auto spans = exporter->GetData();
  auto processor = std::make_unique<sdk::SimpleSpanProcessor>(std::move(exporter));
  trace::Provider::SetTracerProvider(
      opentelemetry::nostd::shared_ptr<trace::TracerProvider>(new sdk::TracerProvider(std::move(processor))));
  asio::io_context io;
  holdfast::config settings{.url = argc > 1 ? argv[1] : "redis://localhost"};
  settings.observer = tee(holdfast::otel_metrics(), holdfast::otel_spans({.parent = span_of, .holds = true}));
  holdfast::client redis{io, settings};
  asio::co_spawn(io, handle(redis, holdfast::owner()), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
  std::set<std::string> seen;  // sorted
  for (const auto& span : spans->GetSpans())
    seen.insert(std::string(span->GetName()) + (span->GetParentSpanId().IsValid() ? ", inside the request" : ""));
  for (const auto& line : seen) std::cout << line << '\n';
}

// Output:
//   lock.acquire, inside the request
//   lock.hold, inside the request
//   request
