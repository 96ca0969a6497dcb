// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

#include "support/temp_folder.hpp"

namespace holdfast::test {

/// Certificates for tests, made by the openssl program (EC keys: tens of milliseconds) in a folder that goes with this
/// object.
class tls_files {
 public:
  struct pair {
    std::string certificate, key;  // PEM files
  };

  static bool available();  ///< whether openssl can be found
  /// Throws std::runtime_error with openssl's words.
  tls_files();

  std::string ca;        ///< signed all of the below
  std::string other_ca;  ///< signed none of them
  pair server;           ///< for localhost, 127.0.0.1 and ::1
  pair wrong_host;       ///< for elsewhere.example
  pair expired;          ///< as server, ended yesterday
  pair client;
  pair other_client;  ///< of other_ca

 private:
  void run(const std::string& command) const;
  std::string make_ca(const std::string& name) const;
  pair make_pair(const std::string& name, const std::string& ca_name, const std::string& extensions,
                 int days = 30) const;

  temp_folder folder_;
};

}  // namespace holdfast::test
