// SPDX-License-Identifier: BSL-1.0
#include "topology/one_server.hpp"

namespace holdfast::detail {

redis::ticket one_server::execute(std::string_view, redis::request asked) {
  return commands_->execute(std::move(asked));
}

redis::failure one_server::trouble(std::string_view) const { return commands_->trouble(); }

std::string one_server::where(std::string_view) const { return commands_->address(); }

subscription one_server::subscribe(std::string_view channel, subscriber& subscriber) {
  return channels_->subscribe(channel, subscriber);
}

void one_server::start_pushing(std::string_view) { pushes_->start(); }

void one_server::on_key_changed(change_listener listener) {
  pushes_->on_changed([listener = std::move(listener)](std::string_view key) { listener(key, the_only_node); });
}

void one_server::keep_watch(bool on) { commands_->keep_watch(on); }

void one_server::close() {
  commands_->close();
  channels_->close();
  pushes_->close();
}

// The connection for commands reports what the other one finds out about their server.
void one_server::make_connections(const redis::io_services& services, const redis::endpoint& server,
                                  std::chrono::milliseconds answer_timeout, redis::connection::event_sink events) {
  commands_ = std::make_shared<redis::connection>(services, server, std::move(events));
  channels_ = std::make_shared<redis::pubsub>(services, server, answer_timeout);
  channels_->on_fencing_refused(
      [connection = commands_](const std::string& words) { connection->report_fencing(words); });
  channels_->on_no_messages(
      [connection = commands_](const redis::failure& why) { connection->report_no_messages(why); });
  pushes_ = std::make_shared<redis::push_feed>(services, commands_, channels_);
}

void one_server::tell_link(bool up) const {
  if (listener_) listener_(the_only_node, up);
}

}  // namespace holdfast::detail
