// SPDX-License-Identifier: BSL-1.0
#include "sync/release/unlock_time_budget.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace holdfast::detail {

class unlock_time_budget::waiting_caller : public std::enable_shared_from_this<waiting_caller> {
 public:
  waiting_caller(unlock_time_budget& of, shared_keys keys, done_handler done)
      : of_(of), keys_(std::move(keys)), since_(of.env_.now()), done_(std::move(done)), alarm_(of.env_.alarms) {}

  void wait(time_point until) {
    // A weak reference: the handler that limit() has returned owns this object, and may be destroyed uncalled.
    alarm_.start(until, [id = weak_from_this()] {
      if (const auto still = id.lock()) still->give_up();
    });
  }
  void answer(const std::optional<failure>& failed) {
    alarm_.stop();
    if (done_) std::exchange(done_, {})(failed);
  }

 private:
  void give_up() {
    // The change before it waits in the queue of a connection that is alive. That is load, not silence.
    const auto& env = of_.env_;
    if (env.servers.answering(keys_->lock)) return wait(env.now() + env.settings.command_timeout);
    of_.ran_out(keys_->lock, since_);
    answer(unanswered());
  }

  unlock_time_budget& of_;
  const shared_keys keys_;
  const time_point since_;
  done_handler done_;  // emptied when it is answered
  timer alarm_;
};

time_point unlock_time_budget::answer_by(std::string_view key, time_point now, nanoseconds budget) {
  // In an outage every unlock ends one budget after the first silent one was called, or at once if that has passed.
  const auto silent = silence_of(key);
  return silent == silent_since_.end() ? now + budget : std::clamp(silent->second + budget, now, now + budget);
}

void unlock_time_budget::ran_out(std::string_view key, time_point since) noexcept try {
  // The unlock may have waited for another server than the one that has the key now.
  if (since < moved_) return;
  // The server has answered another command since. This unlock was late, but the server is not silent.
  if (env_.servers.answered_since(key, since)) return;
  if (silence_of(key) == silent_since_.end()) silent_since_.emplace(env_.servers.node_of(key), since);
} catch (const std::bad_alloc&) {
  // Without memory the silence is not remembered. The next unlock waits its whole budget as well.
}

done_handler unlock_time_budget::limit(const shared_keys& keys, time_point deadline, done_handler done) {
  const auto caller = std::make_shared<waiting_caller>(*this, keys, std::move(done));
  caller->wait(deadline);
  return [caller](const std::optional<failure>& failed) { caller->answer(failed); };
}

unlock_time_budget::silences::iterator unlock_time_budget::silence_of(std::string_view key) {
  // Nearly always no server is silent. The unlock then does not look for the node of its key.
  if (silent_since_.empty()) return silent_since_.end();
  const auto found = silent_since_.find(env_.servers.node_of(key));
  if (found == silent_since_.end() || !env_.servers.answered_since(key, found->second)) return found;
  // Any answer ends a silence: the state of the server matters, and not the command.
  silent_since_.erase(found);
  return silent_since_.end();
}

}  // namespace holdfast::detail
