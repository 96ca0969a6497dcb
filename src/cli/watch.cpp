// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <string>
#include <utility>

#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/lock_text.hpp"
#include "cli/output.hpp"
#include "cli/server/lock_watch.hpp"

namespace holdfast::cli {
namespace {

/// A line for each event.
class event_printer final : public lock_watcher {
 public:
  explicit event_printer(const watch_options& options) : options_(options) {}

  void on_event(const lock_event& event) override {
    if (options_.access.json)
      print(json_of(event));
    else
      print(line_of(event));
  }
  milliseconds pause() override { return options_.every; }
  bool is_over() override { return options_.duration && clock::now() - begin_ >= *options_.duration; }

 private:
  using clock = std::chrono::steady_clock;

  const watch_options& options_;
  const clock::time_point begin_ = clock::now();
};

}  // namespace

asio::awaitable<int> watch(watch_options options) {
  const auto settings = detail::resolve(config_of(options.access));
  network over(co_await asio::this_coro::executor);
  event_printer printer(options);
  lock_watch watched(options.pattern, settings, over, printer);
  co_await watched.run();
  co_return done;
}

}  // namespace holdfast::cli
