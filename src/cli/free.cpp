// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <optional>
#include <string>

#include "cli/acquisition.hpp"
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/lock_text.hpp"
#include "cli/output.hpp"
#include "cli/server/lock_reader.hpp"

namespace holdfast::cli {
namespace {

constexpr long long most_total = 2'147'483'647;

/// The reason why the key is left alone; empty: it may be freed.
std::string refusal_of(const key_facts& key, const lock_options_given& wanted) {
  if (key.lock && key.lock->permits && !key.lock->permits->left && wanted.permits == 0)
    return "the counter of this semaphore is missing: give its number with --permits";
  if (!key.refusal.empty() || key.type.empty() || key.type == "none" || key.lock) return {};
  if (key.type == "hash") return "its hash is no lock of holdfast or Redisson";
  if (key.type != "string") return "it is a " + shown(key.type);
  if (wanted.simple || wanted.permits > 0) return {};
  if (key.counter) return "it is a number; if that is a semaphore, give --permits";
  return "it is a string of another program; if that is a lock, give --simple";
}

/// The kind that the key has, where the command line does not say so.
void complete(lock_options_given& wanted, const key_facts& key) {
  if (wanted.simple || wanted.permits > 0) return;
  wanted.exclusive = key.lock && key.lock->is_shared;
  wanted.election = key.lock && key.lock->leader;
  wanted.simple = key.type == "string" && !(key.lock && key.lock->permits);
  if (wanted.simple || !key.lock || !key.lock->permits) return;
  const auto& permits = *key.lock->permits;  // the script needs the total for a missing counter alone
  wanted.permits = static_cast<unsigned>(std::clamp(permits.out + permits.left.value_or(0), 1LL, most_total));
}

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
  complete(options.lock, key);

  client redis(co_await asio::this_coro::executor, given);
  const auto lock = mutex_of(redis, options.lock, given);
  const auto free = [&] { return lock.force_unlock(); };
  const bool had_holder = co_await first_call<bool>(given, free);
  if (options.access.json) {
    print(json_of_freed(options.lock.name, had_holder, key.lock));
  } else if (!had_holder) {
    print(shown(options.lock.name) + " was free");
  } else {
    print(text_of_freed(options.lock.name, key.lock));
  }
  co_await redis.shutdown(milliseconds(500));
  co_return done;
}

}  // namespace holdfast::cli
