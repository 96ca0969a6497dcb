// SPDX-License-Identifier: BSL-1.0
#include "sync/worker/worker_table.hpp"

#include <algorithm>
#include <utility>

#include "base/cancelled.hpp"

namespace holdfast::detail {

class worker_table::pending_pause final : public cancellable {
 public:
  pending_pause(worker_table& table, done_handler done)
      : table_(table), alarm_(table.env_.alarms), done_(std::move(done)) {}

  void start(time_point end) {
    alarm_.start(end, [this] { this->end({}); });
  }
  void cancel() override { end(failure{cancelled(), {}}); }
  /// Once: it leaves the table.
  void end(const std::optional<failure>& failed) {
    const auto done = std::exchange(done_, {});
    if (!done) return;
    alarm_.stop();
    const auto own = std::find_if(table_.pauses_.begin(), table_.pauses_.end(),
                                  [this](const auto& each) { return each.get() == this; });
    const auto keep = std::move(*own);
    table_.pauses_.erase(own);
    done(failed);
  }

 private:
  worker_table& table_;
  timer alarm_;
  done_handler done_;  // empty: it has ended
};

worker_table::~worker_table() = default;

cancellable_ptr worker_table::pause(nanoseconds shortest, nanoseconds longest, done_handler done) {
  if (drains_) {
    done(failure{errc::shutting_down, {}});
    return nullptr;
  }
  const auto added = std::make_shared<pending_pause>(*this, std::move(done));
  pauses_.push_back(added);
  added->start(saturating_add(env_.now(), shortest + env_.random.up_to(longest - shortest)));
  return added;
}

void worker_table::move(const counted_worker_ptr& worker, worker_move to) {
  if (closed_ || to.number <= worker->last.number) return;
  const bool was_there = worker->last.to != worker_state::stopped;
  const bool stays = to.to != worker_state::stopped;
  if (!was_there && stays) counted_.push_back(worker);
  if (was_there) count(measurement_kind::worker_left, *worker);
  worker->last = std::move(to);
  if (stays) count(measurement_kind::worker_entered, *worker);
  if (was_there && !stays) counted_.remove(worker);
}

void worker_table::run_ended(const counted_worker& worker, std::string_view name, run_outcome outcome) const {
  if (!env_.settings.observer) return;
  env_.settings.observer->measured(
      {.kind = measurement_kind::worker_run_ended, .lock_kind = worker.lock_kind, .name = name, .outcome = outcome});
}

void worker_table::count(measurement_kind kind, const counted_worker& worker) const {
  if (!env_.settings.observer) return;
  env_.settings.observer->measured(
      {.kind = kind, .lock_kind = worker.lock_kind, .name = worker.last.name, .state = worker.last.to});
}

void worker_table::drain() {
  drains_ = true;
  while (!pauses_.empty()) pauses_.front()->end(failure{errc::shutting_down, {}});
}

void worker_table::close() {
  drain();
  closed_ = true;
  for (const auto& worker : counted_) count(measurement_kind::worker_left, *worker);
  counted_.clear();
}

}  // namespace holdfast::detail
