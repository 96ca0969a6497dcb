// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "redis/endpoint.hpp"
#include "redis/failure.hpp"
#include "redis/resp.hpp"

namespace holdfast::redis {

/// What a server says of itself; each is empty where it does not.
struct server_facts {
  std::string run;      // its run_id: another one after each start
  std::string version;  // "7.0.15"; that of the Redis whose commands it has
  std::string valkey;   // "8.1.1": Valkey's own version, of Valkey alone
  std::string mode;     // "standalone", "sentinel" or "cluster"

  /// "7.0.15, standalone" or "Valkey 8.1.1, standalone": safe to print.
  std::string to_string() const;
};

/// Pure: what a new connection says first, and what the answers mean.
///
///   commands:       AUTH, SELECT, CLIENT SETNAME, CLIENT ID, INFO server, ROLE in one write
///   subscriptions:  AUTH, CLIENT SETNAME, CLIENT ID, INFO server, PING in one write
///
/// After the answers CLIENT KILL ID of the predecessor, if there is one: what is still on its way through the old
/// connection must not run after what comes next, and nothing stays subscribed for a connection that is gone. Not if
/// the server is another one, or has restarted since: there the number is somebody else's.
///
/// A server of another mode than endpoint::expected is refused by what INFO says, or ROLE; a node of a cluster whether
/// it has keys, or is a primary, or not.
///
/// PING takes the place of ROLE where any_role is set.
///
/// SETNAME, CLIENT ID, INFO, CLIENT KILL, ROLE and PING may be refused in any words: then the server does not say. A
/// refusal counts only where its words are known to mean something else: no room, loading, a wrong password, a replica.
class handshake {
 public:
  enum class purpose { commands, subscriptions };
  enum class progress { more, done, failed };

  /// One connection to one run of a server.
  struct identity {
    long long client;
    std::string run;  // the server's run_id
  };

  /// `predecessor`: the connection to be fenced off.
  handshake(const endpoint& node, purpose why, std::optional<identity> predecessor = {});

  /// Bytes to write now; empty: none. Look again after each reply.
  std::string take_output() { return std::exchange(output_, {}); }
  progress on_reply(const reply& reply);

  const failure& why() const noexcept { return failure_; }  ///< once failed
  /// ROLE said so. Both are false if the server withholds it.
  bool primary() const noexcept { return primary_; }
  bool replica() const noexcept { return replica_; }
  /// Empty if the server does not say.
  std::optional<identity> id() const;
  const server_facts& server() const noexcept { return server_; }
  /// Set once CLIENT ID, INFO or CLIENT KILL was refused: the server's words.
  const std::string& fencing_refused() const noexcept { return fencing_refused_; }

 private:
  enum class step { auth, select, set_name, id, info, role, ping, kill };

  void send(step step, std::initializer_list<std::string_view> argv);
  bool accept(step step, const reply& reply);
  bool accept_id(const reply& reply);
  bool accept_info(const reply& reply);
  bool accept_role(const reply& reply);
  bool accept_mode();
  bool refuse(errc code, std::string_view cause);
  void fence_predecessor();

  const endpoint& node_;
  std::optional<identity> predecessor_;
  std::string output_;
  std::deque<step> awaited_;  // one for each command not answered yet
  std::optional<long long> client_;
  server_facts server_;
  bool primary_ = false, replica_ = false;
  std::string fencing_refused_;
  std::string auth_refused_;  // what was said to AUTH
  failure failure_;
};

}  // namespace holdfast::redis
