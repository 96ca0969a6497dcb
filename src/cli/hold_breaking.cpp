// SPDX-License-Identifier: BSL-1.0
#include "cli/hold_breaking.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>

#include <holdfast/client.hpp>

#include "cli/acquisition.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {
namespace {

constexpr long long most_total = 2'147'483'647;

/// The kind that the key has, where the command line does not say so.
void complete(lock_options_given& wanted, const key_facts& key) {
  if (wanted.simple || wanted.permits > 0) return;
  wanted.fair |= key.lock && key.lock->is_fair;
  wanted.exclusive = key.lock && key.lock->is_shared;
  wanted.election = key.lock && key.lock->leader;
  wanted.simple = key.type == "string" && !(key.lock && key.lock->permits);
  if (wanted.simple || !key.lock || !key.lock->permits) return;
  const auto& permits = *key.lock->permits;  // the script needs the total for a missing counter alone
  wanted.permits = static_cast<unsigned>(std::clamp(permits.out + permits.left.value_or(0), 1LL, most_total));
}

}  // namespace

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

asio::awaitable<bool> break_hold(client& redis, config settings, lock_options_given wanted, const key_facts& key) {
  complete(wanted, key);
  const auto lock = mutex_of(redis, wanted, settings);
  const auto free = [&] { return lock.force_unlock(); };
  const bool had_holder = co_await first_call<bool>(settings, free);
  co_await redis.shutdown(milliseconds(500));
  co_return had_holder;
}

}  // namespace holdfast::cli
