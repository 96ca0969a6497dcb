// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

#include "support/temp_folder.hpp"

namespace holdfast::test {

/// Certificates for tests in a folder that goes with this object. They are made by OpenSSL's library: what its program
/// does with the same arguments differs between versions.
class tls_files {
 public:
  struct pair {
    std::string certificate, key;  // PEM files
  };

  tls_files();

  std::string ca;        ///< signed all of the below
  std::string other_ca;  ///< signed none of them
  pair server;           ///< for localhost, 127.0.0.1 and ::1
  pair wrong_host;       ///< for elsewhere.example
  pair expired;          ///< as server, ended yesterday
  pair client;
  pair other_client;  ///< of other_ca

 private:
  temp_folder folder_;
};

}  // namespace holdfast::test
