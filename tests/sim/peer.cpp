// SPDX-License-Identifier: BSL-1.0
#include "sim/peer.hpp"

#include "protocol/derived_keys.hpp"
#include "protocol/kind.hpp"
#include "protocol/latch/countdown_latch.hpp"
#include "protocol/permits/permit_lock.hpp"
#include "support/redisson_scripts.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;
namespace read_write = test::redisson::read_write;

// KEYS: lock, channel. ARGV: owner, ttl, the word by which messages are sent.
constexpr auto acquire_script = R"(
if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return redis.call('pttl', KEYS[1])
end
redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return nil)";

constexpr auto release_script = R"(
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('del', KEYS[1])
redis.call(ARGV[3], KEYS[2], '0')
return 1)";

// The effects of RPermitExpirableSemaphore, with a counter that some trySetPermits() has set. KEYS: counter, permits,
// channel. ARGV: id, how far its clock is ahead, ttl, the word by which messages are sent. The reply of an acquire has
// the number of permits that it took back though they had not ended by the node's clock.
constexpr auto acquire_permit_script = R"(
if not redis.call('get', KEYS[1]) then return {0, 0} end
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local mine, early = now + ARGV[2], 0
local ended = redis.call('zrangebyscore', KEYS[2], 0, mine, 'limit', 0, 1)
if #ended > 0 then
  if tonumber(redis.call('zscore', KEYS[2], ended[1])) > now then early = 1 end
  redis.call('zrem', KEYS[2], ended[1])
  local value = redis.call('incrby', KEYS[1], 1)
  if value > 0 then redis.call(ARGV[4], KEYS[3], value) end
end
if tonumber(redis.call('get', KEYS[1])) < 1 then return {0, early} end
redis.call('decrby', KEYS[1], 1)
redis.call('zadd', KEYS[2], string.format('%.0f', mine + ARGV[3]), ARGV[1])
return {1, early})";

constexpr auto release_permit_script = R"(
if not redis.call('get', KEYS[1]) or redis.call('zrem', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call(ARGV[4], KEYS[3], redis.call('incrby', KEYS[1], 1))
return 1)";

// As clients of other languages do it, who tell nobody.
constexpr auto simple_release_script = R"(
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0)";

}  // namespace

peer::peer(workload& w, deployment& to, std::size_t number)
    : w_(w), servers_(to), id_("peer" + std::to_string(number)),
      ahead_(w.chance(50) ? std::chrono::duration_cast<milliseconds>(w.between({}, 15s)) : milliseconds()) {}

void peer::act_later() {
  w_.plan.after(w_.between(w_.pace / 4, w_.pace * 4), [this] { act(); });
}

bool peer::simple() const { return &w_.kind_of(name_) == &detail::simple_lock; }

bool peer::permits() const { return &w_.kind_of(name_) == &detail::permit_lock; }

bool peer::shared() const { return w_.is_shared(name_); }

std::string peer::publish_word() const {
  return w_.names.front()->word == detail::publish_word::automatic ? "spublish" : "publish";
}

reply peer::call(const std::string& script, const std::string& argument) {
  return server_of(name_).program().execute({"EVAL", script, "2", name_,
                                             detail::channel_of(detail::lock_keys(detail::plain_lock, name_)), field_,
                                             argument, publish_word()});
}

reply peer::call_for_permits(const std::string& script, milliseconds ttl) {
  const detail::lock_keys keys(detail::permit_lock, name_);
  return server_of(name_).program().execute({"EVAL", script, "3", name_, w_.semaphore_at(name_).permits,
                                             detail::channel_of(keys), field_, std::to_string(ahead_.count()),
                                             std::to_string(ttl.count()), publish_word()});
}

reply peer::call_for_shared(const std::string& script, milliseconds ttl) {
  const detail::lock_keys keys(detail::shared_writer, name_);
  return server_of(name_).program().execute({"EVAL", script, "2", name_, detail::channel_of(keys), owner_,
                                             std::to_string(ttl.count()), publish_word(),
                                             detail::joined(detail::below(name_, {}))});
}

void peer::act() {
  if (field_.empty()) name_ = w_.some_name()->lock;
  const bool latch = w_.is_latch(name_);
  const bool several_keys = permits() || shared() || latch;
  if (!server_of(name_).running() || (several_keys && servers_.moves(name_))) return act_later();
  if (!field_.empty())
    release();
  else if (latch && !finishing_)
    use_latch();
  else if (!finishing_)
    acquire();
  if (!finishing_ || !field_.empty()) act_later();
}

void peer::acquire() {
  constexpr auto drift = 2ms;
  const auto ttl = std::chrono::duration_cast<milliseconds>(w_.between(100ms, w_.pace * 4 + 200ms));
  owner_ = id_ + ':' + std::to_string(++holds_);
  writes_ = shared() && w_.chance(40);
  field_ = writes_ ? owner_ + ":write" : owner_;
  const auto limit = std::to_string(ttl.count());
  const bool got =
      permits() ? acquire_permit(ttl)
      : shared()
          ? call_for_shared(writes_ ? read_write::write_lock : read_write::read_lock, ttl).type == reply::kind::nil
      : simple() ? server_of(name_).program().execute({"SET", name_, field_, "NX", "PX", limit}).text == "OK"
                 : call(acquire_script, limit).type == reply::kind::nil;
  if (!got) return field_.clear();
  w_.log.note(w_.plan.now(), id_, "holds", name_);
  w_.judge.elections().changed_by_peer(name_);
  w_.judge.peer_holds(name_, field_, w_.plan.now() + ttl - ttl / 100 - drift);
}

void peer::use_latch() {
  const detail::lock_keys keys(detail::countdown_latch, name_);
  const auto word = publish_word();
  const auto run = [&](std::string_view script, std::string message, std::vector<std::string> rest) {
    arguments command{"EVAL", std::string(script), "2", name_, detail::channel_of(keys), std::move(message), word};
    command.insert(command.end(), rest.begin(), rest.end());
    return server_of(name_).program().execute(command);
  };
  if (w_.chance(30)) {
    const auto count = static_cast<long long>(1 + w_.below(4));
    w_.log.note(w_.plan.now(), id_, "sets", name_);
    const auto answer = run(test::redisson::set_count, "1", {std::to_string(count)});
    if (answer.integer == 1) w_.judge.latches().peer_set(name_, count);
  } else {
    w_.log.note(w_.plan.now(), id_, "counts down", name_);
    if (!run(test::redisson::count_down, "0", {}).is_error()) w_.judge.latches().peer_counted_down(name_);
  }
}

// Its clock may end a permit that is held. Its message says so to who waits.
bool peer::acquire_permit(milliseconds ttl) {
  const auto answer = call_for_permits(acquire_permit_script, ttl);
  if (answer.type != reply::kind::array) return false;
  if (answer.elements.at(1).integer > 0) {
    w_.judge.excuse(name_, true);
    w_.met.hit("peer: took a permit back by a clock that is ahead");
  }
  return answer.elements.at(0).integer == 1;
}

// Every fourth dies instead.
void peer::release() {
  if (!w_.chance(25)) {
    w_.judge.peer_released(field_);
    w_.log.note(w_.plan.now(), id_, "releases", name_);
    permits()  ? call_for_permits(release_permit_script, {})
    : shared() ? call_for_shared(writes_ ? read_write::write_unlock : read_write::read_unlock, {})
               : call(simple() ? simple_release_script : release_script, "1000");
    // A plain lock tells nobody in the queue.
    if (simple() || w_.is_fair(name_)) w_.judge.released_in_silence(name_);
    w_.judge.elections().changed_by_peer(name_);
  }
  field_.clear();
}

}  // namespace holdfast::sim
