// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/this_coro.hpp>

#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/lock_text.hpp"
#include "cli/output.hpp"
#include "cli/server/lock_reader.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* counter_text =
    " with a number. A latch, a semaphore without permits out, an RSemaphore and a counter look alike";

}  // namespace

asio::awaitable<int> list(list_options options) {
  const auto settings = detail::resolve(config_of(options.access));
  network over(co_await asio::this_coro::executor);
  const auto reader = co_await lock_reader::open(over, settings);
  if (options.any_string) reader->include_any_string();
  const bool as_json = options.access.json;
  if (!as_json) print(painted(colour::faint, line_of_titles()));
  const lock_reader::finder found = [as_json](const lock_facts& lock) {
    as_json ? print(json_of(lock)) : print(lines_of(lock));
  };
  co_await reader->scan(options.pattern, found);
  co_return done;
}

asio::awaitable<int> inspect(inspect_options options) {
  const auto settings = detail::resolve(config_of(options.access));
  network over(co_await asio::this_coro::executor);
  const auto reader = co_await lock_reader::open(over, settings);
  reader->include_any_string();
  const auto key = co_await reader->read(options.name);
  if (!key.refusal.empty()) throw error(errc::no_permission, key.refusal);
  const bool is_free = key.type == "none";
  if (options.access.json) {
    json::object line;
    if (key.lock)
      line = json_of(*key.lock);
    else
      put_bytes(line, "name", options.name);
    line["state"] = key.lock ? "held" : is_free ? "free" : "no lock";
    line["type"] = key.type;
    print(line);
  } else if (key.lock) {
    print(paragraph_of(*key.lock));
  } else if (is_free) {
    print(shown(options.name) + " is free");
  } else {
    print(shown(options.name) + " is no lock: a " + shown(key.type) + (key.counter ? counter_text : ""));
  }
  co_return key.lock || is_free ? done : no_lock;
}

}  // namespace holdfast::cli
