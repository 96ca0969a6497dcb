// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/this_coro.hpp>

#include "cli/acquisition.hpp"
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/lock_text.hpp"
#include "cli/output.hpp"
#include "cli/server/lock_reader.hpp"

namespace holdfast::cli {
namespace {

/// The reason why the key is left alone; empty: it may be freed.
std::string refusal_of(const key_facts& key, bool simple_given) {
  if (!key.refusal.empty() || key.type.empty() || key.type == "none" || key.lock) return {};
  if (key.type == "hash") return "its hash is no lock of holdfast or Redisson";
  if (key.type != "string") return "it is a " + shown(key.type);
  if (simple_given) return {};
  return "it is a string of another program; if that is a lock, give --simple";
}

}  // namespace

asio::awaitable<int> free_lock(free_options options) {
  const auto given = config_of(options.access);
  const auto settings = detail::resolve(given);
  network over(co_await asio::this_coro::executor);
  const auto reader = co_await lock_reader::open(over, settings);
  const auto key = co_await reader->read(options.lock.name);
  if (const auto why = refusal_of(key, options.lock.simple); !why.empty()) {
    complain(shown(options.lock.name) + " was not freed: " + why);
    co_return no_lock;
  }
  options.lock.simple = options.lock.simple || key.type == "string";

  client redis(co_await asio::this_coro::executor, given);
  const auto lock = mutex_of(redis, options.lock, given);
  const auto free = [&] { return lock.force_unlock(); };
  const bool had_holder = co_await first_call<bool>(given, free);
  if (options.access.json) {
    json::object line;
    put_bytes(line, "name", options.lock.name);
    line["freed"] = had_holder;
    line["holder"] = nullptr;
    if (key.lock) put_bytes(line, "holder", key.lock->holder);
    print(line);
  } else if (!had_holder) {
    print(shown(options.lock.name) + " was free");
  } else {
    const auto holder = key.lock ? "; it was held by " + shown(key.lock->holder) : std::string();
    const auto process = key.lock && key.lock->process ? ", process " + process_text(key.lock->process) : std::string();
    print(shown(options.lock.name) + " is freed" + holder + process);
  }
  co_await redis.shutdown(milliseconds(500));
  co_return done;
}

}  // namespace holdfast::cli
