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
  void answered(const redis::outcome& o) override { done_(o); }

 private:
  const std::vector<std::string> argv_;
  const redis::handler done_;
};

}  // namespace

sentinel_watch::sentinel_watch(const redis::io_services& given, const redis::endpoint& node, sentinel_id id,
                               std::string primary_name, std::chrono::milliseconds answer_timeout, listener& told)
    : id_(id), name_(std::move(primary_name)), answer_timeout_(answer_timeout), told_(told) {
  const auto heard = [this](const event& e) {
    if (e.what == event_kind::outage) told_.on_down(id_, {static_cast<errc>(e.reason.value()), std::string(e.detail)});
  };
  questions_ = std::make_shared<redis::connection>(given, node, heard);
  messages_ = std::make_shared<redis::pubsub>(given, node, answer_timeout);
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
  if (payload.starts_with(name_ + " ")) told_.on_news(id_);
}

void sentinel_watch::send(std::vector<std::string> argv, redis::handler done) {
  questions_->execute({std::make_shared<sentinel_command>(std::move(argv), std::move(done)),
                       {.timeout = answer_timeout_, .rank = redis::urgency::awaited}});
}

void sentinel_watch::ask(bool for_others) {
  if (for_others) {
    send({"SENTINEL", "MYID"}, [this](const redis::outcome& o) {
      if (!o.error) told_.on_identified(id_, read_run(o.reply));
    });
    send({"SENTINEL", "SENTINELS", name_}, [this](const redis::outcome& o) {
      if (!o.error) told_.on_listed(read_sentinels(o.reply, sentinel_resolver::most_known));
    });
  }
  send({"SENTINEL", "MASTER", name_}, [this](const redis::outcome& o) { master_ = o; });
  send({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name_}, [this](const redis::outcome& o) { on_address(o); });
}

void sentinel_watch::on_address(const redis::outcome& o) {
  const auto first = std::exchange(master_, std::nullopt);
  if (first && first->error) return told_.on_failed(id_, redis::failure_of(*first));
  if (!first || o.error) return told_.on_failed(id_, redis::failure_of(o));
  told_.on_answer(id_, read_answer(name_, first->reply, o.reply));
}

}  // namespace holdfast::detail
