// SPDX-License-Identifier: BSL-1.0
// Instead of tls.cpp in a build without OpenSSL.
#include "redis/tls.hpp"

namespace holdfast::redis {

struct tls_client::impl {};

void check(const tls_config& tls) { tls_client{tls}; }

tls_client::tls_client(const tls_config&) {
  throw error(errc::invalid_config, "this holdfast was built without TLS (HOLDFAST_WITH_TLS=OFF)");
}

tls_client::~tls_client() = default;

std::shared_ptr<tls_stream> tls_client::over(stream_socket, const redis::strand&, const endpoint&) const {
  return nullptr;
}

}  // namespace holdfast::redis
