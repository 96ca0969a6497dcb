// SPDX-License-Identifier: BSL-1.0
#include "support/tls_files.hpp"

#include <fstream>
#include <stdexcept>

#include "support/child_process.hpp"

namespace holdfast::test {
namespace {

constexpr auto new_key = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

}  // namespace

bool tls_files::available() { return !find_executable("openssl").empty(); }

tls_files::tls_files() : folder_("holdfast-tls-") {
  std::ofstream(folder_.path() + "/openssl.cnf") << "[req]\ndistinguished_name=dn\nprompt=no\n[dn]\nCN=holdfast test\n";
  ca = make_ca("ca");
  other_ca = make_ca("other_ca");
  const std::string here = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1";
  server = make_pair("server", "ca", here);
  wrong_host = make_pair("wrong_host", "ca", "subjectAltName=DNS:elsewhere.example,IP:192.0.2.1");
  expired = make_pair("expired", "ca", here, -1);
  client = make_pair("client", "ca", "extendedKeyUsage=clientAuth");
  other_client = make_pair("other_client", "other_ca", "extendedKeyUsage=clientAuth");
}

void tls_files::run(const std::string& command) const {
  child_process::options what;
  what.executable = "sh";
  what.argv = {"sh", "-c", "exec 2>&1; cd '" + folder_.path() + "' && " + command};
  child_process shell(std::move(what));
  const auto text = shell.read_all(std::chrono::seconds{20});
  if (shell.wait(std::chrono::seconds{20}) != 0) throw std::runtime_error("openssl failed: " + command + "\n" + text);
}

std::string tls_files::make_ca(const std::string& name) const {
  run("openssl req -x509 -config openssl.cnf" + std::string(new_key) + " -keyout " + name + ".key -out " + name +
      ".pem -days 30 -subj /CN=" + name +
      " -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign");
  return folder_.path() + "/" + name + ".pem";
}

tls_files::pair tls_files::make_pair(const std::string& name, const std::string& ca_name, const std::string& extensions,
                                     int days) const {
  std::ofstream(folder_.path() + "/" + name + ".ext") << "basicConstraints=critical,CA:FALSE\n" << extensions << '\n';
  run("openssl req -new -config openssl.cnf" + std::string(new_key) + " -keyout " + name + ".key -out " + name +
      ".csr -subj /CN=" + name + " && openssl x509 -req -in " + name + ".csr -CA " + ca_name + ".pem -CAkey " +
      ca_name + ".key -set_serial 0x$(openssl rand -hex 8)" + " -extfile " + name + ".ext -days " +
      std::to_string(days) + " -out " + name + ".pem");
  const auto path = folder_.path() + "/" + name;
  return {path + ".pem", path + ".key"};
}

}  // namespace holdfast::test
