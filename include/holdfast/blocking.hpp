// SPDX-License-Identifier: BSL-1.0
#pragma once
// The locks for plain threads: no coroutine, no io_context.
#include <holdfast/blocking/client.hpp>
#include <holdfast/blocking/election.hpp>
#include <holdfast/blocking/expirable_semaphore.hpp>
#include <holdfast/blocking/keep_running.hpp>
#include <holdfast/blocking/latch.hpp>
#include <holdfast/blocking/lockable.hpp>
#include <holdfast/blocking/mutex.hpp>
#include <holdfast/blocking/several.hpp>
#include <holdfast/blocking/shared_mutex.hpp>
#include <holdfast/blocking/with_lock.hpp>
