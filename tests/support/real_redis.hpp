// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace holdfast::test {

struct redis_options {
  bool tcp = false;  ///< also on a loopback port
  struct tls_files {
    std::string certificate{}, key{}, ca{};
    bool require_client_certificate = false;
  };
  std::optional<tls_files> tls{};                ///< also on a loopback port with TLS
  std::string password{};                        ///< requirepass
  std::string configuration{};                   ///< the file that it is started with, and may rewrite; empty: none
  std::vector<std::string> arguments{};          ///< as on the command line, later ones win: "--appendonly", "yes"
  std::vector<std::string> environment{};        ///< "NAME=value", added to ours
  bool wait_until_loaded = true;                 ///< false: a server that still answers LOADING counts as started
  std::string service_url{"redis://localhost"};  ///< of a service with this server: see least_rights.hpp
  bool sentinel = false;                         ///< it is one
};

/// A private Redis (or Valkey) server, or sentinel. Ends with this object, or with the process. One thread at a time.
class real_redis {
 public:
  /// Whether a server program can be found: HOLDFAST_TEST_REDIS, redis-server, valkey-server, or Debian's redis-tools,
  /// which carry the server.
  static bool available();

  /// Returns when it answers PING. Throws std::runtime_error with the server's log when it does not.
  explicit real_redis(redis_options options = {});
  real_redis(const real_redis&) = delete;
  real_redis& operator=(const real_redis&) = delete;
  ~real_redis();

  /// For holdfast::config::url: TLS if asked for, else TCP if asked for, else the unix socket. With the password,
  /// without certificate files.
  std::string url() const;
  std::string unix_url() const;  ///< it always listens there too
  std::string tcp_url() const;
  std::string tls_url() const;
  const std::string& socket_path() const noexcept { return socket_path_; }
  std::uint16_t port() const noexcept { return port_; }
  std::uint16_t tls_port() const noexcept { return tls_port_; }
  const std::string& password() const noexcept { return options_.password; }
  /// The command by which the rig itself logs in; empty: none.
  std::vector<std::string> login() const;
  const std::string& folder() const noexcept { return folder_; }  ///< its data are in folder()/data
  pid_t pid() const noexcept { return process_ ? process_->pid() : -1; }
  bool running() const noexcept { return process_ && process_->running(); }
  bool stopped() const noexcept { return stopped_; }
  /// All that it logged; survives restarts.
  std::string log() const;

  void stop();      ///< SIGSTOP: accepts connections, never answers
  void cont();      ///< SIGCONT
  void kill();      ///< SIGKILL: connections end, data since the last fsync may be gone
  void shutdown();  ///< SIGTERM: it writes what it is configured to write
  /// Ends it as kill() does, if it still runs, and starts it with the same addresses and data, and options() as they
  /// are now.
  void restart();
  /// The same with its data removed.
  void restart_empty();
  redis_options& options() noexcept { return options_; }

 private:
  void start();
  bool try_start();
  void pick_ports();
  bool answers() const;
  void tell_refusals() const noexcept;
  std::vector<std::string> command_line() const;

  redis_options options_;
  std::string folder_, socket_path_;
  std::uint16_t port_ = 0, tls_port_ = 0;
  std::vector<std::vector<std::string>> users_;
  std::size_t log_seen_ = 0;  // where the log of this start begins
  bool stopped_ = false;
  pid_t owner_ = -1;
  std::optional<child_process> process_;
};

}  // namespace holdfast::test
