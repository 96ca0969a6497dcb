// SPDX-License-Identifier: BSL-1.0
#include "sync/surroundings.hpp"

#include <memory>
#include <utility>

#include "base/cancelled.hpp"
#include "base/escape.hpp"
#include "sync/hold.hpp"
#include "sync/script_command.hpp"

namespace holdfast::detail {
namespace {

class one_call final : public script_command {
 public:
  explicit one_call(topology::handler done) : done_(std::move(done)) {}

 private:
  void on_answer(const outcome& o) override { std::exchange(done_, {})(o); }

  topology::handler done_;  // emptied when it is called
};

}  // namespace

void surroundings::run(const call& what, const delivery& how, topology::handler done) const {
  std::make_shared<one_call>(std::move(done))->send(servers, what, how);
}

void surroundings::report(event::kind what, const hold& h, error_code reason, std::string_view detail) const {
  if (!settings.observer) return;
  auto e = event_of(what, h, now());
  e.what.reason = reason;
  e.what.detail = detail;
  report(e);
}

void surroundings::report(hold_event e) const {
  if (!settings.observer) return;
  const auto text = e.id.to_text();
  e.what.id = text;
  report(e.what);
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
