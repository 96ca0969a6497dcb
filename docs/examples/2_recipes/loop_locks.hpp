// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <holdfast/blocking.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

/// Locks for a program whose event loop is not Asio's. `post` puts a task into that loop, from any thread.
class loop_locks {
 public:
  using task = std::function<void()>;
  using lease = std::shared_ptr<holdfast::lease>;

  loop_locks(holdfast::config settings, std::function<void(task)> post) : post_(post), redis_(std::move(settings)) {}

  /// Waits at most `wait`, then calls back in the loop. No lease and no exception: the lock is busy.
  void lock(const std::string& name, holdfast::owner who, std::chrono::milliseconds wait,
            std::function<void(std::exception_ptr, lease)> done) {
    auto answer = [post = post_, done](std::exception_ptr failed, std::optional<holdfast::lease> got) {
      lease held = got ? std::make_shared<holdfast::lease>(std::move(*got)) : nullptr;
      post([=] { done(failed, held); });
    };
    auto& redis = redis_.async();
    boost::asio::co_spawn(redis.get_executor(), redis.mutex(name, who).try_lock_for(wait), answer);
  }

  /// Calls `stop` in the loop if the lock is lost. A lease that is dropped is released: no loss.
  void on_loss(const lease& held, task stop) {
    auto answer = [post = post_, stop](std::exception_ptr released, holdfast::error_code) {
      if (!released) post(stop);
    };
    boost::asio::co_spawn(redis_.async().get_executor(), held->lost(), answer);
  }

 private:
  std::function<void(task)> post_;
  holdfast::blocking::client redis_;  // has threads of its own, and ends first
};
