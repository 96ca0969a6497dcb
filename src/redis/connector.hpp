// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "redis/endpoint.hpp"
#include "redis/failure.hpp"
#include "redis/services.hpp"
#include "redis/stream.hpp"

namespace holdfast::redis {

/// One attempt to get a byte stream to a server: names are resolved, all addresses tried in turn, TLS negotiated.
class connector : public std::enable_shared_from_this<connector> {
 public:
  /// The stream, or why there is none.
  using handler = std::function<void(std::shared_ptr<stream>, failure)>;

  /// `node` must live until the handler was called or cancel().
  connector(const services& given, const endpoint& node);

  /// Called once, from the strand, never inside start(); not after cancel().
  void start(detail::time_point deadline, handler done);
  void cancel();
  /// How far it has come, for a text.
  const char* phase() const noexcept { return phase_; }

 private:
  using address = asio::generic::stream_protocol::endpoint;
  using resolver = asio::ip::basic_resolver<asio::ip::tcp, redis::strand>;

  void resolve();
  void on_resolved(const error_code& failed, const resolver::results_type& found);
  void try_next();
  void on_connected(const error_code& failed);
  void negotiate();
  void on_negotiated(const error_code& failed);
  void ask_in_plain();
  void finish(failure why);

  services services_;
  const endpoint& node_;
  resolver resolver_;
  // Connecting: an address that does not answer leaves time for the others; TLS: see ask_in_plain().
  detail::timer patience_;
  detail::time_point deadline_{};
  handler done_;
  std::vector<address> addresses_;  // not tried yet, in reverse order
  address to_;
  std::shared_ptr<stream> wire_;
  std::shared_ptr<stream> probe_;
  char probed_ = 0;
  std::unique_ptr<asio::ssl::context> tls_;
  std::string last_error_;
  const char* phase_ = "";
};

}  // namespace holdfast::redis
