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

/// For so long after it a WAIT may be answered before its connection is given up.
constexpr std::chrono::milliseconds lateness{200};

/// Since Redis 7.2, and in Valkey, WAIT waits for what its connection has changed last: after a command that changes
/// nothing it is answered at once. So a mark changes a key to what it is, also one that is gone. Before Redis 7.2 its
/// TTL may become a millisecond longer by it. Where HDEL is refused, the first one is, before anything is written.
constexpr std::string_view mark_key = R"(
local left = redis.call('pttl', KEYS[1])
if left >= 0 then
  return redis.call('pexpire', KEYS[1], math.max(left, 1))
end
if left == -1 then
  return 0
end
redis.call('hdel', KEYS[1], '')
redis.call('hset', KEYS[1], '', '')
return redis.call('hdel', KEYS[1], '')
)";

std::optional<redis::failure> why_unmarked(const redis::reply& r) {
  if (r.is_error()) return redis::classify(r.text, errc::server_refused);
  if (r.type != redis::reply::kind::integer) return redis::failure{errc::protocol_error, "the answer is no number"};
  if (r.integer == 1) return std::nullopt;
  return redis::failure{errc::corrupt_lock, "the key has no TTL"};
}

/// Such a refusal says nothing of other keys: those who wait for them ask again.
bool is_about_the_key(const redis::failure& why, const redis::reply& r) {
  return why.code == errc::no_permission || why.code == errc::corrupt_lock || redis::is_redirect(r.text);
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
  void answered(const redis::outcome& o) override {
    in_.unmarked = o.error ? redis::failure_of(o) : why_unmarked(o.reply);
    in_.key_refused = in_.unmarked && !o.error && is_about_the_key(*in_.unmarked, o.reply);
  }

  line& in_;
  const std::string key_;
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

acknowledger::acknowledger(const redis::io_services& given, redis::endpoint server)
    : given_(given), server_(std::move(server)) {}

bool acknowledger::idle() const noexcept {
  return std::all_of(lines_.begin(), lines_.end(), [](const auto& each) { return each.second.waiting.idle(); });
}

void acknowledger::ask(std::string_view key, const topology::copies& what, handler done) {
  auto& l = lines_.try_emplace(what.wanted, given_.alarms).first->second;
  if (!l.connection) connect(l);
  l.waiting.add(key, what, std::move(done));
  watch_deadline(l);
  ask_next(l);
}

// A replica may become the primary yet, and another server may be named.
void acknowledger::connect(line& l) {
  l.connection = std::make_shared<redis::connection>(given_, server_, [](const event&) {});
  l.connection->expect_failover(redis::failover::expected);
  l.connection->tolerate([](const redis::failure& why) { return why.code == errc::not_primary; });
}

void acknowledger::ask_next(line& l) {
  const auto next = l.waiting.begin(given_.now());
  if (!next) return;
  const auto left = std::max(next->until - given_.now(), lease_clock::duration::zero()) + lateness;
  const redis::delivery how{.timeout = left, .rank = redis::urgency::obligation};
  auto marking = how;
  marking.asking = server_.expected == redis::server_mode::cluster;  // the key may still be on its way here
  l.connection->execute({std::make_shared<mark>(l, next->key), marking});
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
    for (const auto& a : told) a.to(a.failed, a.had);
  });
}

std::vector<acknowledgements::answer> acknowledger::end_question(line& l, const redis::outcome& o) const {
  if (l.unmarked) return l.key_refused ? l.waiting.refuse(*l.unmarked) : l.waiting.end(l.unmarked, 0, 0, given_.now());
  std::optional<redis::failure> failed;
  if (o.error)
    failed = redis::failure_of(o);
  else if (l.marked_on != l.asked_on)
    failed = {errc::unreachable, "the connection of the mark has ended"};
  else if (o.reply.is_error())
    failed = redis::classify(o.reply.text, errc::server_refused);
  else if (o.reply.type != redis::reply::kind::integer || o.reply.integer < 0)
    failed = {errc::protocol_error, "WAIT is not answered by a number"};
  return l.waiting.end(failed, failed ? 0 : static_cast<unsigned>(o.reply.integer), o.server, given_.now());
}

void acknowledger::answered(line& l, const redis::outcome& o) {
  const auto told = end_question(l, o);
  watch_deadline(l);
  ask_next(l);
  for (const auto& a : told) a.to(a.failed, a.had);
}

void acknowledger::retarget(const redis::address& to, const redis::failure& why) {
  server_ = server_.with(to);
  for (const auto& [wanted, l] : lines_)
    if (l.connection) l.connection->retarget(to, why);  // else there was no memory to make it
}

void acknowledger::follow(std::string_view run) {
  for (const auto& [wanted, l] : lines_)
    if (l.connection) l.connection->follow(run);
}

void acknowledger::close() {
  for (auto& [wanted, l] : lines_) {
    l.alarm.stop();
    if (l.connection) l.connection->close();
  }
}

}  // namespace holdfast::detail
