// SPDX-License-Identifier: BSL-1.0
#include "sim/peer.hpp"
#include "protocol/derived_keys.hpp"

#include "protocol/kind.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

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

// As clients of other languages do it, who tell nobody.
constexpr auto simple_release_script = R"(
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0)";

}  // namespace

void peer::act_later() {
  w_.plan.after(w_.between(w_.pace / 4, w_.pace * 4), [this] { act(); });
}

bool peer::simple() const { return &w_.kind_of(name_) == &detail::simple_lock; }

reply peer::call(const std::string& script, const std::string& argument) {
  return server_of(name_).program().execute(
      {"EVAL", script, "2", name_, detail::channel_of(detail::lock_keys(detail::plain_lock, name_)), field_, argument,
       w_.names.front()->word == detail::publish_word::automatic ? "spublish" : "publish"});
}

void peer::act() {
  if (field_.empty()) name_ = w_.some_name()->lock;
  if (!server_of(name_).running()) return act_later();
  if (!field_.empty())
    release();
  else if (!finishing_)
    acquire();
  if (!finishing_ || !field_.empty()) act_later();
}

void peer::acquire() {
  constexpr auto drift = 2ms;
  const auto ttl = std::chrono::duration_cast<milliseconds>(w_.between(100ms, w_.pace * 4 + 200ms));
  field_ = id_ + ':' + std::to_string(++holds_);
  const auto limit = std::to_string(ttl.count());
  const bool got = simple() ? server_of(name_).program().execute({"SET", name_, field_, "NX", "PX", limit}).text == "OK"
                            : call(acquire_script, limit).type == reply::kind::nil;
  if (!got) return field_.clear();
  w_.log.note(w_.plan.now(), id_, "holds", name_);
  w_.judge.peer_holds(name_, field_, w_.plan.now() + ttl - ttl / 100 - drift);
}

// Every fourth dies instead.
void peer::release() {
  if (!w_.chance(25)) {
    w_.judge.peer_released(field_);
    w_.log.note(w_.plan.now(), id_, "releases", name_);
    call(simple() ? simple_release_script : release_script, "1000");
    if (simple()) w_.judge.released_in_silence(name_);
  }
  field_.clear();
}

}  // namespace holdfast::sim
