// SPDX-License-Identifier: BSL-1.0
#include "redis/tls.hpp"

#include <openssl/conf.h>
#include <openssl/ssl.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "integration/redis_rig.hpp"
#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/tls_files.hpp"
#include "topology/standalone/standalone.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

struct fixture : redis_rig {
  fixture() {
    least_rights::skip_if_in_force("connections carry any command here");
    need_redis();
  }

  /// A server with this certificate; skips where the server cannot do TLS.
  void serve(const tls_files::pair& with, bool require_client_certificate = false) {
    redis_options options;
    options.tls = redis_options::tls_files{with.certificate, with.key, files.ca, require_client_certificate};
    server.emplace(std::move(options));
  }

  redis::endpoint node(std::string host = "localhost") const {
    auto n = tcp_endpoint(std::move(host), server->tls_port());
    n.use_tls = true;
    n.tls.ca_file = files.ca;
    n.connect_timeout = 20s;  // nobody waits for it, except on a busy machine
    return n;
  }

  /// The cause for which a connection to `node` is refused.
  std::string refusal(const redis::endpoint& node) {
    const auto c = connect(node);
    const auto a = call(*c, {"PING"});
    CHECK(a->has(errc::tls_failed));
    c->close();
    return a->got.detail;
  }

  tls_files files;
  std::optional<real_redis> server;
};

/// A configuration of OpenSSL that allows whatever it can do at all: in force in this process until the end of the
/// scope.
class permissive_openssl {
 public:
  permissive_openssl() {
    std::ofstream(path_) << "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = permissive\n"
                            "[permissive]\nMinProtocol = TLSv1\nCipherString = ALL:@SECLEVEL=0\n";
    load(path_.c_str());
  }
  permissive_openssl(const permissive_openssl&) = delete;
  permissive_openssl& operator=(const permissive_openssl&) = delete;
  ~permissive_openssl() { load(nullptr); }
  const std::string& path() const noexcept { return path_; }

 private:
  static void load(const char* file) {
    CONF_modules_finish();
    CONF_modules_load_file(file, nullptr, CONF_MFLAGS_DEFAULT_SECTION | CONF_MFLAGS_IGNORE_MISSING_FILE);
  }

  temp_folder folder_;
  std::string path_ = folder_.path() + "/openssl.cnf";
};

/// The version that OpenSSL itself, asked for nothing, agrees on with the server; empty: none.
std::string version_without_our_settings(std::uint16_t port) {
  asio::io_context io;
  asio::ssl::context context(asio::ssl::context::tls_client);
  asio::ssl::stream<asio::ip::tcp::socket> wire(io, context);
  wire.next_layer().connect({asio::ip::address_v4::loopback(), port});
  error_code failed;
  wire.handshake(asio::ssl::stream_base::client, failed);
  return failed ? std::string() : SSL_get_version(wire.native_handle());
}

/// A TLS server that notes the name that its first client asks for.
class server_that_hears_names {
 public:
  server_that_hears_names(asio::io_context& io, const tls_files::pair& with)
      : acceptor_(io, {asio::ip::address_v4::loopback(), 0}) {
    context_.use_certificate_chain_file(with.certificate);
    context_.use_private_key_file(with.key, asio::ssl::context::pem);
    const auto note = [](SSL* from, int*, void* to) {
      const auto* name = SSL_get_servername(from, TLSEXT_NAMETYPE_host_name);
      static_cast<std::optional<std::string>*>(to)->emplace(name ? name : "");
      return SSL_TLSEXT_ERR_OK;
    };
    SSL_CTX_set_tlsext_servername_callback(context_.native_handle(), +note);
    SSL_CTX_set_tlsext_servername_arg(context_.native_handle(), &heard);
    acceptor_.async_accept([this](const error_code& failed, asio::ip::tcp::socket s) {
      if (failed) return;
      const auto wire = std::make_shared<asio::ssl::stream<asio::ip::tcp::socket>>(std::move(s), context_);
      wire->async_handshake(asio::ssl::stream_base::server, [wire](const error_code&) {});
    });
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  std::optional<std::string> heard;  // empty text: a client that named nobody

 private:
  asio::ssl::context context_{asio::ssl::context::tls_server};
  asio::ip::tcp::acceptor acceptor_;
};

}  // namespace

TEST_CASE_METHOD(fixture, "commands and messages go over TLS, to names and to addresses") {
  serve(files.server);
  for (const auto* host : {"localhost", "127.0.0.1"}) {
    const auto c = connect(node(host));
    REQUIRE(call(*c, {"PING"})->is("PONG"));
    std::vector<answer_ptr> answers;
    const std::string large(300'000, 'x');
    const auto set = send(*c, {"SET", "large", large});
    for (int i = 0; i < 1000; ++i) answers.push_back(send(*c, {"ECHO", std::to_string(i)}));
    const auto get = send(*c, {"GET", "large"});
    REQUIRE(until([&] { return get->times != 0; }));
    CHECK(set->is("OK"));
    for (std::size_t i = 0; i < answers.size(); ++i) CHECK(answers[i]->is(std::to_string(i)));
    CHECK(get->is(large));
  }
}

TEST_CASE_METHOD(fixture, "an idle TLS connection holds nothing, and survives the end of a watch") {
  serve(files.server);
  const auto c = connect(node());
  const auto first = send(*c, {"PING"});
  must_become_idle();
  CHECK(first->is("PONG"));
  for (int i = 0; i < 3; ++i) {
    c->keep_watch(true);
    run_for(20ms);
    CHECK_FALSE(io.stopped());
    c->keep_watch(false);
    must_become_idle();
    const auto ping = send(*c, {"PING"});
    must_become_idle();
    CHECK(ping->is("PONG"));
  }
  CHECK(links == "+");
}

TEST_CASE_METHOD(fixture,
                 "an idle TLS connection that the server closed is replaced before anything is written to it") {
  const std::string protocol = GENERATE("TLSv1.2", "TLSv1.3");
  serve(files.server);
  raw_client admin(server->socket_path());
  admin("CONFIG", "SET", "tls-protocols", protocol);
  const auto c = connect(node());
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  must_become_idle();
  admin("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  run_for(20ms);
  CHECK(call(*c, {"PING"})->is("PONG"));
  CHECK(links == "+-+");
}

TEST_CASE_METHOD(fixture, "a watched TLS connection that is lost is made again") {
  serve(files.server);
  const auto c = connect(node());
  c->keep_watch(true);
  REQUIRE(until([&] { return links == "+"; }));
  raw_client admin(server->socket_path());
  admin("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  REQUIRE(until([&] { return links == "+-+"; }));
  CHECK(reasons.at(1) == errc::unreachable);
}

TEST_CASE_METHOD(fixture, "a server whose certificate is not trusted is refused") {
  serve(files.server);
  auto n = node();
  n.tls.ca_file = files.other_ca;
  CHECK_THAT(refusal(n), contains_text("wrong CA"));
  n.tls.ca_file.clear();  // the system's
  CHECK_THAT(refusal(n), contains_text("wrong CA"));
  n.tls.insecure_skip_verification = true;
  CHECK(call(*connect(n), {"PING"})->is("PONG"));
}

TEST_CASE_METHOD(fixture, "a server under another name is refused, unless that is the name asked for") {
  serve(files.wrong_host);
  CHECK_THAT(refusal(node("localhost")),
             contains_text("wrong host: the server's certificate is not for \"localhost\""));
  CHECK_THAT(refusal(node("127.0.0.1")),
             contains_text("wrong host: the server's certificate is not for \"127.0.0.1\""));
  auto n = node("127.0.0.1");
  n.tls.server_name = "elsewhere.example";
  CHECK(call(*connect(n), {"PING"})->is("PONG"));
}

TEST_CASE_METHOD(fixture, "an expired certificate is refused") {
  serve(files.expired);
  CHECK_THAT(refusal(node()), contains_text("expired"));
}

TEST_CASE_METHOD(fixture, "a server that wants a client certificate gets one, or says that it is missing or refused") {
  serve(files.server, true);
  CHECK_THAT(refusal(node()), contains_text("client certificate missing"));
  auto n = node();
  n.tls.certificate_file = files.other_client.certificate;
  n.tls.key_file = files.other_client.key;
  CHECK_THAT(refusal(n), contains_text("client certificate refused"));
  n.tls.certificate_file = files.client.certificate;
  n.tls.key_file = files.client.key;
  CHECK(call(*connect(n), {"PING"})->is("PONG"));
}

TEST_CASE_METHOD(fixture, "the same with TLS 1.2") {
  redis_options options;
  options.tls = redis_options::tls_files{files.server.certificate, files.server.key, files.ca, true};
  options.arguments = {"--tls-protocols", "TLSv1.2"};
  server.emplace(std::move(options));
  CHECK_THAT(refusal(node()), contains_text("client certificate missing"));
  auto n = node();
  n.tls.certificate_file = files.client.certificate;
  n.tls.key_file = files.client.key;
  CHECK(call(*connect(n), {"PING"})->is("PONG"));
}

TEST_CASE_METHOD(fixture, "nothing older than TLS 1.2 is spoken, whatever the machine's OpenSSL allows") {
  const permissive_openssl settings;
  redis_options options;
  options.tls = redis_options::tls_files{files.server.certificate, files.server.key, files.ca, false};
  options.arguments = {"--tls-protocols", "TLSv1.1"};
  options.environment = {"OPENSSL_CONF=" + settings.path()};
  server.emplace(std::move(options));
  if (version_without_our_settings(server->tls_port()) != "TLSv1.1") skip("this OpenSSL speaks no TLS 1.1");
  CHECK_THAT(refusal(node()), contains_text("no common TLS version: 1.2 is the least"));
}

TEST_CASE_METHOD(fixture, "the name that is verified is the one that the server is asked for") {
  const auto [host, server_name, expected] =
      GENERATE(table<std::string, std::string, std::string>({{"localhost", "", "localhost"},
                                                             {"127.0.0.1", "elsewhere.example", "elsewhere.example"},
                                                             {"127.0.0.1", "", ""}}));
  server_that_hears_names there(io, files.server);
  auto n = tcp_endpoint(host, there.port());
  n.use_tls = true;
  n.tls.server_name = server_name;
  const auto c = connect(n);
  send(*c, {"PING"});
  REQUIRE(until([&] { return there.heard.has_value(); }));
  CHECK(*there.heard == expected);
  c->close();
}

TEST_CASE_METHOD(fixture, "plain text and TLS that meet are told apart") {
  redis_options options;
  options.tcp = true;
  options.tls = redis_options::tls_files{files.server.certificate, files.server.key, files.ca, false};
  server.emplace(std::move(options));
  auto n = node();
  n.at.port = server->port();
  n.connect_timeout = 500ms;
  CHECK_THAT(refusal(n), contains_text("not TLS: the server answers in plain text"));

  const auto c = connect(tcp_endpoint("localhost", server->tls_port()));
  const auto a = call(*c, {"PING"}, 500ms);
  CHECK((a->has(errc::protocol_error) || a->has(errc::unreachable)));  // an alert, or no more than the end
}

TEST_CASE_METHOD(fixture, "a TLS server that hangs is an outage") {
  serve(files.server);
  server->stop();
  auto n = node();
  n.connect_timeout = 100ms;
  const auto c = connect(n);
  const auto a = call(*c, {"PING"}, 250ms);
  CHECK(a->has(errc::unreachable));
  CHECK_THAT(a->got.detail, contains_text("negotiating TLS"));
  const auto b = send(*c, {"PING"});
  server->cont();
  REQUIRE(until([&] { return b->times != 0; }));
  CHECK(b->is("PONG"));
}

TEST_CASE_METHOD(fixture, "certificate files are read anew for each connection") {
  serve(files.server);
  temp_folder folder;
  const auto swap_in = [&](const std::string& ca) {
    std::filesystem::copy_file(ca, folder.path() + "/ca.pem", std::filesystem::copy_options::overwrite_existing);
  };
  swap_in(files.ca);
  auto n = node();
  n.tls.ca_file = folder.path() + "/ca.pem";
  const auto c = connect(n);
  REQUIRE(call(*c, {"PING"})->is("PONG"));
  swap_in(files.other_ca);
  CHECK(call(*c, {"PING"})->is("PONG"));  // the old one goes on
  raw_client(server->socket_path())("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  REQUIRE(until([&] { return call(*c, {"PING"})->has(errc::tls_failed); }));
  swap_in(files.ca);
  REQUIRE(until([&] { return call(*c, {"PING"})->is("PONG"); }));
}

TEST_CASE_METHOD(fixture, "files that cannot be used are found before any connection") {
  const auto cause = [](const tls_config& tls) -> std::string {
    try {
      redis::check(tls);
    } catch (const error& e) {
      CHECK(e.code() == errc::invalid_config);
      return e.what();
    }
    return {};
  };
  tls_config tls;
  CHECK(cause(tls).empty());
  tls.ca_file = files.ca;
  tls.certificate_file = files.client.certificate;
  tls.key_file = files.client.key;
  CHECK(cause(tls).empty());
  tls.key_file = files.server.key;
  CHECK_THAT(cause(tls), contains_text("key_file"));
  tls.key_file.clear();
  CHECK_THAT(cause(tls), contains_text("together"));
  tls.certificate_file = files.client.key;
  tls.key_file = files.client.key;
  CHECK_THAT(cause(tls), contains_text("certificate_file"));
  tls = {};
  tls.ca_file = "/nonexistent.pem";
  CHECK_THAT(cause(tls), contains_text("/nonexistent.pem"));
  temp_folder folder;
  std::ofstream(folder.path() + "/bad.pem") << "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n";
  tls.ca_file = folder.path() + "/bad.pem";
  CHECK_THAT(cause(tls), contains_text("ca_file"));
  redis::endpoint node;
  node.use_tls = true;
  node.tls = tls;
  CHECK_THROWS_AS(detail::standalone(services(), node, 1s, {}), error);
}
