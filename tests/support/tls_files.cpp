// SPDX-License-Identifier: BSL-1.0
#include "support/tls_files.hpp"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <stdexcept>

namespace holdfast::test {
namespace {

template <auto free_function>
struct freed_by {
  void operator()(auto* object) const { free_function(object); }
};
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate_ptr = std::unique_ptr<X509, freed_by<X509_free>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>>;
using file_ptr = std::unique_ptr<BIO, freed_by<BIO_free>>;

struct identity {
  key_ptr key;
  certificate_ptr certificate;
};

struct extension {
  int nid;
  const char* value;  // as in openssl.cnf
};

struct validity {
  std::chrono::seconds from, to;  // from now on
};
constexpr validity valid_now{-std::chrono::days{1}, std::chrono::days{30}};
constexpr validity valid_until_yesterday{-std::chrono::days{2}, -std::chrono::days{1}};

template <class result>
result checked(result value) {
  if (!value) throw std::runtime_error(std::string("OpenSSL: ") + ERR_error_string(ERR_get_error(), nullptr));
  return value;
}

identity make_identity(const std::string& name, const identity* issuer, validity valid,
                       std::initializer_list<extension> extensions) {
  identity made{key_ptr(checked(EVP_EC_gen("P-256"))), certificate_ptr(checked(X509_new()))};
  X509* const certificate = made.certificate.get();
  checked(X509_set_version(certificate, X509_VERSION_3));
  static long serial = 0;
  checked(ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial));
  checked(X509_gmtime_adj(X509_getm_notBefore(certificate), valid.from.count()));
  checked(X509_gmtime_adj(X509_getm_notAfter(certificate), valid.to.count()));
  checked(X509_set_pubkey(certificate, made.key.get()));
  checked(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                     reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0));
  const identity& signer = issuer ? *issuer : made;
  checked(X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate.get())));
  for (const auto& e : extensions) {
    const extension_ptr text(checked(X509V3_EXT_conf_nid(nullptr, nullptr, e.nid, e.value)));
    checked(X509_add_ext(certificate, text.get(), -1));
  }
  checked(X509_sign(certificate, signer.key.get(), EVP_sha256()));
  return made;
}

tls_files::pair write(const identity& what, const std::string& path) {
  const tls_files::pair files{path + ".pem", path + ".key"};
  const file_ptr certificate(checked(BIO_new_file(files.certificate.c_str(), "w")));
  checked(PEM_write_bio_X509(certificate.get(), what.certificate.get()));
  const file_ptr key(checked(BIO_new_file(files.key.c_str(), "w")));
  checked(PEM_write_bio_PrivateKey(key.get(), what.key.get(), nullptr, nullptr, 0, nullptr, nullptr));
  return files;
}

identity make_ca(const std::string& name) {
  return make_identity(name, nullptr, valid_now,
                       {{NID_basic_constraints, "critical,CA:TRUE"}, {NID_key_usage, "critical,keyCertSign,cRLSign"}});
}

}  // namespace

tls_files::tls_files() : folder_("holdfast-tls-") {
  const auto authority = make_ca("ca");
  const auto other_authority = make_ca("other_ca");
  const auto make_pair = [&](const std::string& name, const identity& issuer, validity valid, extension more) {
    return write(make_identity(name, &issuer, valid, {{NID_basic_constraints, "critical,CA:FALSE"}, more}),
                 folder_.path() + "/" + name);
  };
  const extension here{NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:::1"};
  const extension elsewhere{NID_subject_alt_name, "DNS:elsewhere.example,IP:192.0.2.1"};
  const extension for_clients{NID_ext_key_usage, "clientAuth"};

  ca = write(authority, folder_.path() + "/ca").certificate;
  other_ca = write(other_authority, folder_.path() + "/other_ca").certificate;
  server = make_pair("server", authority, valid_now, here);
  wrong_host = make_pair("wrong_host", authority, valid_now, elsewhere);
  expired = make_pair("expired", authority, valid_until_yesterday, here);
  client = make_pair("client", authority, valid_now, for_clients);
  other_client = make_pair("other_client", other_authority, valid_now, for_clients);
}

}  // namespace holdfast::test
