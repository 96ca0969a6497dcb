// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string>

#include "protocol/kind.hpp"

namespace holdfast::detail {

/// Redisson's RReadWriteLock: the two sides of one lock, with one layout.
HOLDFAST_EXPORT extern const kind shared_writer;
HOLDFAST_EXPORT extern const kind shared_reader;

/// The steps that only a shared mutex has. The keys are of its side. A field is the same number on both sides: the
/// calls of a writer add ":write".
namespace shared_lock {

call read_acquire(const lock_keys&, milliseconds ttl, const owner_field&, standing);
call write_acquire(const lock_keys&, milliseconds ttl, const owner_field&, standing);
/// A departure with `leave` also ends the place of a field that was never granted. The answer is then empty.
call read_release(const lock_keys&, const owner_field&, const departure&);
call write_release(const lock_keys&, const owner_field&, const departure&);

/// A write hold becomes a read hold, and no other client can write in between. True: it is one, also after a second
/// copy.
call downgrade(const lock_keys&, milliseconds ttl, const owner_field&, milliseconds reserve);
answer<bool> read_downgrade(const redis::outcome&);

call state(const lock_keys&);
answer<shared_state> read_state(const redis::outcome&);

/// Of a read grant: why waiting clients are not counted, so that readers do not wait for writers. Empty: they are.
std::optional<failure> uncounted_waiters(const redis::outcome&);

/// The channel on which a client is asked to write.
std::string wake_channel_of(const lock_keys&, const uuid& client);
/// The channel without messages, by which our waiters are told from peers. Each subscriber of the lock's channel
/// subscribes to this one first.
std::string waiters_channel_of(const lock_keys&);

}  // namespace shared_lock
}  // namespace holdfast::detail
