// SPDX-License-Identifier: BSL-1.0
#include "topology/acknowledger.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "redis/error_replies.hpp"
#include "redis/resp.hpp"

namespace holdfast::detail {
namespace {

/// For so long after it a WAIT may be answered before its connection is given up.
constexpr std::chrono::milliseconds lateness{200};

/// Since Redis 8 only a command that has changed something, or was published, has a place in the stream of changes: a
/// WAIT after any other is answered at once, and says nothing.
bool only_changes_have_a_place(const redis::server_facts& server) {
  int major = 0;
  const auto& v = server.version;
  const bool known = std::from_chars(v.data(), v.data() + v.size(), major).ec == std::errc{};
  return !known || major >= 8;
}
/// In a cluster, messages go over the bus and not through replication.
bool has_a_way(const redis::server_facts& server, redis::server_mode expected) {
  const bool in_cluster = server.mode == "cluster" || expected == redis::server_mode::cluster;
  return !only_changes_have_a_place(server) || !in_cluster;
}

}  // namespace

/// Takes the place that WAIT waits for.
class acknowledger::mark final : public redis::command {
 public:
  mark(const acknowledger& whose, line& in) : of_(whose), in_(in), channel_(in.channel) {}

 private:
  void append_to(std::string& out) const override {
    in_.marked_on = in_.connection->times_up();
    if (only_changes_have_a_place(in_.connection->server()))
      redis::append_command(out, std::array<std::string_view, 3>{"PUBLISH", channel_, ""});
    else
      redis::append_command(out, std::array{std::string_view("PING")});
  }
  void answered(const redis::outcome& o) override {
    in_.failed = o.error;
    if (!o.error && o.reply.is_error()) in_.failed = redis::classify(o.reply.text, errc::server_refused).code;
    if (!in_.failed && !has_a_way(in_.connection->server(), of_.server_.expected))
      in_.failed = make_error_code(boost::system::errc::operation_not_supported);
  }

  const acknowledger& of_;
  line& in_;
  const std::string channel_;
};

class acknowledger::question final : public redis::command {
 public:
  question(acknowledger& whose, line& in, const acknowledgements::question& q) : of_(whose), in_(in), asked_(q) {}

 private:
  // 0 would be for ever.
  void append_to(std::string& out) const override {
    in_.asked_on = in_.connection->times_up();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(asked_.until - of_.given_.now()).count();
    const auto replicas = std::to_string(asked_.replicas);
    const auto timeout = std::to_string(std::max<std::int64_t>(left, 1));
    redis::append_command(out, std::array<std::string_view, 3>{"WAIT", replicas, timeout});
  }
  void answered(const redis::outcome& o) override { of_.answered(in_, o); }

  acknowledger& of_;
  line& in_;
  const acknowledgements::question asked_;
};

acknowledger::acknowledger(const redis::services& given, redis::endpoint server)
    : given_(given), server_(std::move(server)) {}

bool acknowledger::idle() const noexcept {
  return std::all_of(lines_.begin(), lines_.end(), [](const auto& each) { return each.second.waiting.idle(); });
}

void acknowledger::ask(const topology::copies& what, handler done) {
  auto& l = lines_.try_emplace(what.wanted, given_.alarms).first->second;
  if (!l.connection) connect(l);
  l.channel = what.channel;
  l.waiting.add(what, std::move(done));
  watch_deadline(l);
  ask_next(l);
}

// A replica may become the primary yet, and another server may be named.
void acknowledger::connect(line& l) {
  l.connection = std::make_shared<redis::connection>(given_, server_, [](const event&) {});
  l.connection->tolerate([](const redis::failure& why) { return why.code == errc::not_primary; });
}

void acknowledger::ask_next(line& l) {
  const auto next = l.waiting.begin(given_.now());
  if (!next) return;
  const auto left = std::max(next->until - given_.now(), lease_clock::duration::zero()) + lateness;
  const redis::delivery how{.timeout = left, .rank = redis::urgency::obligation};
  l.connection->execute({std::make_shared<mark>(*this, l), how});
  l.connection->execute({std::make_shared<question>(*this, l, *next), how});
}

// A server that is silent, and a question of others before this one, cost nobody more than their time.
void acknowledger::watch_deadline(line& l) {
  const auto next = l.waiting.next_deadline();
  if (!next) return l.alarm.stop();
  if (l.alarm.due() == next) return;
  l.alarm.start(*next, [this, &l] {
    const auto told = l.waiting.expire(given_.now());
    watch_deadline(l);
    for (const auto& a : told) a.to(a.error, a.had);
  });
}

void acknowledger::answered(line& l, const redis::outcome& o) {
  auto error = l.failed ? l.failed : o.error;
  if (!error && l.marked_on != l.asked_on) error = errc::unreachable;  // a new connection has no place to wait for
  if (!error && o.reply.is_error()) error = redis::classify(o.reply.text, errc::server_refused).code;
  const bool number = o.reply.type == redis::reply::kind::integer && o.reply.integer >= 0;
  if (!error && !number) error = errc::protocol_error;
  const auto had = error ? 0 : static_cast<unsigned>(o.reply.integer);
  const auto told = l.waiting.end(error, had, o.server, given_.now());
  watch_deadline(l);
  ask_next(l);
  for (const auto& a : told) a.to(a.error, a.had);
}

void acknowledger::retarget(const redis::address& to, const redis::failure& why) {
  server_ = server_.with(to);
  for (const auto& [wanted, l] : lines_) l.connection->retarget(to, why);
}

void acknowledger::close() {
  for (auto& [wanted, l] : lines_) {
    l.alarm.stop();
    l.connection->close();
  }
}

}  // namespace holdfast::detail
