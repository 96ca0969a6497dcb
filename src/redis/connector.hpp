// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "redis/endpoint.hpp"
#include "redis/failure.hpp"
#include "redis/io_services.hpp"
#include "redis/socket_stream.hpp"
#include "redis/tls.hpp"
#include "redis/transport.hpp"

namespace holdfast::redis {

/// One attempt to make a byte stream to a server: resolves the name, tries all addresses one after the other, and
/// negotiates TLS.
class connector final : public transport::attempt, public std::enable_shared_from_this<connector> {
 public:
  connector(const io_services& services, const endpoint& node);

  /// As transport::connect().
  void start(detail::time_point deadline, transport::handler done);
  void cancel() override;
  const char* phase() const noexcept override { return phase_; }

 private:
  using address = asio::generic::stream_protocol::endpoint;
  using resolver = asio::ip::basic_resolver<asio::ip::tcp, redis::strand>;

  /// Makes the next step. Without memory the attempt fails at once, so that no command waits for its deadline.
  template <class Step>
  void go_on(Step step);
  void resolve();
  void on_resolved(const error_code& failed, const resolver::results_type& found);
  void try_next();
  void on_connected(const error_code& failed);
  void negotiate();
  void on_negotiated(failure why);
  void ask_in_plain();
  void on_asked_in_plain(const error_code& failed, std::size_t);
  void on_plain_answer(const error_code& failed, std::size_t);
  void refuse(failure why);
  void finish(std::shared_ptr<stream> made, failure why);

  io_services services_;
  const endpoint& node_;
  resolver resolver_;
  // While connecting: an address that does not answer leaves time for the others. TLS: see ask_in_plain().
  detail::timer alarm_;
  detail::time_point deadline_{};
  transport::handler done_;
  std::vector<address> addresses_;  // not tried yet, in reverse order
  address to_;
  std::shared_ptr<socket_stream> wire_;
  std::shared_ptr<tls_stream> secured_;  // took the place of wire_
  std::shared_ptr<socket_stream> probe_;
  char probed_ = 0;
  std::optional<tls_client> tls_;
  std::string last_error_;
  const char* phase_ = "";
};

}  // namespace holdfast::redis
