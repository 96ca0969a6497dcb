// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <opentelemetry/trace/span_context.h>
#include <holdfast/observer.hpp>

#include <functional>
#include <memory>

namespace holdfast {

struct otel_span_options {
  /// The span that an owner's task works in: the parent of its spans. An observer is called in no task, so it cannot
  /// ask OpenTelemetry for the one that is active. Where this is empty, or gives an invalid one, a span begins a trace
  /// of its own. Called as observer::on() is; what it throws is dropped, and the span with it.
  std::function<opentelemetry::trace::SpanContext(owner_id)> parent{};
  bool holds = false;       ///< `lock.hold` spans, too
  bool lock_names = false;  ///< the attribute `lock.name`
};

/// Spans of the tracer provider that the process has set when it is made, for config::observer; any number of clients
/// may have the same one. All are INTERNAL and have `lock.type`.
///
///   lock.acquire  from the call of lock(), try_lock() or try_lock_for() to its outcome, which is `lock.outcome`;
///                 an error where that is acquire_failed
///   lock.hold     from a grant to its end, which is `lock.end`; an error where that is lost or release_failed.
///                 What happens meanwhile is an event: renewed, renewal_failed, suspended, restored
///
/// The span of a hold ends when its client tells of the end; at the latest with the observer, or when somebody else is
/// granted the lock. Of the CMake target holdfast::otel.
std::shared_ptr<observer> otel_spans(otel_span_options options = {});

}  // namespace holdfast
