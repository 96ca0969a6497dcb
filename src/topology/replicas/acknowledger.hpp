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

/// Asks a server how many of its replicas have what it has executed until now: a mark, which takes the next place in
/// the stream of changes, and WAIT, which waits until replicas have reached that place. WAIT blocks its connection; so
/// there is one for each number of replicas that is wanted, made when somebody wants so many: a caller that wants more
/// than there are holds up nobody else. Used on the strand. Its owner calls close() before it goes.
class acknowledger {
 public:
  using handler = acknowledgements::handler;

  acknowledger(const redis::io_services& services, redis::endpoint server);
  acknowledger(const acknowledger&) = delete;
  acknowledger& operator=(const acknowledger&) = delete;

  /// `done` hears how many have it before the deadline, or then that there was no answer; never inside the call. `key`
  /// is of the server: a lock that it has granted.
  void ask(std::string_view key, const topology::copies& wanted, handler done);
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
    std::optional<redis::failure> unmarked;    // why the mark of the question under way is none
    bool key_refused = false;                  // because of its key
    std::int64_t marked_on = 0, asked_on = 0;  // which of its connections the mark and WAIT were written to
    timer alarm;                               // the first of them has no more time
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
