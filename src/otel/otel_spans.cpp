// SPDX-License-Identifier: BSL-1.0
#include <holdfast/otel_spans.hpp>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/span.h>
#include <opentelemetry/trace/span_metadata.h>
#include <opentelemetry/trace/span_startoptions.h>
#include <opentelemetry/trace/tracer.h>
#include <opentelemetry/trace/tracer_provider.h>

#include "metrics/label.hpp"

namespace holdfast {
namespace {

namespace api = opentelemetry::trace;
namespace nostd = opentelemetry::nostd;
using span = nostd::shared_ptr<api::Span>;

nostd::string_view text(std::string_view of) { return {of.data(), of.size()}; }

bool ends_call(event_kind kind) {
  return kind == event_kind::acquired || kind == event_kind::reentered || kind == event_kind::not_acquired ||
         kind == event_kind::acquire_failed || kind == event_kind::acquire_cancelled;
}

/// Decision: spans of calls and holds, none of commands. An event comes when something ends, with its duration, so the
/// span of a call is made at its end and gets its beginning then. Its parent cannot be the active span: an observer
/// runs on the client's strand, in no task. The event names the owner, and the program knows that owner's span. A
/// command could be the child of such a span only by guess: one renewal confirms a hundred holds, and the first waiter
/// of a line asks for all behind it. measured() reports the duration of each script at each server, for a histogram. A
/// hold is found by its name, which a renewal knows, too.
class spans final : public observer {
 public:
  explicit spans(otel_span_options options)
      : options_(std::move(options)), tracer_(api::Provider::GetTracerProvider()->GetTracer("holdfast")) {}

  void on(const event& event) noexcept override try {
    using kind = event_kind;
    if (ends_call(event.kind)) tell_call(event);
    if (!options_.holds) return;
    if (event.kind == kind::acquired) return begin_hold(event);
    if (ends_hold(event.kind)) return end_hold(event);
    if (event.kind == kind::renewal_failed || event.kind == kind::suspended || event.kind == kind::restored)
      note(event.lock_kind, event.name, text(to_string(event.kind)));
  } catch (...) {  // a span less
  }

  void measured(const measurement& measured) noexcept override try {
    if (options_.holds && measured.kind == measurement_kind::renewed)
      note(measured.lock_kind, measured.name, "renewed");
  } catch (...) {  // an event less
  }

  bool wants_ids() const noexcept override { return false; }

 private:
  /// A client has one hold of a name of a kind at a time. Of several clients the last one counts.
  using hold_key = std::pair<std::string, std::string>;
  struct hold_span {
    std::optional<owner_id> owner;
    span at;
  };

  span begin(const event& event, nostd::string_view act, std::chrono::nanoseconds ago) const {
    api::StartSpanOptions options;
    options.start_system_time =
        opentelemetry::common::SystemTimestamp(std::chrono::system_clock::now().time_since_epoch() - ago);
    options.start_steady_time =
        opentelemetry::common::SteadyTimestamp(std::chrono::steady_clock::now().time_since_epoch() - ago);
    opentelemetry::context::Context root;
    options.parent = root.SetValue(api::kIsRootSpanKey, true);
    if (options_.parent && event.owner)
      if (const auto of = options_.parent(*event.owner); of.IsValid()) options.parent = of;
    auto begun = tracer_->StartSpan(act, {{"lock.type", text(event.lock_kind)}}, options);
    // A name that is not UTF-8 would make an exporter drop the whole batch.
    if (options_.lock_names && !event.name.empty())
      begun->SetAttribute("lock.name", text(detail::label_of(event.name)));
    return begun;
  }

  static void fail(api::Span& span, const event& event) {
    if (event.reason) span.SetAttribute("error.type", nostd::string_view(event.reason.message()));
    span.SetStatus(api::StatusCode::kError, text(event.detail));
  }

  void tell_call(const event& event) const {
    const auto call = begin(event, "lock.acquire", event.waited);
    call->SetAttribute("lock.outcome", text(to_string(event.kind)));
    if (event.kind == event_kind::acquire_failed) fail(*call, event);
    call->End();
  }

  void begin_hold(const event& event) {
    hold_span begun{event.owner, begin(event, "lock.hold", std::chrono::nanoseconds())};
    const std::lock_guard lock(holding_);
    // An earlier span that was never ended is destroyed without the mutex.
    std::swap(holds_[hold_key(event.lock_kind, event.name)], begun);
  }

  void end_hold(const event& event) {
    span ended;
    {
      const std::lock_guard lock(holding_);
      const auto found = holds_.find(hold_key(event.lock_kind, event.name));
      // The end of another owner's hold may be reported late, when this one has begun already.
      if (found == holds_.end() || found->second.owner != event.owner) return;
      ended = std::move(found->second.at);
      holds_.erase(found);
    }
    ended->SetAttribute("lock.end", text(to_string(event.kind)));
    if (event.kind == event_kind::lost) ended->SetAttribute("lock.loss.reason", text(to_string(event.cause)));
    if (event.kind == event_kind::lost || event.kind == event_kind::release_failed) fail(*ended, event);
    ended->End();
  }

  void note(std::string_view lock_kind, std::string_view name, nostd::string_view act) {
    const std::lock_guard lock(holding_);
    const auto found = holds_.find(hold_key(lock_kind, name));
    if (found != holds_.end()) found->second.at->AddEvent(act);
  }

  const otel_span_options options_;
  const nostd::shared_ptr<api::Tracer> tracer_;
  std::mutex holding_;
  std::map<hold_key, hold_span> holds_;
};

}  // namespace

std::shared_ptr<observer> otel_spans(otel_span_options options) { return std::make_shared<spans>(std::move(options)); }

}  // namespace holdfast
