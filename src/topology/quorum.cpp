// SPDX-License-Identifier: BSL-1.0
#include "topology/quorum.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"

namespace holdfast::detail {
namespace {

/// A message of a minority most often comes from a caller that gives back a partial grant. The wait for a majority
/// doubles with each of them.
constexpr unsigned most_doublings = 10;
constexpr lease_clock::duration longest_pause = std::chrono::seconds(1);

}  // namespace

/// One subscriber at each of the primaries.
class quorum::subscriber_list final {
 public:
  subscriber_list(const quorum& of, std::string_view channel, subscriber& subscriber)
      : of_(of), subscriber_(subscriber), acknowledged_(of.alarms_), round_trip_(of.alarms_), seats_(of.each_.size()) {
    for (std::size_t n = 0; n < seats_.size(); ++n) {
      seats_[n].in = this;
      seats_[n].number = n;
      seats_[n].kept = of.each_[n]->subscribe(channel, seats_[n]);
    }
  }

  void on_pushed(std::size_t primary) { seats_[primary].on_pushed(); }

 private:
  using notification = void (subscriber::*)(std::string_view);

  struct seat final : subscriber {
    subscriber_list* in = nullptr;
    std::size_t number = 0;
    bool acknowledged = false;
    bool heard = false, pushed = false;      // since the last notification
    std::optional<std::string> refused;      // why
    std::optional<std::string> no_messages;  // why
    subscription kept;

    void on_subscribed() override {
      acknowledged = true;
      refused.reset();
      no_messages.reset();
      in->on_subscribed();
    }
    void on_message(std::string_view payload) override {
      const bool again = std::exchange(heard, true);
      in->on_news(again, payload, &subscriber::on_message);
    }
    void on_pushed() {
      const bool again = std::exchange(pushed, true);
      in->on_news(again, {}, &subscriber::on_rumour);
    }
    void on_subscribe_failed(error_code error, const std::string& detail) override {
      refused = detail;
      acknowledged = false;
      in->on_refused(error);
    }
    void on_no_messages(error_code error, const std::string& detail) override {
      acknowledged = false;
      if (!std::exchange(no_messages, detail)) in->on_no_messages(error);
    }
  };

  template <class Predicate>
  std::size_t count(Predicate matches) const {
    return static_cast<std::size_t>(std::count_if(seats_.begin(), seats_.end(), matches));
  }

  // Also for each primary that subscribes later: messages published there before are missed. Primaries that subscribe
  // together make one notification, because the subscriber asks all of them each time.
  void on_subscribed() {
    const auto there = count([](const seat& seat) { return seat.acknowledged; });
    if (there < of_.needed()) return;
    if (there == seats_.size()) return tell_subscribed();
    if (!acknowledged_.due()) acknowledged_.start(of_.time_.now() + of_.vote_time_, [this] { tell_subscribed(); });
  }

  void tell_subscribed() {
    acknowledged_.stop();
    subscriber_.on_subscribed();
  }

  // At a primary where the lock is free already, others may take it and give it back. Messages of a minority prove
  // nothing then. A push alone may be a renewal of the holder, so `notify` is on_rumour() if a push makes the majority.
  void on_news(bool again, std::string_view payload, notification notify) {
    const auto free = subscriber_.free_at();
    const auto counts = [&](const seat& seat) { return seat.heard || seat.pushed || (free >> seat.number & 1U) != 0; };
    if (notified_) {
      one_more_ |= again;
    } else if (count(counts) >= of_.needed()) {
      rumours_ = 0;
      tell(payload, notify);
    } else if (free == 0 && !round_trip_.due()) {
      wait_then(std::min(of_.vote_time_ * (1U << rumours_), longest_pause), payload, [this](std::string_view text) {
        rumours_ = std::min(rumours_ + 1, most_doublings);
        tell(text, &subscriber::on_rumour);
      });
    }
  }

  void tell(std::string_view payload, notification notify) {
    notified_ = true;
    wait_then(of_.vote_time_, payload, [this, notify](std::string_view text) { hear_anew(text, notify); });
    (subscriber_.*notify)(payload);
  }

  // The slower primaries have reported the same release meanwhile. A second message of one primary is another release.
  void hear_anew(std::string_view payload, notification notify) {
    notified_ = false;
    for (auto& seat : seats_) seat.heard = seat.pushed = false;
    if (std::exchange(one_more_, false)) tell(payload, notify);
  }

  template <class Then>
  void wait_then(lease_clock::duration pause, std::string_view payload, Then then) {
    round_trip_.start(of_.time_.now() + pause, [then, text = std::string(payload)] { then(text); });
  }

  void on_refused(error_code error) {
    if (count([](const seat& seat) { return seat.refused.has_value(); }) == of_.needed())
      subscriber_.on_subscribe_failed(error, texts(&seat::refused));
  }
  void on_no_messages(error_code error) {
    if (count([](const seat& seat) { return seat.no_messages.has_value(); }) == of_.needed())
      subscriber_.on_no_messages(error, texts(&seat::no_messages));
  }
  std::string texts(std::optional<std::string> seat::*field) const {
    std::string all;
    for (const auto& seat : seats_)
      if (seat.*field) all += (all.empty() ? "" : "; ") + *(seat.*field);
    return all;
  }

  const quorum& of_;
  subscriber& subscriber_;
  timer acknowledged_;  // from the acknowledgement of a majority, for the others
  timer round_trip_;    // from the first message, or from a notification
  bool notified_ = false;
  bool one_more_ = false;  // a primary has sent another message since
  unsigned rumours_ = 0;   // times in a row that no majority had a message
  std::vector<seat> seats_;
};

quorum::quorum(timers& alarms, const clock& time, std::vector<std::unique_ptr<topology>> each)
    : alarms_(alarms), time_(time), each_(std::move(each)) {
  HOLDFAST_ASSERT(each_.size() % 2 == 1);
}

quorum::~quorum() { quorum::close(); }

redis::ticket quorum::execute(std::string_view, redis::request) {
  HOLDFAST_ASSERT(false);
  return 0;
}

bool quorum::withdraw(redis::ticket) {
  HOLDFAST_ASSERT(false);
  return false;
}

template <class Predicate>
bool quorum::majority(Predicate matches) const {
  return static_cast<std::size_t>(std::count_if(each_.begin(), each_.end(), matches)) >= needed();
}

bool quorum::answering(std::string_view key) {
  return majority([key](const auto& one) { return one->answering(key); });
}

bool quorum::answered_since(std::string_view key, time_point when) {
  return majority([key, when](const auto& one) { return one->answered_since(key, when); });
}

redis::failure quorum::trouble(std::string_view key) const {
  redis::failure all{errc::quorum_failed, {}};
  for (const auto& one : each_) {
    if (one->answering(key)) continue;
    if (!all.detail.empty()) all.detail += "; ";
    all.detail += one->trouble(key).detail;
  }
  return all;
}

std::optional<redis::failure> quorum::silence_since(std::string_view key, time_point when) {
  redis::failure all{errc::quorum_failed, {}};
  std::size_t answered = 0;
  for (const auto& one : each_) {
    const auto why = one->silence_since(key, when);
    if (!why) {
      ++answered;
      continue;
    }
    if (!all.detail.empty()) all.detail += "; ";
    all.detail += why->detail;
  }
  return answered >= needed() ? std::nullopt : std::optional(std::move(all));
}

bool quorum::in_outage(std::string_view key) const {
  return majority([key](const auto& one) { return one->in_outage(key); });
}

std::string quorum::where(std::string_view key) const {
  std::string all;
  for (const auto& one : each_) all += (all.empty() ? "" : ", ") + one->where(key);
  return all;
}

subscription quorum::subscribe(std::string_view channel, subscriber& subscriber) {
  return std::make_shared<subscriber_list>(*this, channel, subscriber);
}

// A process that was stopped measures its stop as the time of the answers in its sockets: hence the limit.
void quorum::note_vote_time(lease_clock::duration took) { vote_time_ = std::min(took, longest_pause); }

void quorum::count_as_message(const subscription& kept, node_id primary) {
  static_cast<subscriber_list*>(kept.get())->on_pushed(primary);
}

void quorum::start_pushing(std::string_view key) {
  for (const auto& one : each_) one->start_pushing(key);
}

void quorum::stop_pushing() {
  for (const auto& one : each_) one->stop_pushing();
}

bool quorum::pushes(std::string_view key) const {
  return majority([key](const auto& one) { return one->pushes(key); });
}

void quorum::on_key_changed(change_listener listener) {
  const auto shared = std::make_shared<change_listener>(std::move(listener));
  for (std::size_t n = 0; n < each_.size(); ++n)
    each_[n]->on_key_changed([shared, n](std::string_view key, node_id) { (*shared)(key, static_cast<node_id>(n)); });
}

void quorum::keep_watch(bool on) {
  for (const auto& one : each_) one->keep_watch(on);
}

void quorum::on_link_change(link_listener listener) {
  const auto shared = std::make_shared<link_listener>(std::move(listener));
  for (std::size_t n = 0; n < each_.size(); ++n)
    each_[n]->on_link_change([shared, n](node_id, bool up) { (*shared)(static_cast<node_id>(n), up); });
}

void quorum::close() {
  for (const auto& one : each_) one->close();
}

}  // namespace holdfast::detail
