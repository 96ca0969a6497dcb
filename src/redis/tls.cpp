// SPDX-License-Identifier: BSL-1.0
#include "redis/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/error.hpp>

namespace holdfast::redis {

namespace {

void require(const error_code& failed, const char* field, const std::string& path) {
  if (failed)
    throw error(errc::invalid_config,
                std::string("tls.").append(field).append(" \"").append(path).append("\": ").append(failed.message()));
}

const std::string& expected_name(const endpoint& node) {
  return node.tls.server_name.empty() ? node.host : node.tls.server_name;
}

bool is_address(const std::string& name) {
  error_code failed;
  asio::ip::make_address(name, failed);
  return !failed;
}

std::string verification_cause(long result, const endpoint& node) {
  switch (result) {
    case X509_V_OK: return {};
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "wrong host: the server's certificate is not for \"" + expected_name(node) + '"';
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
std::string protocol_cause(int reason, const endpoint& node) {
  const bool has_certificate = !node.tls.certificate_file.empty();
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

}  // namespace

void check(const tls_config& tls) { make_tls_context(tls); }

std::unique_ptr<asio::ssl::context> make_tls_context(const tls_config& tls) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  error_code failed;
  if (tls.ca_file.empty() && tls.ca_dir.empty()) {
    context->set_default_verify_paths(failed);
    require(failed, "ca_file", "(the system's)");
  }
  if (!tls.ca_file.empty()) {
    context->load_verify_file(tls.ca_file, failed);
    require(failed, "ca_file", tls.ca_file);
  }
  if (!tls.ca_dir.empty()) {
    context->add_verify_path(tls.ca_dir, failed);
    require(failed, "ca_dir", tls.ca_dir);
  }
  if (tls.certificate_file.empty() != tls.key_file.empty())
    throw error(errc::invalid_config, "tls.certificate_file and tls.key_file are set together or not at all");
  if (!tls.certificate_file.empty()) {
    context->use_certificate_chain_file(tls.certificate_file, failed);
    require(failed, "certificate_file", tls.certificate_file);
    context->use_private_key_file(tls.key_file, asio::ssl::context::pem, failed);
    require(failed, "key_file", tls.key_file);
  }
  context->set_verify_mode(tls.insecure_skip_verification ? asio::ssl::verify_none : asio::ssl::verify_peer);
  return context;
}

bool expect_peer(stream::tls_stream& wire, const endpoint& node) {
  const auto& name = expected_name(node);
  auto* parameters = SSL_get0_param(wire.native_handle());
  if (name.empty()) return false;
  if (is_address(name)) return X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(wire.native_handle(), name.c_str()) == 1 &&
         X509_VERIFY_PARAM_set1_host(parameters, name.data(), name.size()) == 1;
}

std::string tls_cause(stream::tls_stream& wire, const error_code& error, const endpoint& node) {
  if (error.category() != asio::error::get_ssl_category()) return {};
  const auto reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return verification_cause(SSL_get_verify_result(wire.native_handle()), node);
  auto cause = protocol_cause(reason, node);
  return cause.empty() ? "TLS: " + error.message() : cause;
}

}  // namespace holdfast::redis
