// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

#include <holdfast/config.hpp>
#include <holdfast/error.hpp>

#include "redis/endpoint.hpp"
#include "redis/stream.hpp"

namespace holdfast::redis {

/// Throws holdfast::error(invalid_config) when a file of `tls` cannot be read, is not PEM, or key and certificate do
/// not belong together.
void check(const tls_config& tls);

/// A context for clients: TLS 1.2 at least, the server verified. Reads the files; throws as check() does.
std::unique_ptr<asio::ssl::context> make_tls_context(const tls_config& tls);

/// Sets what is expected of the server: its certificate is for the node's host (or tls.server_name), a name or an
/// address. False when that cannot be set: then nothing would be checked, and the stream must not be used.
[[nodiscard]] bool expect_peer(stream::tls_stream& wire, const endpoint& node);

/// What an error of TLS means to a person; empty when it is not one of TLS but of the connection.
std::string tls_cause(stream::tls_stream& wire, const error_code& error, const endpoint& node);

}  // namespace holdfast::redis
