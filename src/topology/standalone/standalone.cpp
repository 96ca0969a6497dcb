// SPDX-License-Identifier: BSL-1.0
#include "topology/standalone/standalone.hpp"

#include <utility>

#include "redis/tls.hpp"

namespace holdfast::detail {

standalone::standalone(const redis::io_services& services, const redis::endpoint& server,
                       std::chrono::milliseconds answer_timeout, redis::connection::event_sink events)
    : commands_(std::make_shared<redis::connection>(services, server, std::move(events))),
      channels_(std::make_shared<redis::pubsub>(services, server, answer_timeout)), replicas_(services, server) {
  if (server.use_tls) redis::check(server.tls);
  commands_->expect_failover(redis::failover::once_primary);
  commands_->on_link_change([this](bool up) { on_link(up); });
  channels_->on_fencing_refused(
      [connection = commands_](const std::string& words) { connection->report_fencing(words); });
  channels_->on_no_messages(
      [connection = commands_](const redis::failure& why) { connection->report_no_messages(why); });
}

redis::ticket standalone::execute(std::string_view, redis::request asked) {
  return commands_->execute(std::move(asked));
}

bool standalone::withdraw(redis::ticket ticket) { return commands_->withdraw(ticket); }

bool standalone::answering(std::string_view) { return commands_->answering(); }

bool standalone::answered_since(std::string_view, time_point when) { return commands_->answered_since(when); }

redis::failure standalone::trouble(std::string_view) const { return commands_->trouble(); }

std::string standalone::where(std::string_view) const { return commands_->address(); }

subscription standalone::subscribe(std::string_view channel, subscriber& subscriber) {
  return channels_->subscribe(channel, subscriber);
}

void standalone::replicated(std::string_view key, const copies& wanted, copies_handler done) {
  replicas_.ask(key, wanted, std::move(done));
}

void standalone::keep_watch(bool on) { commands_->keep_watch(on); }

void standalone::on_link(bool up) {
  if (up) {
    channels_->follow(commands_->run());
    replicas_.follow(commands_->run());
  }
  if (listener_) listener_(the_only_node, up);
}

void standalone::close() {
  commands_->close();
  channels_->close();
  replicas_.close();
}

}  // namespace holdfast::detail
