// SPDX-License-Identifier: BSL-1.0
#include "redis/connection.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::redis {

namespace {

// Deadlines that lie closer together are looked at together: a look costs a walk along the queue.
constexpr auto resolution = std::chrono::milliseconds{1};

// What only a subscriber gets. Taken for an answer it would leave every later command with the answer to the one before.
bool is_push(const reply& r) {
  return r.type == reply::kind::array && r.elements.size() >= 3 && r.elements.front().text.ends_with("message");
}

}  // namespace

connection::connection(const services& given, endpoint node, event_sink events)
    : link(given, std::move(node)), events_(std::move(events)),
      pending_(this->node().pending_commands, this->node().patience), deadline_(given.alarms) {}

void connection::execute(std::string command, detail::time_point deadline, handler done) {
  const auto now = given().now();
  if (auto why = refusal(deadline, now)) {
    asio::post(given().strand,
               [self = shared_from_this(), this, done = std::move(done), why = *std::move(why)]() mutable {
                 if (!closed()) done({why.code, {}, std::move(why.detail)});
               });
    return;
  }
  pending_.push(std::move(command), deadline, now, std::move(done));
  if (!deadline_.due() || deadline < *deadline_.due()) look_at(deadline);
  if (up())
    flush_soon(pending_.size() == 1);
  else
    demand_changed();
}

std::optional<failure> connection::refusal(detail::time_point deadline, detail::time_point now) const {
  if (closed()) return fail(node(), errc::closed, "the connection is closed");
  if (inherited()) return fail(node(), errc::closed, "the connection is the parent process's");
  if (const auto* why = standing_failure()) return *why;
  if (pending_.full()) return fail(node(), errc::overloaded, std::to_string(pending_.size()) + " commands are pending");
  if (deadline <= now) return fail(node(), errc::unreachable, "the deadline had passed before the command was sent");
  return std::nullopt;
}

void connection::keep_watch(bool on) {
  watch_ = on;
  if (!closed()) demand_changed();
}

void connection::on_up(const handshake& introduced) {
  id_ = introduced.id();
  predecessor_.reset();
  outage_.reset();
  report_fencing(introduced.fencing_refused());
  report(event::kind::connected, errc{}, node().to_string());
  if (!closed() && listener_) listener_(true);
}

void connection::on_reply(reply r) {
  if (is_push(r)) return drop(fail(node(), errc::protocol_error, "a message on a connection without subscriptions"));
  auto done = pending_.take_answered(last_input());
  if (!done) return drop(fail(node(), errc::protocol_error, "a reply that nobody asked for"));
  const bool demoted = r.is_error() && r.text.find("READONLY") != std::string::npos;  // Redis 6 puts it into a sentence
  if (*done) (*done)({{}, std::move(r), {}});
  // It was the primary when it was connected: its address may belong to another by now.
  if (demoted && up()) drop(fail(node(), errc::not_primary, "the server has become a replica"));
}

void connection::on_settled() {
  if (pending_.empty()) deadline_.stop();
}

void connection::look_at(detail::time_point when) {
  if (when != detail::time_point::max()) deadline_.start(when, [this] { on_deadline(); });
}

void connection::on_deadline() {
  const auto self = shared_from_this();
  const auto now = given().now();
  if (input_waiting() && !std::exchange(gave_grace_, true)) return look_at(now + resolution);
  gave_grace_ = false;
  auto r = pending_.look(now, last_input());
  if (r.next) look_at(std::max(*r.next, now + resolution));
  const auto cause = up() ? fail(node(), errc::unreachable, "no answer in time").detail : why_down();
  for (auto& [done, written] : r.over) {
    if (closed()) return;
    done({written ? errc::unconfirmed : errc::unreachable, {}, cause});
  }
  if (closed()) return;
  if (r.silent && up())
    drop(fail(node(), errc::unreachable, "silent: no answer within the timeout of a command"));
  else
    demand_changed();
}

void connection::on_down(const failure& why) {
  if (pending_.any_written() && id_) predecessor_ = id_;
  id_.reset();
  auto lost = pending_.lose_written();
  if (pending_.empty()) deadline_.stop();
  outage_ = why.code;
  report(event::kind::outage, why.code, why.detail);
  if (!closed() && listener_) listener_(false);
  answer(std::move(lost), errc::unconfirmed, why.detail);
}

void connection::on_attempt_failed(const failure& why) {
  if (std::exchange(outage_, why.code) != why.code) report(event::kind::outage, why.code, why.detail);
  if (closed() || why.mends_itself()) return;
  deadline_.stop();
  answer(pending_.lose_waiting(), why.code, why.detail);
}

void connection::on_close() {
  deadline_.stop();
  pending_.clear();
}

void connection::answer(std::vector<handler> whom, errc code, const std::string& detail) {
  for (auto& done : whom) {
    if (closed()) return;
    done({code, {}, detail});
  }
}

void connection::report(event::kind what, errc reason, const std::string& detail) const {
  if (!events_) return;
  event e{what, {}};
  if (reason != errc{}) e.reason = reason;
  e.detail = detail;
  events_(e);
}

void connection::report_fencing(const std::string& words) {
  if (words.empty() || std::exchange(fencing_reported_, true)) return;
  report(event::kind::fencing_degraded, errc::no_permission, node().to_string() + ": " + words);
}

}  // namespace holdfast::redis
