// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <memory>

#include <holdfast/config.hpp>
#include <holdfast/error.hpp>

#include "redis/endpoint.hpp"
#include "redis/socket_stream.hpp"
#include "redis/transport.hpp"

/// TLS without a type of OpenSSL. In a build without OpenSSL the functions exist and fail.
namespace holdfast::redis {

/// Throws holdfast::error(invalid_config) if a file of `tls` cannot be read or is not PEM, if key and certificate do
/// not belong together, or if the library was built without TLS.
void check(const tls_config& tls);

/// A stream over a connected socket whose server is not verified yet.
class tls_stream : public stream {
 public:
  /// Only close() may be called before `done`. An empty detail: the server is verified.
  virtual void async_handshake(std::function<void(failure)> done) = 0;
};

/// The client's side of TLS: at least TLS 1.2, with a verified server. It may be destroyed before its streams.
class tls_client {
 public:
  /// Reads the files; throws as check() does.
  explicit tls_client(const tls_config& tls);
  ~tls_client();

  /// The server's certificate must be for the node's host (or tls.server_name), a name or an address. Null if OpenSSL
  /// cannot check that name: nothing would be verified.
  std::shared_ptr<tls_stream> over(stream_socket connected, const redis::strand& strand, const endpoint& node) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace holdfast::redis
