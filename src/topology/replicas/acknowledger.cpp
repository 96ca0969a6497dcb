// SPDX-License-Identifier: BSL-1.0
#include "topology/replicas/acknowledger.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "redis/error_replies.hpp"
#include "redis/resp.hpp"

namespace holdfast::detail {
namespace {

/// A WAIT may be answered this much later than its timeout before its connection is given up.
constexpr std::chrono::milliseconds lateness{200};

/// Changes a key to its present state, also one that is gone. Before Redis 7.2 the TTL may become a millisecond longer.
/// A number without TTL is the counter of a semaphore.
/// An ACL that refuses HDEL refuses the first one, before anything is written.
constexpr std::string_view mark_key = R"(
local left = redis.call('pttl', KEYS[1])
if left >= 0 then
  return redis.call('pexpire', KEYS[1], math.max(left, 1))
end
if left == -1 then
  return type(redis.pcall('incrby', KEYS[1], 0)) == 'number' and 1 or 0
end
redis.call('hdel', KEYS[1], '')
redis.call('hset', KEYS[1], '', '')
return redis.call('hdel', KEYS[1], '')
)";

std::optional<redis::failure> why_unmarked(const redis::reply& reply) {
  if (reply.is_error()) return redis::classify(reply.text, errc::server_refused);
  if (reply.type != redis::reply::kind::integer) return redis::failure{errc::protocol_error, "the answer is no number"};
  if (reply.integer == 1) return std::nullopt;
  return redis::failure{errc::corrupt_lock, "the key has no TTL"};
}

/// Such a refusal says nothing about other keys: callers that wait for those ask again.
bool is_about_the_key(const redis::failure& why, const redis::reply& reply) {
  return why.code == errc::no_permission || why.code == errc::corrupt_lock || redis::is_redirect(reply.text);
}

}  // namespace

class acknowledger::mark final : public redis::command {
 public:
  mark(line& in, std::string key) : in_(in), key_(std::move(key)) {}

 private:
  void append_to(std::string& out) const override {
    in_.marked_on = in_.connection->times_up();
    redis::append_command(out, std::array<std::string_view, 4>{"EVAL", mark_key, "1", key_});
  }
  void answered(const redis::outcome& outcome) override {
    in_.unmarked = outcome.error ? redis::failure_of(outcome) : why_unmarked(outcome.reply);
    in_.key_refused = in_.unmarked && !outcome.error && is_about_the_key(*in_.unmarked, outcome.reply);
  }

  line& in_;
  const std::string key_;
};

class acknowledger::question final : public redis::command {
 public:
  question(acknowledger& owner, line& in, const acknowledgements::question& question)
      : of_(owner), in_(in), asked_(question) {}

 private:
  // A timeout of 0 would wait indefinitely.
  void append_to(std::string& out) const override {
    in_.asked_on = in_.connection->times_up();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(asked_.until - of_.services_.now()).count();
    const auto replicas = std::to_string(asked_.replicas);
    const auto timeout = std::to_string(std::max<std::int64_t>(left, 1));
    redis::append_command(out, std::array<std::string_view, 3>{"WAIT", replicas, timeout});
  }
  void answered(const redis::outcome& outcome) override { of_.answered(in_, outcome); }

  acknowledger& of_;
  line& in_;
  const acknowledgements::question asked_;
};

acknowledger::acknowledger(const redis::io_services& services, redis::endpoint server)
    : services_(services), server_(std::move(server)) {}

bool acknowledger::idle() const noexcept {
  return std::all_of(lines_.begin(), lines_.end(), [](const auto& each) { return each.second.waiting.idle(); });
}

void acknowledger::ask(std::string_view key, const topology::replica_demand& wanted, handler done) {
  auto& line = lines_.try_emplace(wanted.wanted, services_.alarms).first->second;
  if (!line.connection) connect(line);
  line.waiting.add(key, wanted, std::move(done));
  watch_deadline(line);
  ask_next(line);
}

// No role ends an attempt for good: a replica may become the primary, and the address may change.
void acknowledger::connect(line& line) {
  line.connection = std::make_shared<redis::connection>(services_, server_, [](const event&) {});
  line.connection->expect_failover(redis::failover::expected);
  line.connection->tolerate([](const redis::failure& why) { return why.code == errc::not_primary; });
}

void acknowledger::ask_next(line& line) {
  const auto next = line.waiting.begin(services_.now());
  if (!next) return;
  const auto left = std::max(next->until - services_.now(), lease_clock::duration::zero()) + lateness;
  const redis::delivery delivery{.timeout = left, .rank = redis::urgency::obligation};
  auto marking = delivery;
  marking.asking = server_.expected == redis::server_mode::cluster;  // the key may still be on its way here
  line.connection->execute({std::make_shared<mark>(line, next->key), marking});
  line.connection->execute({std::make_shared<question>(*this, line, *next), delivery});
}

// A silent server, or an earlier question of other callers, keeps no caller beyond its own deadline.
void acknowledger::watch_deadline(line& line) {
  const auto next = line.waiting.next_deadline();
  if (!next) return line.alarm.stop();
  if (line.alarm.due() == next) return;
  line.alarm.start(*next, [this, &line] {
    const auto answers = line.waiting.expire(services_.now());
    watch_deadline(line);
    for (const auto& answer : answers) answer.to(answer.failed, answer.had);
  });
}

std::vector<acknowledgements::answer> acknowledger::end_question(line& line, const redis::outcome& outcome) const {
  if (line.unmarked)
    return line.key_refused ? line.waiting.refuse(*line.unmarked)
                            : line.waiting.end(line.unmarked, 0, 0, services_.now());
  std::optional<redis::failure> failed;
  if (outcome.error)
    failed = redis::failure_of(outcome);
  else if (line.marked_on != line.asked_on)
    failed = {errc::unreachable, "the connection of the mark has ended"};
  else if (outcome.reply.is_error())
    failed = redis::classify(outcome.reply.text, errc::server_refused);
  else if (outcome.reply.type != redis::reply::kind::integer || outcome.reply.integer < 0)
    failed = {errc::protocol_error, "WAIT is not answered by a number"};
  return line.waiting.end(failed, failed ? 0 : static_cast<unsigned>(outcome.reply.integer), outcome.server,
                          services_.now());
}

void acknowledger::answered(line& line, const redis::outcome& outcome) {
  const auto answers = end_question(line, outcome);
  watch_deadline(line);
  ask_next(line);
  for (const auto& answer : answers) answer.to(answer.failed, answer.had);
}

void acknowledger::retarget(const redis::address& to, const redis::failure& why) {
  server_ = server_.with(to);
  for (const auto& [wanted, line] : lines_)
    if (line.connection) line.connection->retarget(to, why);  // else there was no memory to make it
}

void acknowledger::follow(std::string_view run) {
  for (const auto& [wanted, line] : lines_)
    if (line.connection) line.connection->follow(run);
}

void acknowledger::close() {
  for (auto& [wanted, line] : lines_) {
    line.alarm.stop();
    if (line.connection) line.connection->close();
  }
}

}  // namespace holdfast::detail
