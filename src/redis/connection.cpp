// SPDX-License-Identifier: BSL-1.0
#include "redis/connection.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "redis/error_replies.hpp"

namespace holdfast::redis {

namespace {

// Commands that are overdue within the same millisecond are looked at together.
constexpr auto resolution = std::chrono::milliseconds{1};

// One end, or two, may be an accident. In an outage connections end soon: each lives for a while before it is asked.
constexpr unsigned most_push_ends = 3;
constexpr auto push_proof = std::chrono::milliseconds{250};
constexpr std::chrono::milliseconds first_push_pause = std::chrono::minutes(1),
                                    longest_push_pause = std::chrono::hours(1);
const std::string usable_for_pushes =
    "changes are pushed by Redis 6.2.8 and later of 6.2, and by 7.0.5 and later; earlier ones push nothing, or also a "
    "client's own writes; this is ";

// A message that only a subscriber gets. Taken for an answer, it would shift the answers of all later commands by one.
bool is_push(const reply& reply) {
  return reply.type == reply::kind::array && reply.elements.size() >= 3 &&
         reply.elements.front().text.ends_with("message");
}

// Redis 6 puts READONLY into a sentence. MASTERDOWN is the word of a replica that has lost its primary.
bool is_of_replica(const reply& reply) {
  return reply.is_error() && (reply.text.find("READONLY") != std::string::npos || reply.text.starts_with("MASTERDOWN"));
}

// Another run is another server: its answers prove nothing about the commands of the run before. FNV-1a.
std::uint64_t number_of(std::string_view run) {
  if (run.empty()) return 0;
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : run) hash = (hash ^ byte) * 0x100000001b3;
  return hash != 0 ? hash : 1;
}

// A command is always answered: without memory for the text, the text stays empty.
outcome failed(error_code code, const std::string& detail, detail::time_point sent = {}, std::uint64_t server = 0) {
  outcome outcome{code, {}, {}, sent, server};
  detail::if_memory([&] { outcome.detail = detail; });
  return outcome;
}

}  // namespace

/// Only keys that are asked for are tracked (OPTIN), and writes of this connection are not pushed (NOLOOP). The same
/// command with another client moves the pushes there.
class connection::push_question final : public command {
 public:
  push_question(connection& by, long long to) : by_(by), to_(to) {}

  void append_to(std::string& out) const override {
    const auto client = std::to_string(to_);
    append_command(out,
                   std::array<std::string_view, 7>{"CLIENT", "TRACKING", "ON", "REDIRECT", client, "OPTIN", "NOLOOP"});
  }
  void answered(const outcome& outcome) override { by_.pushes_answered(to_, outcome); }

 private:
  connection& by_;
  const long long to_;
};

connection::connection(const io_services& services, endpoint node, event_sink events)
    : link(services, std::move(node)), events_(std::move(events)),
      pending_({.capacity = this->node().pending_commands, .least_silence_limit = this->node().silence_limit}),
      look_(services.alarms), push_question_pause_(first_push_pause, longest_push_pause) {}

ticket connection::execute(request asked) {
  if (auto why = refusal(asked)) {
    given().post([self = shared_from_this(), command = std::move(asked.command), why = *std::move(why)] {
      if (!self->closed()) command->answered({why.code, {}, why.detail});
    });
    return 0;
  }
  // Other commands are outstanding on a living connection: the timeout begins with the write, and no clock is read.
  if (up() && !pending_.empty() && !pending_.asking()) {
    const auto ticket = pending_.push(std::move(asked), {});
    flush_soon();
    return ticket;
  }
  const auto now = given().now();
  const auto ticket = pending_.push(std::move(asked), now);
  if (up()) {
    flush_alone(now);
    return ticket;
  }
  demand_changed();
  arm();
  return ticket;
}

bool connection::withdraw(ticket ticket) {
  if (ticket == 0) return true;  // refused
  if (!pending_.forget(ticket)) return false;
  if (closed()) return true;
  on_settled();
  demand_changed();
  return true;
}

bool connection::answering() {
  const auto now = given().now();
  if (!up()) return replaced_ && now - *replaced_ < node().silence_limit;
  return !pending_.asking() && (!pending_.silent(now, last_input()) || input_waiting());
}

failure connection::trouble() const {
  if (up()) return fail(node(), errc::unreachable, "no answer in time");
  return {outage_ == errc::server_refused ? errc::server_refused : errc::unreachable, why_down()};
}

std::optional<failure> connection::refusal(const request& asked) const {
  if (closed()) return fail(node(), errc::closed, "the connection is closed");
  if (inherited()) return fail(node(), errc::closed, "the connection is the parent process's");
  if (const auto* why = standing_failure()) return *why;
  if (pending_.refuses(asked.terms))
    return fail(node(), errc::overloaded, std::to_string(pending_.size()) + " commands are pending");
  if (asked.terms.timeout <= decltype(asked.terms.timeout)::zero())
    return fail(node(), errc::unreachable, "no time was left to send the command");
  return std::nullopt;
}

void connection::expect_failover(failover when) {
  failover_ = when;
  if (when == failover::once_primary)
    tolerate([this](const failure& why) { return why.code == errc::not_primary && met_replica() && was_primary_; });
}

void connection::keep_watch(bool on) { set_watch(watch_, on); }

void connection::keep_for_pushes(bool on) { set_watch(watch_for_pushes_, on); }

// A holder that is pushed its own renewals would renew more often.
std::optional<failure> connection::unfit_for_pushes() const {
  if (!up() || !server_.pushes_own_writes()) return std::nullopt;
  return fail(node(), errc::protocol_error, usable_for_pushes + server_.to_string());
}

void connection::set_watch(bool& watch, bool on) {
  if (std::exchange(watch, on) == on || closed()) return;
  demand_changed();
  if (on)
    arm();
  else if (!wanted())
    look_.stop();
  check_idle();
}

void connection::try_again() noexcept {
  if (closed() || !is_down() || std::exchange(tries_again_, true)) return;
  demand_changed();
}

void connection::redirect_pushes(std::optional<handshake::identity> to) {
  if (closed() || pushed_to_ == to) return;
  pushed_to_ = std::move(to);
  set_pushes(push_state::off);
  ask_for_pushes();
}

void connection::ask_for_pushes() {
  pending_.forget(std::exchange(push_question_, 0));
  if (!up() || !pushed_to_ || pushed_to_->run != server_.run) return;
  if (const auto why = unfit_for_pushes()) return refuse_pushes(*why);
  if (given().now() < push_question_from_) return set_pushes(push_state::postponed);
  auto question = std::make_shared<push_question>(*this, pushed_to_->client);
  push_command_ = question.get();
  push_question_ = execute(
      {std::move(question), {.timeout = node().silence_limit, .rank = urgency::obligation, .waits_for_reply = true}});
}

// A client that does not exist has ended since: its connection reports that, and another one follows.
void connection::pushes_answered(long long to, const outcome& outcome) {
  if (outcome.error || !pushed_to_ || pushed_to_->client != to) return;
  push_question_ = 0;
  push_question_ends_ = 0;
  push_question_pause_.reset();
  const auto& reply = outcome.reply;
  if (!reply.is_error()) {
    pending_.track(true);
    return set_pushes(push_state::on);
  }
  if (reply.text.find("does not exist") != std::string::npos) return;
  const auto why = why_no_pushes("CLIENT TRACKING", reply.text);
  if (why.mends_itself()) return set_pushes(push_state::postponed);
  refuse_pushes(why);
}

failure connection::why_no_pushes(std::string_view asked, const std::string& words) const {
  return fail(node(), classify(words, errc::protocol_error).code, std::string(asked) + ": " + quoted(node(), words));
}

// The observer may close the client, and so drop the last reference to this connection.
void connection::refuse_pushes(const failure& why) {
  const auto self = shared_from_this();
  set_pushes(push_state::refused);
  report_no_pushes(why);
}

// A proxy may end the connection upon a command that it does not know: it has answered all before. Then it is asked
// again after pauses that grow, because outages may have ended the connections as well.
void connection::lose_pushes() {
  const auto question = std::exchange(push_question_, 0);
  const bool is_suspect = question != 0 && !pending_.forget(question) && pending_.oldest_lost() == push_command_;
  if (!is_suspect || ++push_question_ends_ < most_push_ends) return set_pushes(push_state::off);
  push_question_from_ = given().now() + push_question_pause_.next(given().random);
  refuse_pushes(fail(node(), errc::unreachable, "the connection ends upon CLIENT TRACKING"));
}

void connection::set_pushes(push_state state) {
  if (state != push_state::on) pending_.track(false);
  if (std::exchange(pushes_, state) != state && pushes_changed_) pushes_changed_();
}

void connection::hold(bool on) {
  if (!std::exchange(held_, on) || on || !up()) return;
  if (pending_.can_write()) flush_soon();
  arm();
}

void connection::on_up(const handshake& introduced) {
  id_ = introduced.id();
  server_ = introduced.server();
  was_primary_ = was_primary_ || introduced.primary();
  const auto before = std::exchange(number_, number_of(server_.run));
  const bool replaced = std::exchange(replaced_, std::nullopt).has_value();
  answered_ = given().now();
  pending_.connected(answered_);
  predecessor_.reset();
  outage_.reset();
  tries_again_ = false;
  report_fencing(introduced.fencing_refused());
  const auto facts = server_.to_string();
  report(event_kind::connected, {}, node().to_string() + (facts.empty() ? facts : ": " + facts));
  const bool same_server = number_ != 0 && number_ == before;
  // A replaced connection to the same server has lost nothing, so the listener is not notified.
  if (!replaced || !same_server) {
    if (replaced && !closed() && listener_) listener_(false);
    if (!closed() && listener_) listener_(true);
  }
  if (push_question_ends_ != 0) push_question_from_ = std::max(push_question_from_, answered_ + push_proof);
  if (up()) ask_for_pushes();
  if (up()) arm();
}

void connection::on_reply(reply&& reply) {
  if (is_push(reply))
    return drop_for(
        [this] { return fail(node(), errc::protocol_error, "a message on a connection without subscriptions"); });
  const auto now = last_input();
  const bool health_check = pending_.asking();
  const auto oldest = pending_.take_answered(now, reply.is_error());
  if (!oldest) return drop_for([this] { return fail(node(), errc::protocol_error, "a reply that nobody asked for"); });
  if (health_check) note_round_trip(now - oldest->sent);
  const bool of_replica = is_of_replica(reply), outage = of_replica && failover_expected();
  if (shows_work(reply) && !outage) answered_ = now;
  was_primary_ = was_primary_ || (oldest->command && oldest->command->shows_primary(reply));
  if (given().counts && oldest->command)
    count(*oldest->command, oldest->sent, now, reply.is_error() ? errc::server_refused : errc{});
  if (oldest->to_caching && reply.is_error())
    if (const auto why = why_no_pushes("CLIENT CACHING", reply.text); !why.mends_itself()) return refuse_pushes(why);
  if (!of_replica) {
    if (oldest->command)
      oldest->command->answered({.error = {},
                                 .reply = std::move(reply),
                                 .sent = oldest->sent,
                                 .server = number_,
                                 .tracked = oldest->tracked && pushes_ == push_state::on});
    return;
  }
  failure why{errc::not_primary, {}};
  detail::each_step step;
  step([&] { why = fail(node(), errc::not_primary, "the server has become a replica"); });
  step([&] {
    if (oldest->command && outage)
      oldest->command->answered(failed(errc::unreachable, why.detail));
    else if (oldest->command)
      oldest->command->answered({{}, std::move(reply), {}, oldest->sent, number_});
  });
  // The server was the primary when it was connected. Its name may lead to another server by now: resolve it again.
  if (up()) step([&] { drop(why); });
  step.rethrow();
}

void connection::fill(std::string& out, std::size_t enough, detail::time_point now) {
  if (held_) return;
  if (pending_.on_wire() == 0 && doubtful(now)) {
    if (pending_.can_write() || health_check_due(now)) pending_.ask(out, answer_limit(pending_.shortest_wait()), now);
  } else {
    pending_.write(out, enough, now);
  }
  count_in_flight(pending_.on_wire());
  arm();
}

void connection::on_settled() {
  count_in_flight(pending_.on_wire());
  if (!pending_.empty()) {
    if (pending_.can_write()) flush_soon();
    return;
  }
  if (!checked()) look_.stop();
  check_idle();
}

bool connection::checked() const noexcept {
  return watch_ && up() && !held_ && node().health_check_interval.count() > 0;
}

bool connection::health_check_due(detail::time_point now) const noexcept {
  return checked() && now - last_input() >= node().health_check_interval;
}

std::optional<detail::time_point> connection::next_look() {
  const auto next = pending_.next_look(last_input());
  if (next || pending_.on_wire() > 0 || !checked()) return next;
  return last_input() + node().health_check_interval;
}

void connection::arm() {
  if (closed()) return;
  const auto next = next_look();
  if (next && (!look_.due() || *next < *look_.due())) look_at(*next);
}

void connection::look() {
  const auto self = shared_from_this();
  const auto now = given().now();
  // Bytes wait unread: this process was late, not the server. They are read before a command times out, once.
  if (input_waiting() && !std::exchange(gave_grace_, true)) return look_at(now + resolution);
  gave_grace_ = false;
  detail::each_step step;
  if (!tell_overdue(now, step)) return step.rethrow();
  if (up() && pending_.silent(now, last_input()))
    return drop_for([this] {
      return fail(node(), errc::unreachable,
                  pending_.asking() ? "silent: no answer to PING after a pause"
                                    : "silent: no answer within the timeout of a command");
    });
  if (pending_.on_wire() == 0 && health_check_due(now)) flush_soon();
  if (const auto next = next_look()) look_at(std::max(*next, now + resolution));
  demand_changed();
  check_idle();
  step.rethrow();
}

void connection::look_at(detail::time_point when) noexcept {
  look_.start(when, [this] { look(); });
}

// False: the handler of a command has closed the connection.
bool connection::tell_overdue(detail::time_point now, detail::each_step& step) {
  auto why = without_memory();
  detail::if_memory([&] { why = trouble(); });
  while (auto late = pending_.take_overdue(now)) {
    if (given().counts && late->written && !late->goes_on) count(*late->command, late->sent, now, errc::unconfirmed);
    step([&] {
      late->tell(failed(late->written ? error_code(errc::unconfirmed) : why.code, why.detail, late->sent, number_));
    });
    if (closed()) return false;
  }
  return true;
}

// Each step runs even if another finds no memory: the listener and every lost command are notified.
void connection::on_down(const failure& why) {
  ended_idle_ = !pending_.any_written();
  detail::each_step step;
  step([this] {
    if (!ended_idle_ && id_) predecessor_ = id_;
  });
  const auto now = given().now();
  pending_.disconnected(now);
  const auto there = number_;
  id_.reset();
  look_.stop();
  outage_ = why.code;
  step([this] { lose_pushes(); });
  step([&] { report(event_kind::outage, why.code, why.detail); });
  step([this] {
    if (!closed() && listener_) listener_(false);
  });
  while (!closed()) {
    const auto lost = pending_.next_lost();
    if (!lost) break;
    if (given().counts) count(*lost->command, lost->sent, now, errc::unconfirmed);
    step([&] { lost->command->answered(failed(errc::unconfirmed, why.detail, lost->sent, there)); });
  }
  arm();
  if (!closed()) check_idle();
  step.rethrow();
}

// Nothing was written: the timeouts of waiting commands run from now on.
void connection::on_replaced() {
  const auto now = given().now();
  pending_.disconnected(now);
  [[maybe_unused]] const auto lost = pending_.next_lost();
  HOLDFAST_ASSERT(!lost);
  lose_pushes();
  id_.reset();
  look_.stop();
  replaced_ = now;
  arm();
}

void connection::on_attempt_failed(const failure& why) {
  const bool was_replaced = std::exchange(replaced_, std::nullopt).has_value();
  ended_idle_ = false;
  tries_again_ = false;
  detail::each_step step;
  step([&] {
    if (std::exchange(outage_, why.code) != why.code) report(event_kind::outage, why.code, why.detail);
  });
  step([&] {
    if (was_replaced && !closed() && listener_) listener_(false);
  });
  const bool tolerated = !why.mends_itself() && mends_itself(why);
  if (closed() || !why.is_answer() || tolerated) return step.rethrow();
  if (!why.mends_itself()) answered_ = given().now();
  std::vector<command_ptr> waiting;
  step([&] { waiting = pending_.lose_waiting(); });  // else they wait for the next attempt
  if (pending_.empty()) look_.stop();
  for (const auto& lost : waiting) {
    if (closed()) return step.rethrow();
    step([&] { lost->answered(failed(why.code, why.detail)); });
  }
  check_idle();
  step.rethrow();
}

void connection::on_close() {
  look_.stop();
  pending_.clear();
}

void connection::count(const command& command, detail::time_point sent, detail::time_point now, errc failed) const {
  if (const auto* const as = command.counted_as())
    given().counts->measured({.kind = measurement_kind::command,
                              .script = as->script,
                              .name = as->name,
                              .connection = facts(),
                              .took = now - sent,
                              .failure = failed});
}

// The event before may have made the observer close the client.
void connection::report(event_kind kind, error_code reason, const std::string& detail) const {
  if (!events_ || closed()) return;
  event event{kind, {}};
  event.reason = reason;
  event.detail = detail;
  events_(event);
}

void connection::report_fencing(const std::string& words) {
  if (words.empty() || std::exchange(fencing_reported_, true)) return;
  report(event_kind::fencing_degraded, errc::no_permission, node().to_string() + ": " + words);
}

void connection::report_no_messages(const failure& why) {
  if (!std::exchange(no_messages_reported_, true)) report(event_kind::notifications_degraded, why.code, why.detail);
}

void connection::report_no_pushes(const failure& why) {
  if (!std::exchange(no_pushes_reported_, true)) report(event_kind::push_degraded, why.code, why.detail);
}

}  // namespace holdfast::redis
