// SPDX-License-Identifier: BSL-1.0
#include "redis/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include <string>
#include <utility>

namespace holdfast::redis {

namespace {

void require(const error_code& failed, const char* field, const std::string& path) {
  if (failed)
    throw error(errc::invalid_config,
                std::string("tls.").append(field).append(" \"").append(path).append("\": ").append(failed.message()));
}

using secure_socket = asio::ssl::stream<stream_socket>;

bool is_address(const std::string& name) {
  error_code failed;
  asio::ip::make_address(name, failed);
  return !failed;
}

std::string verification_cause(long result, const std::string& expected_name) {
  switch (result) {
    case X509_V_OK: return {};
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "wrong host: the server's certificate is not for \"" + expected_name + '"';
    case X509_V_ERR_CERT_HAS_EXPIRED: return "the server's certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID: return "the server's certificate is not valid yet";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return "wrong CA: the server's certificate is self-signed and not trusted";
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: return "wrong CA: the server's certificate is not signed by a trusted one";
    default: return std::string("the server's certificate is refused: ") + X509_verify_cert_error_string(result);
  }
}

// Alerts of the server, and what is not TLS at all.
std::string protocol_cause(int reason, bool has_certificate) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: return "client certificate missing: the server requires one";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      if (!has_certificate) return "the server refused the handshake: client certificate missing, or no common cipher";
      return "the server refused the handshake";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return has_certificate ? "client certificate refused by the server" : "refused by the server";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL: return "no common TLS version: 1.2 is the least";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_HTTP_REQUEST: return "not TLS: the server answers in plain text";
    default: return {};
  }
}

void configure(asio::ssl::context& context, const tls_config& tls) {
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  error_code failed;
  if (tls.ca_file.empty() && tls.ca_dir.empty()) {
    context.set_default_verify_paths(failed);
    require(failed, "ca_file", "(the system's)");
  }
  if (!tls.ca_file.empty()) {
    context.load_verify_file(tls.ca_file, failed);
    require(failed, "ca_file", tls.ca_file);
  }
  if (!tls.ca_dir.empty()) {
    context.add_verify_path(tls.ca_dir, failed);
    require(failed, "ca_dir", tls.ca_dir);
  }
  if (tls.certificate_file.empty() != tls.key_file.empty())
    throw error(errc::invalid_config, "tls.certificate_file and tls.key_file are set together or not at all");
  if (!tls.certificate_file.empty()) {
    context.use_certificate_chain_file(tls.certificate_file, failed);
    require(failed, "certificate_file", tls.certificate_file);
    context.use_private_key_file(tls.key_file, asio::ssl::context::pem, failed);
    require(failed, "key_file", tls.key_file);
  }
  context.set_verify_mode(tls.insecure_skip_verification ? asio::ssl::verify_none : asio::ssl::verify_peer);
}

/// Sets what is expected of the server. False when that cannot be set.
bool expect_peer(secure_socket& wire, const std::string& name) {
  auto* parameters = SSL_get0_param(wire.native_handle());
  if (name.empty()) return false;
  if (is_address(name)) return X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(wire.native_handle(), name.c_str()) == 1 &&
         X509_VERIFY_PARAM_set1_host(parameters, name.data(), name.size()) == 1;
}

class openssl_stream final : public tls_stream, public std::enable_shared_from_this<openssl_stream> {
 public:
  openssl_stream(stream_socket connected, const redis::strand& strand, asio::ssl::context& context,
                 const endpoint& node)
      : wire_(std::move(connected), context), strand_(strand), node_(node.to_string()),
        peer_(node.tls.server_name.empty() ? node.at.host : node.tls.server_name),
        has_certificate_(!node.tls.certificate_file.empty()) {}

  bool demand_peer() { return expect_peer(wire_, peer_); }

  void async_handshake(std::function<void(failure)> done) override {
    wire_.async_handshake(
        asio::ssl::stream_base::client,
        asio::bind_executor(strand_, [self = shared_from_this(), done = std::move(done)](const error_code& failed) {
          done(failed ? self->refusal(failed) : failure());
        }));
  }
  void async_read_some(asio::mutable_buffer into, handler done) override {
    wire_.async_read_some(
        into, asio::bind_executor(strand_, [done = std::move(done)](const error_code& failed, std::size_t size) {
          // A server that closes without the farewell of TLS is a server that closes.
          done(failed == asio::ssl::error::stream_truncated ? error_code(asio::error::eof) : failed, size);
        }));
  }
  void async_write(asio::const_buffer bytes, handler done) override {
    asio::async_write(wire_, bytes, asio::bind_executor(strand_, std::move(done)));
  }
  std::size_t write_now(std::string_view, error_code&) override { return 0; }
  input peek() override {
    // Records of TLS hide that the server has closed: its farewell is one, and so is a session ticket.
    pollfd closed{socket().native_handle(), POLLRDHUP, 0};
    return ::poll(&closed, 1, 0) > 0 ? input::ended : redis::peek(socket());
  }
  void cancel() override {
    error_code ignored;
    socket().cancel(ignored);
  }
  void close() override {
    error_code ignored;
    socket().close(ignored);
  }
  bool secured() const noexcept override { return true; }
  std::string tls_cause(const error_code& failed) override {
    if (failed.category() != asio::error::get_ssl_category()) return {};
    const auto reason = ERR_GET_REASON(static_cast<unsigned long>(failed.value()));
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
      return verification_cause(SSL_get_verify_result(wire_.native_handle()), peer_);
    auto cause = protocol_cause(reason, has_certificate_);
    return cause.empty() ? "TLS: " + failed.message() : cause;
  }

 private:
  stream_socket& socket() { return wire_.next_layer(); }
  failure refusal(const error_code& failed) {
    if (const auto cause = tls_cause(failed); !cause.empty()) return {errc::tls_failed, node_ + ": " + cause};
    return {errc::unreachable, node_ + ": closed while TLS was negotiated: " + failed.message()};
  }

  secure_socket wire_;
  const redis::strand strand_;  // for the handlers, and so for the steps of TLS in between
  const std::string node_, peer_;
  const bool has_certificate_;
};

}  // namespace

struct tls_client::impl {
  asio::ssl::context context{asio::ssl::context::tls_client};
};

void check(const tls_config& tls) { tls_client{tls}; }

tls_client::tls_client(const tls_config& tls) : impl_(std::make_unique<impl>()) { configure(impl_->context, tls); }

tls_client::~tls_client() = default;

std::shared_ptr<tls_stream> tls_client::over(stream_socket connected, const redis::strand& strand,
                                             const endpoint& node) const {
  auto made = std::make_shared<openssl_stream>(std::move(connected), strand, impl_->context, node);
  return made->demand_peer() ? made : nullptr;
}

}  // namespace holdfast::redis
