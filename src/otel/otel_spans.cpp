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

bool ends_call(event_kind k) {
  return k == event_kind::acquired || k == event_kind::reentered || k == event_kind::not_acquired ||
         k == event_kind::acquire_failed || k == event_kind::acquire_cancelled;
}

class spans final : public observer {
 public:
  explicit spans(otel_span_options how)
      : how_(std::move(how)), tracer_(api::Provider::GetTracerProvider()->GetTracer("holdfast")) {}

  void on(const event& e) noexcept override try {
    using kind = event_kind;
    if (ends_call(e.what)) tell_call(e);
    if (!how_.holds) return;
    if (e.what == kind::acquired) return begin_hold(e);
    if (ends_hold(e.what)) return end_hold(e);
    if (e.what == kind::renewal_failed || e.what == kind::suspended || e.what == kind::restored)
      note(e.lock_kind, e.name, text(to_string(e.what)));
  } catch (...) {  // a span less
  }

  void measured(const measurement& m) noexcept override try {
    if (how_.holds && m.what == measurement_kind::renewed) note(m.lock_kind, m.name, "renewed");
  } catch (...) {  // an event less
  }

  bool wants_ids() const noexcept override { return false; }

 private:
  /// A client has one hold of a name of a kind at a time; of several clients the last one's is meant.
  using hold_key = std::pair<std::string, std::string>;
  struct hold_span {
    std::optional<owner_id> whose;
    span at;
  };

  span begin(const event& e, nostd::string_view what, std::chrono::nanoseconds ago) const {
    api::StartSpanOptions options;
    options.start_system_time =
        opentelemetry::common::SystemTimestamp(std::chrono::system_clock::now().time_since_epoch() - ago);
    options.start_steady_time =
        opentelemetry::common::SteadyTimestamp(std::chrono::steady_clock::now().time_since_epoch() - ago);
    opentelemetry::context::Context root;
    options.parent = root.SetValue(api::kIsRootSpanKey, true);
    if (how_.parent && e.owner)
      if (const auto of = how_.parent(*e.owner); of.IsValid()) options.parent = of;
    auto begun = tracer_->StartSpan(what, {{"lock.type", text(e.lock_kind)}}, options);
    // A name that is not UTF-8 would make an exporter drop the whole batch.
    if (how_.lock_names && !e.name.empty()) begun->SetAttribute("lock.name", text(detail::label_of(e.name)));
    return begun;
  }

  static void fail(api::Span& which, const event& e) {
    if (e.reason) which.SetAttribute("error.type", nostd::string_view(e.reason.message()));
    which.SetStatus(api::StatusCode::kError, text(e.detail));
  }

  void tell_call(const event& e) const {
    const auto call = begin(e, "lock.acquire", e.waited);
    call->SetAttribute("lock.outcome", text(to_string(e.what)));
    if (e.what == event_kind::acquire_failed) fail(*call, e);
    call->End();
  }

  void begin_hold(const event& e) {
    hold_span begun{e.owner, begin(e, "lock.hold", std::chrono::nanoseconds())};
    const std::lock_guard lock(holding_);
    std::swap(holds_[hold_key(e.lock_kind, e.name)], begun);  // one that nobody has ended does so without the lock
  }

  void end_hold(const event& e) {
    span ended;
    {
      const std::lock_guard lock(holding_);
      const auto found = holds_.find(hold_key(e.lock_kind, e.name));
      // The end of another's may be told late, when this one has begun already.
      if (found == holds_.end() || found->second.whose != e.owner) return;
      ended = std::move(found->second.at);
      holds_.erase(found);
    }
    ended->SetAttribute("lock.end", text(to_string(e.what)));
    if (e.what == event_kind::lost) ended->SetAttribute("lock.loss.reason", text(to_string(e.cause)));
    if (e.what == event_kind::lost || e.what == event_kind::release_failed) fail(*ended, e);
    ended->End();
  }

  void note(std::string_view lock_kind, std::string_view name, nostd::string_view what) {
    const std::lock_guard lock(holding_);
    const auto found = holds_.find(hold_key(lock_kind, name));
    if (found != holds_.end()) found->second.at->AddEvent(what);
  }

  const otel_span_options how_;
  const nostd::shared_ptr<api::Tracer> tracer_;
  std::mutex holding_;
  std::map<hold_key, hold_span> holds_;
};

}  // namespace

std::shared_ptr<observer> otel_spans(otel_span_options how) { return std::make_shared<spans>(std::move(how)); }

}  // namespace holdfast
