// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "protocol/replies.hpp"
#include "sync/command/environment.hpp"
#include "sync/renewal/renewal_host.hpp"
#include "sync/renewal/renewals.hpp"

namespace holdfast::detail {

/// Gets the result of each renewal of a guarded share. Except in late(), the share is no longer in flight, and may be
/// scheduled anew.
class renewal_results {
 public:
  /// The server has confirmed a renewal that was sent at `sent` with this TTL. `doubted`: a doubt came meanwhile.
  virtual void confirmed(share& part, time_point sent, milliseconds ttl, bool doubted) = 0;
  /// The server has denied the share.
  virtual void denied(share& part, renewal_answer cause) = 0;
  /// It is not known whether the share was renewed.
  virtual void unanswered(share& part, const error_code& cause, const std::string& detail) = 0;
  /// The answer is late and may still come. The share stays in flight.
  virtual void late(share& part, const error_code& cause, const std::string& detail) = 0;
  /// The results of these shares are known, and the server has confirmed those that are still guarded and not denied.
  virtual void renewed(node_id node, const renewals::shares& parts) = 0;
  /// All results of a script are known, and its server has room for more renewals.
  virtual void results_end() = 0;

 protected:
  ~renewal_results() = default;
};

/// Sends the renewals that are due, one script for many, and reports the result of each.
///
/// It promises:
/// - one result for each share that was sent and is still guarded when the answer comes;
/// - without memory for the result, a repetition of the renewal after a pause;
/// - with replicas, a result only when they have answered or their time is over.
///
/// Decision: one bad key must not take the others along. So a refused script is sent again, each share by itself. The
/// user may lack the right to one of the keys. Or the slot is on its way to another server, which takes keys one at a
/// time and refuses two of them with TRYAGAIN. A proxy of a cluster may look like one server and refuse keys of two
/// slots. Its first refusal teaches that, and from then on a script has keys of the smallest group.
///
/// A script of several shares, by its step and answer:
///
///   step                answer                        what follows
///   sent                confirmed, no replicas wanted    lands: confirmed()
///   sent                confirmed, replicas wanted       stays in flight: waits for replicas
///   sent                denied                           lands: denied()
///   sent                refused, several shares          sent again apart, still in flight
///   sent                refused, one share; or an error  lands: unanswered()
///   sent                late                             late(); the answer may follow
///   waits for replicas  enough have it                   lands: confirmed()
///   waits for replicas  too few, or not known            lands: unanswered()
///
/// A share whose claim was forgotten meanwhile lands without a result. A share lands when it is no longer in flight.
///
/// The servers call the sender back and do not keep it alive. Their owner ends them first.
class renewal_sender {
 public:
  renewal_sender(environment& env, renewals& planned, const renewal_host& holders, renewal_results& results) noexcept
      : env_(env), renewals_(planned), holders_(holders), results_(results) {}

  /// Sends all that is due now and may be sent.
  void send_due(time_point now);
  /// Keys of one command are of one group.
  key_group group_of(const share& part) const;

 private:
  class batch;
  using shares = renewals::shares;

  void send_by_group(node_id node, shares&& parts);
  void send(node_id node, shares&& parts);
  void answered(const batch& script, const outcome& answer);
  bool send_apart(const batch& script, const outcome& answer, const failure& cause);
  void wait_for_replicas(const batch& script, std::vector<std::size_t> granted, const outcome& answer);
  void on_replicas(const batch& script, const std::vector<std::size_t>& granted, time_point sent,
                   const std::optional<failure>& failed, unsigned replicas);
  void on_late(const batch& script, const outcome& answer);

  environment& env_;
  renewals& renewals_;
  const renewal_host& holders_;
  renewal_results& results_;
  bool smallest_groups_ = false;  // the server is a proxy of a cluster
};

}  // namespace holdfast::detail
