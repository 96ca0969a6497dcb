// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/this_coro.hpp>

#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/hold_breaking.hpp"
#include "cli/lock_text.hpp"
#include "cli/output.hpp"
#include "cli/server/lock_reader.hpp"

namespace holdfast::cli {
namespace {

json::object json_of_freed(const std::string& name, bool had_holder, const std::optional<lock_facts>& lock) {
  json::object line;
  put_bytes(line, "name", name);
  line["freed"] = had_holder;
  line["holder"] = nullptr;
  line["permits"] = nullptr;
  line["readers"] = nullptr;
  if (lock && lock->permits)
    line["permits"] = json_of(*lock->permits, lock->holds);
  else if (lock && lock->is_read)
    line["readers"] = json_of_readers(*lock);
  else if (lock)
    put_bytes(line, "holder", lock->first().holder);
  return line;
}

/// A line for each hold that was broken.
std::string text_of_freed(const std::string& name, const std::optional<lock_facts>& lock) {
  const auto freed = shown(name) + " is freed";
  if (!lock) return freed;
  std::string text;
  const auto* held = lock->permits   ? "; a permit was held by "
                     : lock->is_read ? "; it was read by "
                                     : "; it was held by ";
  for (const auto& hold : lock->holds) {
    text += (text.empty() ? "" : "\n") + freed + held + shown(hold.holder);
    if (hold.process) text += ", process " + process_text(hold.process);
  }
  if (const auto more = lock->hidden(); more > 0)
    text += '\n' + freed + "; " + std::to_string(more) + (lock->permits ? " more permits were out" : " more read it");
  return text;
}

}  // namespace

asio::awaitable<int> free_lock(free_options options) {
  const auto given = config_of(options.access);
  const auto settings = detail::resolve(given);
  network over(co_await asio::this_coro::executor);
  const auto reader = co_await lock_reader::open(over, settings);
  const auto key = co_await reader->read(options.lock.name);
  if (const auto why = refusal_of(key, options.lock); !why.empty()) {
    complain(shown(options.lock.name) + " was not freed: " + why);
    co_return no_lock;
  }
  client redis(co_await asio::this_coro::executor, given);
  const bool had_holder = co_await break_hold(redis, given, options.lock, key);
  if (options.access.json) {
    print(json_of_freed(options.lock.name, had_holder, key.lock));
  } else if (!had_holder) {
    print(shown(options.lock.name) + " was free");
  } else {
    print(text_of_freed(options.lock.name, key.lock));
  }
  co_return done;
}

}  // namespace holdfast::cli
