// SPDX-License-Identifier: BSL-1.0
#include "redis/connector.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace holdfast::redis {

namespace {

// A TLS server has answered by then. It is short enough for the caller of a command to get this cause.
constexpr auto enough_for_a_greeting = std::chrono::milliseconds{200};

}  // namespace

connector::connector(const io_services& services, const endpoint& node)
    : services_(services), node_(node), resolver_(services.strand.any()), alarm_(services.alarms) {}

void connector::start(detail::time_point deadline, transport::handler done) {
  deadline_ = deadline;
  done_ = std::move(done);
  asio::post(services_.strand.any(), [self = shared_from_this()] { self->go_on([&] { self->resolve(); }); });
}

void connector::cancel() {
  done_ = nullptr;
  alarm_.stop();
  resolver_.cancel();
  if (wire_) wire_->close();
  if (secured_) secured_->close();
  if (probe_) probe_->close();
}

template <class Step>
void connector::go_on(Step step) try {
  if (done_) step();
} catch (const std::bad_alloc&) {
  if (!done_) throw;  // the caller's
  refuse(without_memory());
}

void connector::resolve() try {
  if (node_.use_tls) tls_.emplace(node_.tls);
  if (!node_.at.unix_path.empty()) {
    addresses_.emplace_back(asio::local::stream_protocol::endpoint(node_.at.unix_path));
    return try_next();
  }
  error_code not_numeric;
  if (const auto ip = asio::ip::make_address(node_.at.host, not_numeric); !not_numeric) {
    addresses_.emplace_back(asio::ip::tcp::endpoint(ip, node_.at.port));
    return try_next();
  }
  phase_ = "resolving the name";
  // Without AI_ADDRCONFIG, Asio's default: it drops ::1 or 127.0.0.1 on machines that have no other address.
  resolver_.async_resolve(node_.at.host, std::to_string(node_.at.port), resolver::numeric_service,
                          [self = shared_from_this()](error_code failed, resolver::results_type found) {
                            self->go_on([&] { self->on_resolved(failed, found); });
                          });
} catch (const error& problem) {
  refuse(fail(node_, errc::tls_failed, problem.what()));
} catch (const boost::system::system_error& problem) {
  refuse(fail(node_, errc::unreachable, problem.code().message()));
}

void connector::on_resolved(const error_code& failed, const resolver::results_type& found) {
  if (failed) return refuse(fail(node_, errc::unreachable, "the name does not resolve: " + failed.message()));
  for (const auto& entry : found) addresses_.insert(addresses_.begin(), entry.endpoint());
  try_next();
}

void connector::try_next() {
  phase_ = "connecting";
  if (wire_) wire_->close();
  if (addresses_.empty()) return refuse(fail(node_, errc::unreachable, last_error_));
  to_ = addresses_.back();
  addresses_.pop_back();
  wire_ = std::make_shared<socket_stream>(services_.strand);
  if (!addresses_.empty()) {
    const auto now = services_.now();
    const auto share = (deadline_ - now) / (static_cast<long>(addresses_.size()) + 1);
    alarm_.start(now + share, [self = shared_from_this()] {
      self->last_error_ = "no answer";
      self->go_on([&] { self->try_next(); });
    });
  }
  wire_->async_connect(to_, [self = shared_from_this(), wire = wire_](error_code failed) {
    if (self->wire_ == wire) self->go_on([&] { self->on_connected(failed); });
  });
}

void connector::on_connected(const error_code& failed) {
  alarm_.stop();
  if (failed) {
    last_error_ = failed.message();
    return try_next();
  }
  if (node_.at.unix_path.empty()) set_tcp_options(wire_->socket(), node_.health_check_interval);
  if (node_.use_tls) return negotiate();
  finish(wire_, {});
}

void connector::negotiate() {
  phase_ = "negotiating TLS";
  secured_ = tls_->over(std::move(wire_->socket()), services_.strand, node_);
  wire_.reset();
  if (!secured_) return refuse(fail(node_, errc::tls_failed, "the server's name cannot be verified"));
  const auto now = services_.now();
  alarm_.start(now + std::min<detail::lease_clock::duration>((deadline_ - now) / 2, enough_for_a_greeting),
               [self = shared_from_this()] { self->go_on([&] { self->ask_in_plain(); }); });
  secured_->async_handshake(
      [self = shared_from_this()](failure why) { self->go_on([&] { self->on_negotiated(std::move(why)); }); });
}

void connector::on_negotiated(failure why) {
  if (!why.detail.empty()) return refuse(std::move(why));
  finish(secured_, {});
}

// Redis waits indefinitely for the rest of a TLS greeting at its plain port. Only a command in plain text, on another
// connection, distinguishes that port from a server that hangs.
void connector::ask_in_plain() {
  probe_ = std::make_shared<socket_stream>(services_.strand);
  probe_->async_connect(to_, [self = shared_from_this()](error_code failed) {
    if (failed) return;
    auto then = stream::handler::to<&connector::on_asked_in_plain>(self);
    self->go_on([&] { self->probe_->async_write(asio::buffer("PING\r\n", 6), std::move(then)); });
  });
}

void connector::on_asked_in_plain(const error_code& failed, std::size_t) {
  if (failed) return;
  auto then = stream::handler::to<&connector::on_plain_answer>(shared_from_this());
  go_on([&] { probe_->async_read_some(asio::buffer(&probed_, 1), std::move(then)); });
}

void connector::on_plain_answer(const error_code& failed, std::size_t) {
  if (done_ && !failed && (probed_ == '+' || probed_ == '-'))
    refuse(fail(node_, errc::tls_failed, "not TLS: the server answers in plain text"));
}

void connector::refuse(failure why) {
  if (wire_) wire_->close();
  if (secured_) secured_->close();
  finish(nullptr, std::move(why));
}

void connector::finish(std::shared_ptr<stream> made, failure why) {
  alarm_.stop();
  if (probe_) probe_->close();
  std::exchange(done_, nullptr)(std::move(made), std::move(why));
}

}  // namespace holdfast::redis
