// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/slot_map_refresh.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "redis/error_replies.hpp"

namespace holdfast::detail {
namespace {

constexpr auto between_rounds = std::chrono::seconds(1);
constexpr lease_clock::duration prompt = std::chrono::milliseconds(100);
constexpr auto words = std::array<std::string_view, 2>{"CLUSTER", "SLOTS"};

}  // namespace

struct slot_map_refresh::round {
  std::vector<candidate> to_ask;
  std::size_t asked = 0, open = 0;
  std::vector<std::shared_ptr<redis::connection>> own;
  bool taken = false;
  std::optional<redis::failure> why;  // a node has given no map: the most telling cause
};

class slot_map_refresh::question final : public redis::command {
 public:
  question(slot_map_refresh& refresh, std::weak_ptr<round> in, redis::endpoint to)
      : to_node(std::move(to)), in_(std::move(in)), refresh_(refresh) {}

  const redis::endpoint to_node;

  void append_to(std::string& out) const override { redis::append_command(out, words); }
  void answered(const redis::outcome& outcome) override {
    if (!in_.expired()) refresh_.heard(*this, outcome);  // expired: its round is over
  }

 private:
  const std::weak_ptr<round> in_;
  slot_map_refresh& refresh_;
};

slot_map_refresh::slot_map_refresh(const redis::io_services& services, const redis::endpoint& endpoint, reach_by reach,
                                   std::chrono::milliseconds answer_timeout, outage_sink outages, owner callbacks)
    : services_(services), endpoint_(endpoint), reach_(std::move(reach)), answer_timeout_(answer_timeout),
      outages_(std::move(outages)), owner_(std::move(callbacks)), next_(services.alarms) {}

void slot_map_refresh::ask() {
  if (closed_ || round_ || next_.due()) return;
  const auto now = services_.now();
  const auto allowed = begun_ == time_point::min() ? now : begun_ + between_rounds;
  next_.start(std::max(now, allowed), [this] { begin(); });
}

void slot_map_refresh::begin() {
  begun_ = services_.now();
  round_ = std::make_shared<round>();
  round_->to_ask = owner_.candidates(rounds_++);
  next();
}

void slot_map_refresh::next() {
  next_.stop();
  const auto in = round_;
  if (in->asked == in->to_ask.size()) {
    if (in->open == 0) end();
    return;
  }
  auto [by, at] = in->to_ask[in->asked++];
  const auto node = endpoint_.with(at);
  const bool own = !by;
  if (own) {
    const auto on_event = [this, number = in->asked, part_of = std::weak_ptr(in), at = at](const event& event) {
      if (event.kind != event_kind::outage) return;
      outages_(at, event);
      const auto asking = part_of.lock();
      if (asking && asking == round_ && asking->asked == number && number < asking->to_ask.size()) next();
    };
    in->own.push_back(by = std::make_shared<redis::connection>(services_, node, on_event));
  }
  ++in->open;
  // A new connection must be made first.
  const auto timeout = own ? node.connect_timeout + answer_timeout_ : answer_timeout_;
  by->execute({std::make_shared<question>(*this, in, node), {.timeout = timeout, .rank = urgency::obligation}});
  if (in->asked < in->to_ask.size())
    next_.start(services_.now() + std::min(prompt, lease_clock::duration(answer_timeout_)), [this] { next(); });
}

void slot_map_refresh::heard(question& question, const redis::outcome& outcome) {
  --round_->open;
  if (outcome.error) return disappointed(redis::failure_of(outcome));
  const auto& node = question.to_node;
  if (outcome.reply.is_error()) {
    const auto why = redis::classify(outcome.reply.text, errc::protocol_error);
    return disappointed(redis::fail(node, why.code, "CLUSTER SLOTS: " + redis::quoted(node, outcome.reply.text)));
  }
  const auto view = read_slots(outcome.reply, node.at, reach_);
  if (!view) return disappointed(redis::fail(node, errc::protocol_error, "CLUSTER SLOTS: a broken reply"));
  const auto in = round_;
  const auto verdict = owner_.take(*view, node.at);
  if (in != round_) return;  // closed
  if (verdict == verdict::refused)
    return disappointed(redis::fail(node, errc::protocol_error, "CLUSTER SLOTS: a map with too few slots"));
  in->taken = true;
  if (verdict == verdict::too_little) return next();
  in->to_ask.clear();
  in->asked = in->open = 0;
  end();
}

void slot_map_refresh::disappointed(redis::failure why) {
  auto& failure = round_->why;
  if (!failure || !failure->is_answer() || (failure->mends_itself() && why.is_answer())) failure = std::move(why);
  next();
}

void slot_map_refresh::end() {
  next_.stop();
  const auto over = std::exchange(round_, nullptr);
  for (const auto& connection : over->own) connection->close();
  if (over->why && !over->taken) owner_.failed(*over->why);
  if (!closed_ && owner_.over()) ask();
}

void slot_map_refresh::close() {
  closed_ = true;
  next_.stop();
  const auto over = std::exchange(round_, nullptr);
  if (!over) return;
  for (const auto& connection : over->own) connection->close();
}

}  // namespace holdfast::detail
