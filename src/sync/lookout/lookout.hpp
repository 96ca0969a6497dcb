// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "base/function.hpp"
#include "sync/command/environment.hpp"
#include "sync/command/handlers.hpp"
#include "sync/line/acquisition.hpp"
#include "sync/lookout/lookout_rules.hpp"

namespace holdfast::detail {

class lookouts;

/// The text of a failure, for persons.
inline constexpr const char* nobody_waits = "the client drains, and nobody begins to wait";

/// The question of a lookout. It changes nothing, and looks at one key.
struct lookout_question {
  shared_keys keys;
  std::string channel;  // its messages tell of changes
  call (*make)(const lock_keys&);
  function<sight(const redis::outcome&)> read;
};

/// One caller who waits until something is so: a latch is open. It listens on one channel, and asks Redis again when
/// lookout_rules says so. It has nothing in Redis, so its end leaves nothing there.
class lookout final : public cancellable, private subscriber, public std::enable_shared_from_this<lookout> {
 public:
  /// Its caller gets true: it is so; false: it was not, until the deadline.
  lookout(environment& env, lookouts& all, lookout_question question, time_point deadline, answer_handler<bool> done);

  void begin() { perform(rules_.begin()); }
  void cancel() override;
  void fail(error_code error, const char* detail) { end({failure{error, detail}, {}}); }
  /// The engine ends. The caller is not answered.
  void forget_caller() noexcept;

 private:
  friend lookouts;

  void on_subscribed() override { perform(rules_.news()); }
  void on_message(std::string_view) override { perform(rules_.news()); }
  void on_subscribe_failed(error_code error, const std::string& detail) override;

  void perform(const lookout_action& action);
  void set_alarm(time_point until);
  void look();
  void answered(const outcome& outcome);
  void end(answer<bool> answer);

  environment& env_;
  lookouts& all_;
  const lookout_question question_;
  const time_point began_;
  lookout_rules rules_;
  answer_handler<bool> done_;  // emptied when it is answered
  timer alarm_;
  subscription subscription_;
  std::list<std::shared_ptr<lookout>>::iterator listed_;
};

/// The lookouts of one client. It keeps each until its caller is answered.
class lookouts {
 public:
  lookouts() = default;
  lookouts(const lookouts&) = delete;
  lookouts& operator=(const lookouts&) = delete;
  ~lookouts();

  /// Null: the caller was answered at once.
  cancellable_ptr begin(environment& env, lookout_question question, time_point deadline, answer_handler<bool> done);
  /// Answers all callers with this error.
  void fail_all(error_code error, const char* detail);
  bool empty() const noexcept { return under_way_.empty(); }

 private:
  friend lookout;

  std::list<std::shared_ptr<lookout>> under_way_;
};

}  // namespace holdfast::detail
