// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/timers.hpp"
#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/io_services.hpp"
#include "topology/replicas/acknowledgements.hpp"

namespace holdfast::detail {

/// Asks a server how many of its replicas have everything that it has executed until now. A mark takes the next place
/// in the stream of changes; WAIT waits until replicas have reached that place.
///
/// Decision: WAIT has a connection of its own. It blocks its connection until the replicas have answered. Behind each
/// acquire on the common connection it cost 46 times the throughput, at 1 ms to a replica. Each wanted number of
/// replicas has a connection of its own, so a caller that wants more replicas than exist delays no other.
///
/// Decision: a mark is set before each WAIT. Since Redis 7.2, and in Valkey, WAIT waits for the last change of its own
/// connection. After a PING it is answered at once, with all replicas. The mark is a script that sets the key of a lock
/// to its present state. Then WAIT covers all that the server has executed until then, and one question serves all
/// grants before it. PUBLISH would be such a change too, but not in a cluster, where it goes over the bus. A key beside
/// the lock's may be forbidden by an ACL. An answer counts only on the connection where its mark was set.
///
/// Used on the strand. Its owner calls close() before it goes.
class acknowledger {
 public:
  using handler = acknowledgements::handler;

  acknowledger(const redis::io_services& services, redis::endpoint server);
  acknowledger(const acknowledger&) = delete;
  acknowledger& operator=(const acknowledger&) = delete;

  /// `done` gets the number of replicas before the deadline, or a failure at the deadline; never inside the call.
  /// `key`: a lock that the server has granted.
  void ask(std::string_view key, const topology::replica_demand& wanted, handler done);
  /// Nobody waits for an answer.
  bool idle() const noexcept;
  /// As connection::retarget().
  void retarget(const redis::address& to, const redis::failure& why);
  /// As connection::follow().
  void follow(std::string_view run);
  void close();

 private:
  class mark;
  class question;
  /// The callers that want the same number of replicas.
  struct line {
    explicit line(timers& alarms) : alarm(alarms) {}
    std::shared_ptr<redis::connection> connection;  // null: nobody has asked yet
    acknowledgements waiting;
    std::optional<redis::failure> unmarked;    // the failure of the mark of the question under way
    bool key_refused = false;                  // because of its key
    std::int64_t marked_on = 0, asked_on = 0;  // the numbers of the connections that the mark and WAIT were written to
    timer alarm;                               // the first deadline of its callers
  };

  void connect(line& line);
  void ask_next(line& line);
  std::vector<acknowledgements::answer> end_question(line& line, const redis::outcome& outcome) const;
  void answered(line& line, const redis::outcome& outcome);
  void watch_deadline(line& line);

  const redis::io_services services_;
  redis::endpoint server_;
  std::map<unsigned, line> lines_;
};

}  // namespace holdfast::detail
