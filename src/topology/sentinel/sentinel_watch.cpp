// SPDX-License-Identifier: BSL-1.0
#include "topology/sentinel/sentinel_watch.hpp"

#include <algorithm>
#include <utility>

#include "redis/request.hpp"
#include "redis/resp.hpp"

namespace holdfast::detail {
namespace {

class sentinel_command final : public redis::command {
 public:
  sentinel_command(std::vector<std::string> argv, redis::handler done)
      : argv_(std::move(argv)), done_(std::move(done)) {}
  void append_to(std::string& out) const override {
    const std::vector<std::string_view> views(argv_.begin(), argv_.end());
    redis::append_command(out, views);
  }
  void answered(const redis::outcome& outcome) override { done_(outcome); }

 private:
  const std::vector<std::string> argv_;
  const redis::handler done_;
};

}  // namespace

sentinel_watch::sentinel_watch(const redis::io_services& services, const redis::endpoint& node, sentinel_id id,
                               std::string primary_name, std::chrono::milliseconds answer_timeout, listener& listener)
    : id_(id), name_(std::move(primary_name)), answer_timeout_(answer_timeout), listener_(listener) {
  const auto heard = [this](const event& event) {
    if (event.kind == event_kind::outage) listener_.on_down(id_, {event.reason, std::string(event.detail)});
  };
  questions_ = std::make_shared<redis::connection>(services, node, heard);
  messages_ = std::make_shared<redis::pubsub>(services, node, answer_timeout);
  questions_->on_idle([this] {
    if (!listening_) questions_->rest();
  });
}

sentinel_watch::~sentinel_watch() {
  switches_.reset();
  questions_->close();
  messages_->close();
}

void sentinel_watch::listen(bool on) {
  listening_ = on;
  if (on && !switches_) switches_ = messages_->subscribe("+switch-master", *this);
  messages_->listen(on);
  if (on) return;
  messages_->rest();
  questions_->rest();
}

// "<name> <old host> <old port> <new host> <new port>": only a hint, the answers decide.
void sentinel_watch::on_message(std::string_view payload) {
  if (payload.starts_with(name_ + " ")) listener_.on_news(id_);
}

void sentinel_watch::send(std::vector<std::string> argv, redis::handler done) {
  questions_->execute({std::make_shared<sentinel_command>(std::move(argv), std::move(done)),
                       {.timeout = answer_timeout_, .rank = redis::urgency::awaited}});
}

void sentinel_watch::ask(bool for_others) {
  if (for_others) {
    send({"SENTINEL", "MYID"}, [this](const redis::outcome& outcome) {
      if (!outcome.error) listener_.on_identified(id_, read_run(outcome.reply));
    });
    send({"SENTINEL", "SENTINELS", name_}, [this](const redis::outcome& outcome) {
      if (!outcome.error) listener_.on_listed(read_sentinels(outcome.reply, sentinel_resolver::most_known));
    });
  }
  send({"SENTINEL", "MASTER", name_}, [this](const redis::outcome& outcome) { master_ = outcome; });
  send({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name_}, [this](const redis::outcome& outcome) { on_address(outcome); });
}

void sentinel_watch::on_address(const redis::outcome& outcome) {
  const auto first = std::exchange(master_, std::nullopt);
  if (first && first->error) return listener_.on_failed(id_, redis::failure_of(*first));
  if (!first || outcome.error) return listener_.on_failed(id_, redis::failure_of(outcome));
  listener_.on_answer(id_, read_answer(name_, first->reply, outcome.reply));
}

}  // namespace holdfast::detail
