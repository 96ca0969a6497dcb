// SPDX-License-Identifier: BSL-1.0
#include "sync/surroundings.hpp"

#include <memory>
#include <utility>

#include "base/cancelled.hpp"
#include "base/escape.hpp"
#include "sync/hold.hpp"

namespace holdfast::detail {
namespace {

class one_run final : public script_run, public std::enable_shared_from_this<one_run> {
 public:
  one_run(topology& to, script_call call, delivery how, topology::handler done)
      : to_(to), call_(std::move(call)), how_(std::move(how)), done_(std::move(done)) {}

  void send(std::string command) {
    asked_ = to_.execute(call_.key(), {std::move(command), how_,
                                       [self = shared_from_this()](outcome o) { self->answered(std::move(o)); }});
  }
  void begin() { send(call_.by_digest()); }

  bool withdraw() override {
    unwanted_ = true;
    const bool never = to_.withdraw(asked_);
    if (never) done_ = {};
    return never;
  }

 private:
  void answered(outcome o) {
    const bool unknown = !by_text_ && !o.error && is_unknown_script(o.reply);
    if (!unknown || unwanted_) {
      if (const auto done = std::exchange(done_, {})) done(std::move(o));
      return;
    }
    by_text_ = true;
    send(call_.by_text());
  }

  topology& to_;
  const script_call call_;
  const delivery how_;
  topology::handler done_;  // emptied when it is called
  redis::ticket asked_ = 0;
  bool by_text_ = false;
  bool unwanted_ = false;
};

}  // namespace

std::weak_ptr<script_run> surroundings::run(script_call call, delivery how, topology::handler done) const {
  const auto r = std::make_shared<one_run>(servers, std::move(call), std::move(how), std::move(done));
  r->begin();
  return r;
}

void surroundings::report(event::kind what, const hold& h, error_code reason, std::string_view detail) const {
  if (!settings.observer) return;
  auto e = event_of(what, h, now());
  e.reason = reason;
  e.detail = detail;
  report(e);
}

event::kind end_of_call(const error_code& failed) noexcept {
  if (!failed) return event::kind::not_acquired;
  const bool unwanted = failed == cancelled() || failed == errc::closed;
  return unwanted ? event::kind::acquire_cancelled : event::kind::acquire_failed;
}

std::string about(std::string_view name, std::string_view cause) {
  std::string text = "lock '" + escaped(name) + "'";
  if (!cause.empty()) text.append(": ").append(cause);
  return text;
}

}  // namespace holdfast::detail
