// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <memory>

#include <holdfast/config.hpp>
#include <holdfast/error.hpp>

#include "redis/endpoint.hpp"
#include "redis/socket_stream.hpp"
#include "redis/transport.hpp"

/// TLS, in the library's terms alone. A build without OpenSSL has it as well, and says so when it is asked.
namespace holdfast::redis {

/// Throws holdfast::error(invalid_config) when a file of `tls` cannot be read, is not PEM, or key and certificate do
/// not belong together; or when the library was built without TLS.
void check(const tls_config& tls);

/// A stream over a connected socket whose server is still to be verified.
class tls_stream : public stream {
 public:
  /// Nothing else is called before `done`, except close(). An empty detail: verified; the bytes may flow.
  virtual void async_handshake(std::function<void(failure)> done) = 0;
};

/// What our end of TLS needs: TLS 1.2 at least, the server verified. May go before its streams.
class tls_client {
 public:
  /// Reads the files; throws as check() does.
  explicit tls_client(const tls_config& tls);
  ~tls_client();

  /// The server's certificate must be for the node's host (or tls.server_name), a name or an address. Null when that
  /// cannot be demanded: then nothing would be verified.
  std::shared_ptr<tls_stream> over(stream_socket connected, const endpoint& node) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace holdfast::redis
