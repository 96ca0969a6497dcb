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

/// Verification of a rediss:// server, of each sentinel and of each discovered node. Minimum: TLS 1.2.
struct tls_config {
  std::string ca_file{};           ///< PEM; if ca_dir is empty too: the system's trust store
  std::string ca_dir{};            ///< hashed directory (openssl rehash)
  std::string certificate_file{};  ///< the client's certificate chain, PEM; set together with key_file
  std::string key_file{};          ///< its key, PEM
  std::string server_name{};       ///< verified and sent as SNI instead of the host; for tunnels and discovered IPs
  bool insecure_skip_verification = false;  ///< accept any certificate: for experiments only
};

/// How waiters of a cluster are notified of a release. Waiters of Redisson receive only the form that they subscribe
/// to.
enum class pubsub_mode {
  automatic,  ///< sharded on Redis 7, like Redisson since 3.22; classic on older servers
  classic,    ///< PUBLISH, which the nodes pass on to all nodes: to share with Redisson before 3.22
  sharded,    ///< SPUBLISH, which stays in the slot's shard; also for servers that hide their version
  both,       ///< both messages for each release: to share with Redisson before and since 3.22
};

/// Whether servers push what other programs do to locks (CLIENT TRACKING: Redis 7.0.5 and later, and 6.2 from 6.2.8).
enum class push_mode {
  automatic,  ///< where the server can, and as long as a caller waits or holds a lock for long
  off,        ///< never: changes are found by asking
};

/// A connection that is about to log in: the argument of config::credentials. Valid during the call.
struct login_request {
  std::string_view host{};  ///< the server's host as it is connected to; the path of a unix socket
  std::uint16_t port = 0;   ///< 0: a unix socket
  bool sentinel = false;    ///< a sentinel, not a server with locks
};

/// User and password for one connection.
struct login {
  std::string user{};      ///< ACL user; empty: the default user
  std::string password{};  ///< never printed
  /// Counted from the return of the callback. The connection is replaced after six to seven eighths of this time. 0: it
  /// is not replaced. Less than a second counts as a second.
  milliseconds valid_for{0};
};

/// config::sentinel: settings for sentinels. Refused for other servers.
struct sentinel_config {
  std::string user{};         ///< ACL user of the sentinels; empty: the default user
  std::string password{};     ///< the sentinels' password: the servers' is not sent to them; never printed
  std::optional<bool> tls{};  ///< whether the sentinels use TLS; unset: as the URL says for the servers
  /// Whether leases end by their TTL while no majority of the sentinels answers. If false, leases are renewed, even if
  /// this client and a replaced primary are cut off together. If true, an outage of the sentinels alone ends leases
  /// that are in no danger.
  bool strict = false;
};

/// config::cluster: settings for a cluster. Refused for other servers.
struct cluster_config {
  pubsub_mode pubsub = pubsub_mode::automatic;  ///< how waiters are notified; automatic: the servers' version decides
};

/// config::red_lock: settings for the several primaries of a holdfast::red_lock.
struct red_lock_config {
  /// URLs of independent primaries, in place of config::url: an odd number from 3 to 9. The query of a URL may set db,
  /// user, password and TLS for that server alone. Set everything else in the fields of config.
  std::vector<std::string> primaries{};
  /// Longest TTL that any client of these primaries may ask for; set the same value in all clients. config::ttl to
  /// 24 h; 0: twice config::ttl, at least 60 s. A restarted primary has no vote for this time.
  milliseconds longest_ttl{0};
  /// Whether a restarted primary, which may have forgotten locks, waits before it votes again. If false, each restart
  /// may lead to two holders, unless every primary writes each command to its disk before it answers.
  bool delayed_restart = true;
};

/// Settings of a client: a plain struct. The constructor of client checks them (errc::invalid_config, invalid_ttl). A
/// database that the server does not have is found by the first operation.
/// g++ 12: never write a config in braces inside a co_await expression.
struct config {
  // Address. A field that differs from its default wins over the same part of the URL.
  /// The server's address, at most 4 KiB:
  /// - redis://[user[:password]@]host[:port][/db][?key=value…]; rediss:// for TLS
  /// - redis+unix:///path/to/socket[?db=n]
  /// - redis+sentinel://[user[:password]@]host[:26379][,host…]/name[/db][?…]: the primary that these sentinels call
  ///   `name`
  /// - redis+cluster://[user[:password]@]host[:6379][,host…][?…]: the cluster of these nodes, database 0 only
  ///
  /// Use rediss+sentinel:// and rediss+cluster:// for TLS. Up to 32 hosts. User and password are for the servers, never
  /// for sentinels. Percent-encode special characters in user, password, path and values. Before several hosts,
  /// percent-encode ',' in user and password too.
  /// Keys: db, user, password, client_name, key_prefix, ttl, command_timeout, connect_timeout (milliseconds), ca_file,
  /// ca_dir, certificate_file, key_file, server_name, sentinel_user, sentinel_password, sentinel_tls, strict_sentinel,
  /// push (auto, off), turns (on, off), notes (on, off), pubsub (auto, classic, sharded, both), min_replicas.
  std::string url = "redis://localhost";

  // Login.
  std::string user{};      ///< ACL user; empty: the default user
  std::string password{};  ///< never printed
  /// Returns user and password for each connection to servers and sentinels, in place of the fields and the URL. Use it
  /// for rotated passwords and for tokens that expire (AWS IAM, Entra ID). It runs on the client's strand each time a
  /// connection logs in. It must not block: return a token that your program keeps fresh. An exception counts as
  /// auth_failed; its text is not printed. If the server refuses a login, the callback is called once more, since the
  /// password may just have changed. Refused (invalid_config) together with user, password, sentinel.user or
  /// sentinel.password.
  std::function<login(const login_request&)> credentials{};
  /// Connections are named `<client_name>:<client::id()>:<process id>@<host name>` (CLIENT SETNAME). Printable ASCII
  /// without space; empty: no name.
  std::string client_name = "holdfast";
  tls_config tls{};

  // Behaviour.
  /// Prefix of every name before a key is derived (Redisson's NameMapper). Clients with the same prefix share locks.
  /// End it with a character that no prefix contains otherwise (`billing:`). Without one, prefix `app` with name `1x`
  /// is the same key as prefix `app1` with name `x`.
  std::string key_prefix{};
  milliseconds ttl{30'000};  ///< default TTL of a lease; renewed every third of it. 100 ms to 24 h
  /// Timeout of one command: time on the wire and time without a connection together. 5 ms to 60 s. Never more than a
  /// fifth of the TTL concerned. Time in the queue of a connection that answers does not count.
  milliseconds command_timeout{500};
  milliseconds connect_timeout{2'000};  ///< resolve, connect, TLS and handshake together: 10 ms to 60 s
  /// How much faster the server's clock may run than ours, relative: 0 to 0.2. 2 ms are always added.
  double drift = 0.01;
  /// Longest time before a waiter tries again, with or without a notification: 50 ms to 60 s. If another client holds a
  /// simple_mutex, its waiters look again after 250 ms or poll_cap, whichever is less.
  milliseconds poll_cap{5'000};
  /// Longest pause between attempts to connect, with full jitter from 50 ms: 50 ms to 60 s.
  milliseconds reconnect_cap{5'000};
  /// Interval of health checks: 0 (off), or 100 ms to 1 h. They find connections that a load balancer or NAT has
  /// dropped. While the client has leases, a command connection that has received nothing for this long is checked with
  /// PING. While it has waiters, the pub/sub connection is checked at this interval. A command connection is also
  /// checked before the first command after a silence. That silence is half of this interval, at most 1 s. TCP
  /// keepalive uses the same interval.
  milliseconds health_check_interval{10'000};
  /// TTL of a fenced_mutex's counter: 0, or 2 ttl to 10 years. Each grant sets it, or twice the TTL of its lock if that
  /// is longer. After the counter has expired, the next token is the server's clock. That token is larger than all
  /// before, unless the clock was set back. 0: the counter keeps the TTL that it has, and a new counter has none.
  milliseconds token_ttl{0};

  /// Whether servers push changes of locks. Waiters are then notified when another program deletes a lock, or when it
  /// expires. The holder of a deleted, evicted or flushed lock asks Redis before its next renewal. A server that
  /// cannot push, or whose ACL withholds it, is asked as with `off` (event_kind::push_degraded). So are Redis before
  /// 6.2.8, and 7.0.0 to 7.0.4: these push a client's own renewals to it.
  /// A lock that is held for less than a third of its TTL costs nothing more. From the first renewal of a lock until
  /// the last is released, the client keeps its pub/sub connection as well.
  push_mode push = push_mode::automatic;
  /// Whether clients take turns. In its turn a client hands a lock of any kind from waiter to waiter without a command
  /// (a pass). A turn lasts until all that waited when it began have had the lock, at least 2 ms and at most 20 ms.
  /// Then this client leaves the lock to the other clients that received the release, until each has had time for a
  /// turn. It waits until each has released, at most twice the time that their pace suggests. In any case it stops
  /// waiting 20 ms after the last release that it receives. A lock() right after the caller's own unlock() waits too; a
  /// try_lock() does not.
  /// Each pass makes a new lease, with a larger fencing token if it has one. A pass needs a lock that stays valid for
  /// at least two thirds of the waiter's TTL. A waiter asks Redis instead of taking a pass in these cases:
  /// - it wants a fencing token, and the hold before has none
  /// - it wants no renewal, a shorter TTL or more replicas
  /// - it waits for all of several locks (multi_lock)
  ///
  /// A fair_mutex has no turns: its queue in Redis has the order.
  /// Clients of Redisson do not wait for others. Beside them a turn has three to eight holds, if so many wait. Then
  /// this client leaves each other client as many holds, or as much time if that is longer. Afterwards it asks again
  /// and again when a hold is nearly over. If it gets the lock late, its next pause is shorter by that time. Holds of
  /// uneven length cannot be foreseen, and bring it less than its share. Beside holdfast clients with turns off it has
  /// no guaranteed share.
  /// Other programs may take a simple_mutex, or a red_lock that is not re-entrant, without subscribing. If a turn with
  /// passes ends and no client receives the release, this client's waiters pause for 20 ms, about four times a second.
  /// If the lock is taken in such a pause, the pause follows each such turn for a second.
  /// A program that subscribes to all channels, to watch them, counts as a client that received each release. It makes
  /// a client that locks one name again and again wait 2 ms after each unlock.
  bool turns = true;
  /// Whether a grant is noted beside the lock: since when it is held, and the text of lock_options::note. holder() and
  /// the command line show both. Each grant, pass and renewal costs one write more. No call waits for it, and its loss
  /// changes nothing else. Keys: `holdfast_note:{name}`, with the TTL of the lock. The ACL user also needs these keys,
  /// SET, TIME and GETRANGE.
  bool notes = false;
  /// Receives background events: renewals, reconnects, late releases. The client keeps it alive.
  std::shared_ptr<holdfast::observer> observer{};
  /// Without an observer, a client prints a line to stderr after a call has waited for 5 s. It does so once if Redis
  /// cannot be reached, and once if the call may be waiting for its own task. True: it prints nothing.
  bool quiet = false;

  // Limits.
  /// Limit of pending commands per connection: 1 to 2^24. When three quarters are pending, try_lock and queries throw
  /// overloaded. lock and try_lock_for keep their place. Releases and renewals always find room. Commands to several
  /// primaries always find room too.
  std::size_t pending_commands = 65'536;

  // Topology.
  /// How many replicas must acknowledge a grant before it counts (WAIT): 0 to 15; 0: none. If too few do in time, the
  /// grant is given back. A renewal extends a lease only when as many replicas have it. The lease survives a failover
  /// to one of these replicas, not to another. Cost: one round trip to a replica. Not for several primaries.
  unsigned min_replicas = 0;
  /// Maps addresses behind NAT and in containers, for sentinels and clusters: "host:port" as the servers announce it,
  /// then "host:port" as we reach it. Example: {"10.0.0.5:6379", "localhost:16379"}. Write IPv6 in brackets, as the
  /// servers spell it. It applies to every discovered address of servers and sentinels, not to those of the URL. Up to
  /// 1024 entries; refused for other servers. If you can, set sentinel announce-ip, replica-announce-ip or
  /// cluster-announce-hostname on the servers instead.
  std::vector<std::pair<std::string, std::string>> node_map{};
  sentinel_config sentinel{};
  cluster_config cluster{};
  red_lock_config red_lock{};
};

/// Prints every field. Passwords and the user information of the URL appear as "***".
HOLDFAST_EXPORT std::ostream& operator<<(std::ostream&, const config&);
/// The URL with every secret replaced by "***", even if the URL is malformed.
HOLDFAST_EXPORT std::string redacted(std::string_view url);

}  // namespace holdfast
