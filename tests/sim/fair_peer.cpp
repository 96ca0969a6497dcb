// SPDX-License-Identifier: BSL-1.0
#include "sim/fair_peer.hpp"

#include <utility>

#include "protocol/fair/fair_lock.hpp"
#include "protocol/kind.hpp"
#include "support/redisson_scripts.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;
namespace script = test::redisson::fair;

/// RedissonClient's fairLockWaitTimeout.
const std::string wait_ms = "300000";

}  // namespace

/// The subscription of its place. It comes some time after its call, if it still waits.
class fair_peer::ear final : public server_connection {
 public:
  ear(fair_peer& of, server& at) : of_(of), at_(at) {}

  void listen_to(const std::shared_ptr<ear>& self, const std::string& verb, const std::string& channel) {
    session_ = at_.accept(self);
    at_.program().execute(session_, {verb, channel});
  }
  // A server that was started anew has other sessions of the same numbers.
  void end() {
    if (const auto session = std::exchange(session_, 0); session != 0) at_.program().disconnect(session);
  }

 private:
  void send_down(const reply&, bool message) override {
    if (!message) return;
    of_.w_.met.hit("peer: called in its turn");
    of_.w_.plan.after(of_.w_.between(100us, 2ms), [&peer = of_, life = of_.lives_] {
      if (peer.step_ == step::waits && peer.lives_ == life) peer.ask();
    });
  }
  void kill() override { end(); }
  void spare() noexcept override {}
  void end_from_server() override { session_ = 0; }

  fair_peer& of_;
  server& at_;
  node::session_id session_ = 0;
};

fair_peer::fair_peer(workload& w, deployment& to, std::size_t number)
    : w_(w), servers_(to), id_("java" + std::to_string(number)),
      ahead_(w.chance(50) ? std::chrono::duration_cast<milliseconds>(w.between({}, 2s)) : milliseconds()) {}

void fair_peer::act_later() {
  w_.plan.after(w_.between(w_.pace / 4, w_.pace * 4), [this] { act(); });
}

void fair_peer::act() {
  if (step_ == step::idle) {
    if (finishing_) return;
    const auto& keys = *w_.some_name();
    if (!w_.is_fair(keys.name)) return act_later();
    name_ = keys.lock;
    owner_ = id_ + ':' + std::to_string(++lives_);
  }
  // It asks again later.
  if (!machine().running() || servers_.moves(name_)) return act_later();
  if (step_ == step::holds)
    w_.chance(15) ? die() : release();
  else if (step_ == step::waits && (finishing_ || w_.chance(15)))
    w_.chance(50) ? die() : leave();
  else
    ask();
  if (!finishing_ || step_ != step::idle) act_later();
}

reply fair_peer::run(std::string_view script, bool purges, const std::string& third, const std::string& fourth) {
  const auto now = machine().clock().now_us() / 1000 + ahead_.count();
  const fair_names of = w_.fair_at(name_);
  std::string text(purges ? script::purge : std::string_view());
  text += script;
  return machine().program().execute(
      {"EVAL", text, "3", of.name, of.queue, of.deadlines, std::to_string(now), owner_, wait_ms, third, fourth});
}

// Nobody is told that a place left the head of a queue, but by a release.
void fair_peer::note_departure(const std::string& head) {
  if (!head.empty() && first_in_line() != head) w_.judge.released_in_silence(name_);
}

std::string fair_peer::first_in_line() {
  return machine().program().execute({"LINDEX", w_.fair_at(name_).queue, "0"}).text;
}

std::string fair_peer::publish_word() const {
  return w_.names.front()->word == detail::publish_word::automatic ? "spublish" : "publish";
}

void fair_peer::ask() {
  constexpr auto drift = 2ms;
  const auto ttl = std::chrono::duration_cast<milliseconds>(w_.between(100ms, w_.pace * 4 + 200ms));
  const auto head = first_in_line();
  const auto answer = run(script::acquire_or_stand, true, std::to_string(ttl.count()));
  if (answer.type == reply::kind::nil) {
    w_.met.hit(step_ == step::waits ? "peer: served in its turn" : "peer: did not wait");
    step_ = step::holds;
    stop_listening();
    w_.log.note(w_.plan.now(), id_, "holds", name_);
    // The end of its TTL tells nobody. The node's clock may be a little ahead or behind.
    for (const auto end : {ttl - ttl / 100 - drift, ttl + ttl / 100 + drift})
      w_.plan.after(end, [this, life = lives_, name = name_] {
        if (released_ != life) w_.judge.released_in_silence(name);
      });
    return w_.judge.peer_holds(name_, owner_, w_.plan.now() + ttl - ttl / 100 - drift);
  }
  note_departure(head);
  if (answer.is_error() || step_ == step::waits) return;
  step_ = step::waits;
  w_.log.note(w_.plan.now(), id_, "stands for", name_);
  if (w_.chance(80))
    w_.plan.after(w_.between(1ms, 20ms), [this, life = lives_] {
      if (step_ == step::waits && lives_ == life && machine().running()) listen();
    });
}

void fair_peer::listen() {
  const detail::lock_keys keys(detail::fair_lock, name_);
  ear_ = std::make_shared<ear>(*this, machine());
  ear_->listen_to(ear_, publish_word() == "spublish" ? "SSUBSCRIBE" : "SUBSCRIBE",
                  detail::channel_of(keys) + ':' + owner_);
}

void fair_peer::stop_listening() {
  if (ear_) ear_->end();
  ear_.reset();
}

void fair_peer::leave() {
  w_.log.note(w_.plan.now(), id_, "leaves", name_);
  const auto head = first_in_line();
  run(script::leave, false, {});
  note_departure(head);
  w_.met.hit("peer: left the queue");
  step_ = step::idle;
  stop_listening();
}

void fair_peer::release() {
  const detail::lock_keys keys(detail::fair_lock, name_);
  released_ = lives_;
  w_.judge.peer_released(owner_);
  w_.log.note(w_.plan.now(), id_, "releases", name_);
  run(script::unlock, true, detail::channel_of(keys), publish_word());
  step_ = step::idle;
}

// Its place, or its hold, ends by its time.
void fair_peer::die() {
  w_.log.note(w_.plan.now(), id_, "dies", name_);
  if (step_ == step::waits) w_.met.hit("peer: died in the queue");
  step_ = step::idle;
  stop_listening();
}

}  // namespace holdfast::sim
