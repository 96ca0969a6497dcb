// SPDX-License-Identifier: BSL-1.0
#include "sync/line/place_keeper.hpp"

#include <utility>

#include "base/if_memory.hpp"

namespace holdfast::detail {

class place_keeper::ear final : subscriber {
 public:
  ear(place_keeper& of, std::uint8_t place)
      : of_(of), place_(place), calls_(of.env_.servers.subscribe(
                                    of.keys_->of.places.channel(*of.keys_, place_field(*of.client_, place)), *this)) {}

 private:
  void on_subscribed() override {
    of_.rules.listens(place_);
    of_.host_.places_due();
  }
  void on_message(std::string_view message) override { of_.host_.place_called(place_, message); }
  void on_subscribe_failed(error_code error, const std::string& detail) override {
    auto& of = of_;
    of.rules.is_deaf(place_);
    // The next waiter that wants the place asks once more.
    const auto ended = std::move(of.ears_[place_]);
    of.host_.places_unheard(error, detail);
  }

  place_keeper& of_;
  const std::uint8_t place_;
  const subscription calls_;
};

place_keeper::place_keeper(environment& env, place_host& host, shared_keys keys, std::shared_ptr<const uuid> client)
    : env_(env), host_(host), keys_(std::move(keys)), client_(std::move(client)), any_(any_place()),
      backoff_(milliseconds(20), std::chrono::seconds(1)), alarm_(env.alarms) {}

// Here an ear is complete.
place_keeper::~place_keeper() = default;

void place_keeper::subscribe() {
  for (const auto place : rules.wanted())
    if (!ears_[place]) ears_[place] = std::make_unique<ear>(*this, place);
}

// Without memory it looks again.
void place_keeper::show(bool attempting) {
  const auto now = env_.now();
  if (!if_memory([this] { subscribe(); })) return look_at(now + keys_->of.looks);
  // A running alarm would keep an idle io_context busy.
  if (idle() && rules.wanted().empty()) alarm_.stop();
  if ((again_at_ && now < *again_at_) || !rules.wants_to_show(attempting)) return;
  again_at_.reset();
  shown_.clear();
  const auto next = rules.show(attempting);
  for (const auto place : next.all()) shown_.push_back(place_field(*client_, place));
  if (if_memory([this] { send_shown(); })) return;
  rules.not_shown(false);
  look_at(now + keys_->of.looks);
}

void place_keeper::send_shown() {
  const auto& steps = keys_->of.places;
  send(env_, shown_.empty() ? steps.leave(*keys_, any_) : steps.stand.make(*keys_, shown_),
       {.timeout = env_.settings.command_timeout, .rank = urgency::awaited, .waits_for_reply = true});
}

// The executor may keep this object longer, and the host ends.
void place_keeper::stop() {
  alarm_.stop();
  for (auto& ear : ears_) ear.reset();
  if (rules.shows()) rules.not_shown(withdraw_all() != nowhere);
}

void place_keeper::look_at(time_point when) {
  alarm_.start(when, [this] {
    rules.show_all();
    host_.places_due();
  });
}

// The host may end this object.
void place_keeper::on_answer(const outcome& outcome) {
  if (!rules.shows()) return;  // stopped
  const auto keep = shared_from_this();
  const auto reply = keys_->of.places.stand.read(outcome);
  const auto now = env_.now();
  if (reply.failed) {
    rules.not_shown(reply.failed->may_have_run);
    again_at_ = now + backoff_.next(env_.random);
    look_at(*again_at_);
  } else {
    rules.shown();
    backoff_.reset();
    const nanoseconds looks = keys_->of.looks;
    look_at(now + looks - env_.random.up_to(looks / 10));
  }
  host_.places_shown(reply);
}

}  // namespace holdfast::detail
