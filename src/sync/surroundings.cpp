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

class one_script final : public script_command {
 public:
  explicit one_script(topology::handler done) : done_(std::move(done)) {}

 private:
  void on_answer(const outcome& o) override { std::exchange(done_, {})(o); }

  topology::handler done_;  // emptied when it is called
};

class one_command final : public redis::command {
 public:
  one_command(std::string bytes, topology::handler done) : bytes_(std::move(bytes)), done_(std::move(done)) {}

 private:
  void append_to(std::string& out) const override { out += bytes_; }
  void answered(const outcome& o) override { std::exchange(done_, {})(o); }

  const std::string bytes_;
  topology::handler done_;  // emptied when it is called
};

}  // namespace

void surroundings::run(const script_call& call, const delivery& how, topology::handler done) const {
  std::make_shared<one_script>(std::move(done))->send(servers, call, how);
}

void surroundings::send(std::string_view key, std::string command, const delivery& how, topology::handler done) const {
  servers.execute(key, {std::make_shared<one_command>(std::move(command), std::move(done)), how});
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
