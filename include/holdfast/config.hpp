// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {

using std::chrono::milliseconds;
class observer;

/// How a rediss:// server is verified, and each sentinel and each node that is discovered. TLS 1.2 is the least.
struct tls_config {
  std::string ca_file{};           ///< PEM; empty together with ca_dir: the system's trust store
  std::string ca_dir{};            ///< hashed directory (openssl rehash)
  std::string certificate_file{};  ///< our own certificate chain, PEM; set together with key_file
  std::string key_file{};          ///< its key, PEM
  std::string server_name{};       ///< verified and sent as SNI instead of the host; for tunnels and discovered IPs
  bool insecure_skip_verification = false;  ///< accept any certificate: for experiments only
};

/// How the waiters of a cluster are told of a release. Redisson's waiters hear it only where they listen.
enum class pubsub_mode {
  automatic,  ///< sharded where the servers have it (Redis 7), as Redisson has it since 3.22; classic elsewhere
  classic,    ///< PUBLISH, which every node passes on to every other: beside Redisson before 3.22
  sharded,    ///< SPUBLISH, which stays in the slot's shard; also for servers that do not say their version
  both,       ///< each release is told twice: beside a fleet of Redisson before and since 3.22
};

/// A connection that is about to log in: the argument of config::credentials. Valid during the call.
struct login_request {
  std::string_view host{};  ///< of the server as it is connected to; the path of a unix socket
  std::uint16_t port = 0;   ///< 0: a unix socket
  bool sentinel = false;    ///< a sentinel, not a server with locks
};

/// User and password for one connection.
struct login {
  std::string user{};      ///< ACL user; empty: the default user
  std::string password{};  ///< never printed
  /// Counted from the return of the callback. The connection is replaced after six to seven eighths of it. 0: it is not
  /// replaced. Less than a second counts as a second.
  milliseconds valid_for{0};
};

/// Settings of a client: a plain struct. Checked when the client is made (errc::invalid_config, invalid_ttl); a
/// database that the server does not have is found by the first operation.
/// g++ 12: never write it in braces inside a co_await expression.
struct config {
  // Where. Fields that differ from their default win over the same part of the URL.
  /// redis://[user[:password]@]host[:port][/db][?key=value…], rediss:// for TLS, redis+unix:///path/to/socket[?db=n].
  /// redis+sentinel://[user[:password]@]host[:26379][,host…]/name[/db][?…]: the primary that these sentinels call so.
  /// redis+cluster://[user[:password]@]host[:6379][,host…][?…]: the cluster of these nodes; database 0 alone.
  /// rediss+sentinel:// and rediss+cluster:// for TLS. Up to 32 hosts; user and password are the servers', never a
  /// sentinel's.
  /// Percent-encoding in user, password, path and values; of ',' too in user and password before several hosts. At
  /// most 4 KiB. Keys: db, user, password, client_name, key_prefix, ttl, command_timeout, connect_timeout
  /// (milliseconds), ca_file, ca_dir, certificate_file, key_file, server_name, sentinel_user, sentinel_password,
  /// sentinel_tls, strict_sentinel, turns (on, off), pubsub (auto, classic, sharded, both), min_replicas.
  std::string url = "redis://localhost";
  /// For red_lock, in place of `url`: an odd number of independent primaries, 3 to 9, as URLs. What their query says of
  /// the server (db, user, password, TLS) counts for that server alone; everything else belongs into the fields here.
  std::vector<std::string> primaries{};
  std::string user{};      ///< ACL user; empty: the default user
  std::string password{};  ///< never printed
  /// The connections are named `<client_name>:<client::id()>:<process id>@<host name>` (CLIENT SETNAME). Printable
  /// ASCII without space; empty: no name.
  std::string client_name = "holdfast";
  tls_config tls{};
  /// Returns user and password for each connection, of servers and sentinels, in place of the fields and of the URL's:
  /// for passwords that are rotated and for tokens that expire (AWS IAM, Entra ID). Called on the client's strand each
  /// time a connection logs in; it must not block: return a token that your program keeps fresh. An exception counts as
  /// auth_failed; its text is not printed. When the server refuses a login, the callback is asked again once, because
  /// the password may just have changed. Refused (invalid_config) together with user, password,
  /// sentinel_user or sentinel_password.
  std::function<login(const login_request&)> credentials{};

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
  /// While the client has leases, a command connection that has received nothing for this long is checked with PING.
  /// While it has waiters, the pub/sub connection is checked that often. A command connection is also checked before
  /// the first command after a silence of half of this, or of 1 s if that is less. TCP keepalive has the same interval.
  /// Finds connections that a load balancer or NAT has forgotten. 0: off; else 100 ms to 1 h.
  milliseconds health_check_interval{10'000};
  /// How long the counter of a fenced_mutex lives after its last grant: each grant sets this TTL, or twice the TTL of
  /// its lock if that is longer. When the counter has expired, the next token is the server's clock, so it is larger
  /// than all before, unless that clock was set back. 0: the counter keeps the TTL that it has, and a new one has none.
  /// Else 2 ttl to 10 years.
  milliseconds token_ttl{0};

  /// Whether a lock, of any kind, goes from one waiter of this client to the next without a command (a pass), for as
  /// long as a turn lasts: until all have had it that waited when it began, 2 ms at least and 20 ms at most. Afterwards
  /// this client leaves the lock to the other clients that have heard of the release, until each may have had a turn of
  /// its own: until each has released, for twice as long as they need by their pace and 20 ms after the last release
  /// that it hears of at most. A lock() right after one's own unlock() waits so as well; a try_lock() does not.
  /// Each pass makes a new lease, with a larger fencing token if it has one. It is made while the lock is sure for two
  /// thirds of the waiter's TTL at least, not to those who want a token where the hold before has none, no renewal, a
  /// shorter TTL, more replicas or all of several locks: these ask Redis.
  /// Clients of Redisson, and ours with turns off, do not rest. Beside them it leaves each other client as much time as
  /// its own turn has taken, 200 ms in all and 20 ms after the last release at most, and then asks every 300 us, 200
  /// times at most. Others may take a simple_mutex, or a red_lock that is not re-entrant, without listening: where no
  /// client has heard of a release that ends a turn with passes, the waiters of this one leave the lock alone for
  /// 20 ms, about four times a second; and after each such turn for a second, if it is taken then.
  /// Whoever subscribes to all channels, to watch them, has heard of each release as well: a client that locks a name
  /// again and again would rest for 2 ms after each unlock.
  bool turns = true;

  // Of a primary with replicas.
  /// How many replicas must have a grant before it counts (WAIT); 0: none, 0 to 15. Too few in time, and the grant is
  /// given back. A renewal extends a lease only when as many have it. It survives the failover to one of these
  /// replicas, and to another it does not. Costs one round trip to a replica. Not of several primaries.
  unsigned min_replicas = 0;

  // Of sentinels: refused elsewhere.
  std::string sentinel_user{};         ///< ACL user of the sentinels; empty: the default user
  std::string sentinel_password{};     ///< of the sentinels, who are told no other; never printed
  std::optional<bool> sentinel_tls{};  ///< whether the sentinels speak TLS; unset: as the servers, by the URL
  /// Whether leases end by their TTL while no majority of the sentinels answers. Without it they are renewed on, also
  /// where this client and a primary that was replaced are cut off together; with it an outage of the sentinels alone
  /// ends leases that are in no danger.
  bool strict_sentinel = false;

  // Of a cluster: refused elsewhere.
  pubsub_mode pubsub = pubsub_mode::automatic;  ///< how waiters are told of a release; the servers' version decides

  // Of sentinels and clusters: refused elsewhere.
  /// For NAT and containers, each "host:port" as the servers tell it, and "host:port" where we reach it:
  /// {"10.0.0.5:6379", "localhost:16379"}. IPv6 in brackets, as the servers spell it. Asked for every address that is
  /// discovered, of servers and sentinels; those of the URL are taken as they are. Up to 1024. Better, where one may:
  /// sentinel announce-ip, replica-announce-ip, cluster-announce-hostname.
  std::vector<std::pair<std::string, std::string>> node_map{};

  // Of a client with several primaries: see red_lock.
  /// The longest TTL that a client of these primaries may ask for, the same in all of them; 0: twice `ttl`, 60 s at
  /// least. `ttl` to 24 h. A primary that was restarted has no vote for so long.
  milliseconds longest_ttl{0};
  /// Whether a primary that was restarted, and may have forgotten locks, waits before it votes again. Without it two
  /// holders are possible after each restart, unless every primary writes each command to its disk before it answers.
  bool delayed_restart = true;

  // Limits.
  /// Per connection: when three quarters are pending, try_lock and queries throw overloaded. lock and try_lock_for keep
  /// their place, releases and renewals always find room; so does all that is sent to several primaries. 1 to 2^24
  std::size_t pending_commands = 65'536;

  /// Is told of background events: renewals, reconnects, late releases. Kept alive by the client.
  std::shared_ptr<holdfast::observer> observer{};
  /// A client without an observer prints a line to stderr after a call has waited for 5 s: once if Redis cannot be
  /// reached, and once if the call perhaps waits for its own task. True: it prints nothing.
  bool quiet = false;
};

/// Prints every field; passwords and user information of the URL as "***".
HOLDFAST_EXPORT std::ostream& operator<<(std::ostream&, const config&);
/// The URL with everything secret replaced by "***"; also for a URL that is malformed.
HOLDFAST_EXPORT std::string redacted(std::string_view url);

}  // namespace holdfast
