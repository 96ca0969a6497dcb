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

/// The lock objects through which this thread holds something.
class held_by_thread {
 public:
  held_by_thread() = default;
  held_by_thread(const held_by_thread&) = delete;
  held_by_thread& operator=(const held_by_thread&) = delete;
  ~held_by_thread();

  void add(const std::shared_ptr<thread_end_listener>& through) {
    // Entries whose objects have ended are dropped before the list grows: it never has more of them than of live ones.
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

/// The rest of a thread whose tries fail. It grows to many times the duration of a try, on a slow machine as well: with
/// shorter rests than the others' tries the threads would try indefinitely.
class rest {
 public:
  void note_failed_try() noexcept { failed_ = true; }
  /// The thread has given back all its locks. If no try has failed since, it had all that it wanted.
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
thread_local bool ended = false;  // trivial: it may be read after of_this_thread is destroyed
thread_local held_by_thread of_this_thread;

/// For locks that the destructor of another thread_local object takes after the end of of_this_thread. Values of a
/// POSIX key are destroyed after all thread_local objects. They cannot replace of_this_thread: they do not keep a
/// shared library loaded, and are not destroyed in the main thread.
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
  thread_local const owner own;
  return own;
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
