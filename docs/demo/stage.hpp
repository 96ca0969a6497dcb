// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "job.hpp"
#include "judge.hpp"
#include "support/child_process.hpp"
#include "timeline.hpp"

namespace holdfast::demo {

namespace asio = boost::asio;

/// A scene cannot go on: something awaited did not happen.
struct scene_failed : std::runtime_error {
  scene_failed(const std::string& expected, const std::string& seen) : runtime_error(seen), expected(expected) {}
  std::string expected;
};

/// A worker process, seen from the demo.
struct actor {
  job what;
  test::child_process process;
  std::deque<news> inbox;  // reported, not yet awaited

  void order(std::string_view word) { process.write(std::string(word) + "\n"); }
};

/// Where the scenes play: starts the workers, hears and shows what they report, and cleans up after them.
class stage {
 public:
  struct setting {
    std::string url;     // the server
    std::string folder;  // for files; not ours to remove
    std::string prefix;  // of all keys; `id` is a part of it
    std::string id;      // occurs in no foreign key
    pid_t server = -1;   // a child process that is no worker
    bool broken_owner_check = false;
  };

  stage(asio::any_io_executor executor, setting where);
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;
  ~stage();  ///< ends the workers and removes their keys

  const setting& where() const noexcept { return where_; }
  std::string key(const std::string& lock) const { return where_.prefix + lock; }

  /// All are ready when this returns.
  asio::awaitable<std::vector<actor*>> start(std::vector<job> jobs);
  asio::awaitable<actor*> start(job one);
  /// Lets them end by themselves, and looks at how they did.
  asio::awaitable<void> end(std::vector<actor*> who);
  asio::awaitable<void> end(actor* one) {
    return end(std::vector<actor*>{one});
  }  // g++ 12: no {one} in a co_await expression
  /// Ends all that still run, by force.
  void clear();

  /// Takes the next report of that kind. Throws scene_failed when it does not come.
  asio::awaitable<news> expect(actor& from, std::string event, milliseconds patience = std::chrono::seconds(10));
  /// Shows what the workers report meanwhile.
  asio::awaitable<void> pause(milliseconds time);
  /// False when it did not become true within `patience`.
  asio::awaitable<bool> until(std::function<bool()> condition, milliseconds patience = std::chrono::seconds(3));

  /// A line of the demo itself, or of the server.
  void say(std::string_view who, std::string_view text, const std::string& lock = {});

  /// No key, no subscription, no process of ours.
  asio::awaitable<void> check_nothing_is_left();

  timeline shown;
  holdfast::demo::judge judge;

 private:
  void hear();

  asio::any_io_executor executor_;
  setting where_;
  std::list<actor> actors_;
  std::vector<std::string> keys_;
};

/// The scenes. Each ends with a verdict.
asio::awaitable<void> contention(stage& on);
asio::awaitable<void> renewal(stage& on);
asio::awaitable<void> killed_holder(stage& on);
asio::awaitable<void> cut_off_holder(stage& on);
asio::awaitable<void> cancelled_waiters(stage& on);
/// Starts servers of its own.
asio::awaitable<void> failover(stage& on);

}  // namespace holdfast::demo
