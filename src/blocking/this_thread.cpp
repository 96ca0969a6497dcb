// SPDX-License-Identifier: BSL-1.0
#include "blocking/this_thread.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/backoff.hpp"
#include "base/random.hpp"

namespace holdfast::blocking::detail {
namespace {

/// Through which locks this thread holds something.
class held_by_thread {
 public:
  held_by_thread() = default;
  held_by_thread(const held_by_thread&) = delete;
  held_by_thread& operator=(const held_by_thread&) = delete;
  ~held_by_thread();

  void add(const std::shared_ptr<thread_end_listener>& through) {
    // Those whose objects have ended meanwhile need room as well: never more than as many as live.
    if (all_.size() == all_.capacity()) std::erase_if(all_, [](const auto& each) { return each.lock.expired(); });
    all_.push_back({through.get(), through});
  }
  bool empty() const noexcept {
    return std::all_of(all_.begin(), all_.end(), [](const auto& each) { return each.lock.expired(); });
  }
  void remove(const thread_end_listener& through) noexcept {
    const auto found = std::find_if(all_.rbegin(), all_.rend(),
                                    [&](const auto& each) { return each.address == &through && !each.lock.expired(); });
    if (found == all_.rend()) return;
    *found = std::move(all_.back());
    all_.pop_back();
  }

 private:
  struct entry {
    const thread_end_listener* address;
    std::weak_ptr<thread_end_listener> lock;
  };
  std::vector<entry> all_;
};

/// How long a thread rests whose tries fail. In the end many times what a try takes, on a slow machine as well: threads
/// that rest for less than the others need for their tries would try for ever.
class rest {
 public:
  void note_failed_try() noexcept { failed_ = true; }
  /// It has given back all that it had: all that it wanted, if no try has failed since.
  void note_end() noexcept {
    if (!failed_) pause_.reset();
  }
  void take() {
    if (std::exchange(failed_, false)) std::this_thread::sleep_for(pause_.next(random_));
  }

 private:
  bool failed_ = false;
  holdfast::detail::retry_backoff pause_{std::chrono::milliseconds(1), std::chrono::seconds(1)};
  holdfast::detail::system_random random_;
};

thread_local rest between_tries;
thread_local bool ended = false;  // trivial: it may be asked when the other is gone
thread_local held_by_thread of_this_thread;

/// For what is locked after of_this_thread has gone, by the destructor of another thread_local object: what belongs to
/// a key of POSIX is destroyed after all of these. But it does not keep a shared library loaded until then, and is not
/// destroyed in the main thread; thread_local objects do, and are.
const std::optional<pthread_key_t>& key_of_late_holds() noexcept {
  static const auto key = []() -> std::optional<pthread_key_t> {
    pthread_key_t made{};
    const auto end = [](void* all) { delete static_cast<held_by_thread*>(all); };
    return ::pthread_key_create(&made, end) == 0 ? std::optional(made) : std::nullopt;
  }();
  return key;
}

/// Null: there are none.
held_by_thread* late_holds() noexcept {
  const auto& key = key_of_late_holds();
  return key ? static_cast<held_by_thread*>(::pthread_getspecific(*key)) : nullptr;
}

held_by_thread& must_have_late_holds() {
  if (auto* const all = late_holds()) return *all;
  const auto& key = key_of_late_holds();
  auto made = std::make_unique<held_by_thread>();
  if (!key || ::pthread_setspecific(*key, made.get()) != 0) throw std::bad_alloc();
  return *made.release();
}

held_by_thread::~held_by_thread() {
  ended = true;
  for (const auto& each : all_)
    if (const auto still = each.lock.lock()) still->thread_ends(this_thread());
}

}  // namespace

owner this_thread() noexcept {
  thread_local const owner me;
  return me;
}

void note_hold(const std::shared_ptr<thread_end_listener>& through) {
  (ended ? must_have_late_holds() : of_this_thread).add(through);
}

void forget_hold(const thread_end_listener& through) noexcept {
  auto* const all = ended ? late_holds() : &of_this_thread;
  if (!all) return;
  all->remove(through);
  if (!ended && all->empty()) between_tries.note_end();
}

void note_failed_try() {
  if (!ended && !of_this_thread.empty()) between_tries.note_failed_try();
}

void rest_after_failed_tries() { between_tries.take(); }

}  // namespace holdfast::blocking::detail
