// SPDX-License-Identifier: BSL-1.0
#include "topology/standalone/standalone.hpp"

#include <utility>

#include "redis/tls.hpp"

namespace holdfast::detail {

standalone::standalone(const redis::io_services& services, const redis::endpoint& server,
                       std::chrono::milliseconds answer_timeout, redis::connection::event_sink events)
    : replicas_(services, server) {
  make_connections(services, server, answer_timeout, std::move(events));
  if (server.use_tls) redis::check(server.tls);
  commands_->expect_failover(redis::failover::once_primary);
  commands_->on_link_change([this](bool up) { on_link(up); });
}

void standalone::replicated(std::string_view key, const replica_demand& wanted, replicas_handler done) {
  replicas_.ask(key, wanted, std::move(done));
}

void standalone::on_link(bool up) {
  if (up) {
    channels_->follow(commands_->run());
    replicas_.follow(commands_->run());
  }
  tell_link(up);
}

void standalone::close() {
  one_server::close();
  replicas_.close();
}

}  // namespace holdfast::detail
