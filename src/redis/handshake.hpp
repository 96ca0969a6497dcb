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

/// The facts that a server reports about itself; a fact that it does not report is empty.
struct server_facts {
  std::string run;      // its run_id: another one after each start
  std::string version;  // "7.0.15"; that of the Redis whose commands it has
  std::string valkey;   // "8.1.1": Valkey's own version, of Valkey alone
  std::string mode;     // "standalone", "sentinel" or "cluster"

  /// "7.0.15, standalone" or "Valkey 8.1.1, standalone": safe to print.
  std::string to_string() const;
  /// By its version it pushes the writes of a client's own scripts to that client, although it should not (NOLOOP). Or
  /// it is older, and pushes nothing. False if the version is not known.
  bool pushes_own_writes() const noexcept;
};

/// Pure: the first commands of a new connection, and the meaning of the answers.
///
///   commands:       AUTH, SELECT, CLIENT SETNAME, CLIENT ID, INFO server, ROLE in one write
///   subscriptions:  AUTH, CLIENT SETNAME, CLIENT ID, INFO server, PING in one write
///
/// After the answers comes CLIENT KILL ID of the predecessor, if there is one. A command that is still on its way
/// through the old connection must not run after the next ones. Nor may a subscription of a lost connection stay.
///
/// Decision: CLIENT KILL only on the same run of the same server. Redis counts its clients upwards, and from 1 again
/// after a restart; a server behind the same address may be another one. The old id is another client's there. A
/// comparison of ids does not show it, because others may have connected first (a neighbour was killed in a test). The
/// run_id does.
///
/// A server of another mode than endpoint::expected is refused by its INFO or ROLE. A node of a cluster is refused
/// whether it has keys or not, and whether it is a primary or not.
///
/// PING takes the place of ROLE where any_role is set.
///
/// SETNAME, CLIENT ID, INFO, CLIENT KILL, ROLE and PING may be refused: the fact is then unknown. A refusal counts only
/// if its words have a known meaning: no room, loading, a wrong password, a replica.
class handshake {
 public:
  enum class purpose { commands, subscriptions };
  enum class progress { more, done, failed };

  /// One connection to one run of a server.
  struct identity {
    long long client;
    std::string run;  // the server's run_id
    bool operator==(const identity&) const = default;
  };

  /// `predecessor`: the connection to be fenced off.
  handshake(const endpoint& node, purpose why, std::optional<identity> predecessor = {});

  /// Bytes to write now; empty: none. Look again after each reply.
  std::string take_output() { return std::exchange(output_, {}); }
  progress on_reply(const reply& reply);

  const failure& why() const noexcept { return failure_; }  ///< once failed
  /// The role by ROLE. Both are false if the server withholds it.
  bool primary() const noexcept { return primary_; }
  bool replica() const noexcept { return replica_; }
  /// Empty if the server does not tell it.
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
  bool refuse(error_code code, std::string_view cause);
  void fence_predecessor();

  const endpoint& node_;
  std::optional<identity> predecessor_;
  std::string output_;
  std::deque<step> awaited_;  // one for each command not answered yet
  std::optional<long long> client_;
  server_facts server_;
  bool primary_ = false, replica_ = false;
  std::string fencing_refused_;
  std::string auth_refused_;  // the meaning of the refusal of AUTH
  failure failure_;
};

}  // namespace holdfast::redis
