// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "sync/command/environment.hpp"
#include "sync/command/handlers.hpp"

namespace holdfast::detail {

/// Uses each permission that a re-entrant lock needs once, on a name that nobody locks. Ends at the first refusal. The
/// scripts run one after the other. A server that does not know a script gets it twice, and the second copy would come
/// behind later scripts.
class permission_probe final : private subscriber, public std::enable_shared_from_this<permission_probe> {
 public:
  /// `name` includes the key prefix.
  permission_probe(environment& env, const kind& kind, const std::string& name, owner_field field, done_handler done);

  void begin(time_point deadline);
  void end(const std::optional<failure>& failed);
  bool over() const noexcept { return !done_; }
  /// The engine ends. The caller is not answered.
  void forget_caller();

 private:
  static constexpr int all_scripts = 4;

  void on_subscribed() override;
  void on_message(std::string_view) override {}
  void on_subscribe_failed(error_code error, const std::string& detail) override { end(failure{error, detail}); }
  void on_no_messages(error_code error, const std::string& detail) override { end(failure{error, detail}); }

  call next() const;
  void send_next();
  void answered(const outcome& outcome);
  void ask_for_replicas(std::uint64_t server);
  void end_if_done();
  void time_out();

  environment& env_;
  done_handler done_;  // emptied when it is answered
  const lock_keys keys_;
  const owner_field field_;
  time_point deadline_;
  timer alarm_;
  subscription subscription_;
  int answers_ = 0;
  bool subscribed_ = false;
  bool replicated_ = false;
};

}  // namespace holdfast::detail
