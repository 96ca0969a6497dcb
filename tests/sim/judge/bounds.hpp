// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>

#include <holdfast/config.hpp>

#include "sim/sim_client.hpp"

/// How long each promise may take. A bound that depends on the configuration is a function of it.
namespace holdfast::sim::bounds {

/// The longest pause before a retry: the cap of the library's retry_backoff, of renewal_retry_pause(), and
/// reconnect_backoff::hopeless.
constexpr nanoseconds retry = std::chrono::seconds(1);
/// The time until a wake-up is followed, after many that were for nothing.
constexpr nanoseconds wake_up = detail::wake_budget::interval;
/// A message, a new connection with its handshake, a command that the node has forgotten and its repetition: ten ways
/// of 3 ms at most each.
constexpr nanoseconds journey = std::chrono::milliseconds(30);
/// The time until a holder knows that its key has changed, from when the push reached it.
constexpr nanoseconds told = std::chrono::milliseconds(50);
/// The pause before a command is sent again that could not run while a slot moved.
constexpr nanoseconds longest_redirect_pause = std::chrono::milliseconds(100);
/// The interval at which the judge looks for states that are overdue only after many milliseconds. It misses none that
/// lasts longer.
constexpr nanoseconds glance = std::chrono::milliseconds(1);
/// The time in which a first waiter for several permits closes the door: the longest cool-down of its client, and the
/// pause until it asks again.
constexpr nanoseconds door = std::chrono::milliseconds(1500);
/// The longest pause between two attempts of a client with a place in the queue of a shared mutex.
constexpr nanoseconds look = std::chrono::milliseconds(500);
/// Of a shared mutex: an unlock, the message to the next client, its command and the answer. Each way takes 2 ms at
/// most, and a command that the node has forgotten is repeated.
constexpr nanoseconds hand_over = std::chrono::milliseconds(15);
/// Of a fair mutex: the time in which a client that does not come when it is called is called again and skipped.
constexpr nanoseconds skipped = std::chrono::milliseconds(430);
/// The time in which the first calls of a client make its connections, and the node learns the scripts.
constexpr nanoseconds first_connections = std::chrono::milliseconds(200);
/// The time after a grant in which readers of a client join its hold, and in which its writers pass theirs on.
constexpr nanoseconds joining = std::chrono::milliseconds(5), stint = std::chrono::milliseconds(20);
/// The time for which holds of a shared mutex are remembered. No bound is longer.
constexpr nanoseconds remembered = std::chrono::seconds(5);
/// The time in which callers that divide the nodes among themselves have a winner. They give back and try again after
/// random pauses of up to a second.
constexpr nanoseconds contest = std::chrono::seconds(5);
/// The time in which a client that is awake connects to the primary that its sentinels name. It asks them each second.
constexpr nanoseconds followed = std::chrono::seconds(2);

/// An attempt to connect that times out, and the longest pause before the next.
inline nanoseconds reconnection(const config& c) { return c.connect_timeout + c.reconnect_cap; }

/// The time after a trouble in which each command of the trouble is answered or sent again.
inline nanoseconds undisturbed(const config& c) { return c.command_timeout + retry + reconnection(c); }

/// A waiter sleeps for the TTL that the node has told, and no longer than this.
inline nanoseconds longest_sleep(const config& c) { return c.poll_cap; }

/// The delay of a sleeper whose clock is slower than the world's.
inline nanoseconds late_by_clock(const config& c) {
  return std::chrono::duration_cast<nanoseconds>(longest_sleep(c) * c.drift);
}

}  // namespace holdfast::sim::bounds
