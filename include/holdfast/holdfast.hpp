// SPDX-License-Identifier: BSL-1.0
#pragma once
// Everything for coroutines. For plain threads include holdfast/blocking.hpp.
#include <holdfast/any_of.hpp>
#include <holdfast/client.hpp>
#include <holdfast/config.hpp>
#include <holdfast/election.hpp>
#include <holdfast/error.hpp>
#include <holdfast/expirable_semaphore.hpp>
#include <holdfast/fair_mutex.hpp>
#include <holdfast/fenced_mutex.hpp>
#include <holdfast/keep_running.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/red_lock.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/simple_mutex.hpp>
#include <holdfast/version.hpp>
#include <holdfast/with_lock.hpp>
#include <holdfast/worker_monitor.hpp>
