// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast {

using std::chrono::milliseconds;
class observer;

/// How a rediss:// server is verified. TLS 1.2 is the least.
struct tls_config {
  std::string ca_file{};                    ///< PEM; empty together with ca_dir: the system's trust store
  std::string ca_dir{};                     ///< hashed directory (openssl rehash)
  std::string certificate_file{};           ///< our own certificate chain, PEM; set together with key_file
  std::string key_file{};                   ///< its key, PEM
  std::string server_name{};                ///< verified and sent as SNI instead of the URL's host; for tunnels
  bool insecure_skip_verification = false;  ///< accept any certificate: for experiments only
};

/// Settings of a client: a plain struct. Checked when the client is made (errc::invalid_config, invalid_ttl); a
/// database that the server does not have is found by the first operation.
/// g++ 12: never write it in braces inside a co_await expression.
struct config {
  // Where. Fields that differ from their default win over the same part of the URL.
  /// redis://[user[:password]@]host[:port][/db][?key=value…], rediss:// for TLS, redis+unix:///path/to/socket[?db=n].
  /// Percent-encoding in user, password, path and values. At most 4 KiB. Keys: db, user, password, client_name,
  /// key_prefix, ttl, command_timeout, connect_timeout (milliseconds), ca_file, ca_dir, certificate_file, key_file,
  /// server_name.
  std::string url = "redis://localhost";
  std::string user{};      ///< ACL user; empty: the default user
  std::string password{};  ///< never printed
  /// The connections are named `<client_name>:<client::id()>:<process id>@<host name>` (CLIENT SETNAME). Printable
  /// ASCII without space; empty: no name.
  std::string client_name = "holdfast";
  tls_config tls{};

  // Behaviour.
  /// Put before every name before a key is derived (Redisson's NameMapper): clients with the same prefix meet. End it
  /// with a character that no prefix contains otherwise (`billing:`): `app` and `app1` would meet at the names `1x` and
  /// `x`.
  std::string key_prefix{};
  milliseconds ttl{30'000};  ///< TTL of leases without one of their own; renewed every third of it. 100 ms to 24 h
  /// How long one command may take, on the wire and without a connection together: 5 ms to 60 s; never more than a
  /// fifth of the TTL concerned. Waiting in the queue of a living connection does not count.
  milliseconds command_timeout{500};
  milliseconds connect_timeout{2'000};  ///< resolve, connect, TLS and handshake together: 10 ms to 60 s
  /// Relative rate by which the server's clock may run faster than ours: 0 to 0.2. 2 ms are always added.
  double drift = 0.01;
  /// A waiter tries again at the latest after this, with or without a message: 50 ms to 60 s. One of a simple_mutex
  /// that another client holds looks again after 250 ms, if that is less.
  milliseconds poll_cap{5'000};
  /// Longest pause between attempts to connect, full jitter from 50 ms: 50 ms to 60 s.
  milliseconds reconnect_cap{5'000};

  // Limits.
  /// Per connection: when three quarters are pending, try_lock and queries throw overloaded. lock and try_lock_for keep
  /// their place, releases and renewals always find room. 1 to 2^24
  std::size_t pending_commands = 65'536;

  /// Is told of background events: renewals, reconnects, late releases. Kept alive by the client.
  std::shared_ptr<holdfast::observer> observer{};
};

/// Prints every field; password and user information of the URL as "***".
HOLDFAST_EXPORT std::ostream& operator<<(std::ostream&, const config&);
/// The URL with everything secret replaced by "***"; also for a URL that is malformed.
HOLDFAST_EXPORT std::string redacted(std::string_view url);

}  // namespace holdfast
