// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/observer.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "bench/meter.hpp"

namespace holdfast::bench {

/// Whether the tasks lock a name of their own again and again, or each name once.
enum class names { of_tasks, once_each };

/// `pairs` of lock and unlock through one client of the server there, by `width` tasks.
pair_cost holdfast_pairs(const std::string& path, int width, long pairs, names which = names::of_tasks,
                         std::shared_ptr<observer> seen_by = {});

/// The same with config::notes. `note`: of each lock.
pair_cost noted_pairs(const std::string& path, int width, long pairs, std::string_view note);

/// The same by one plain thread, which locks and unlocks a blocking::mutex.
pair_cost blocking_mutex_pairs(const std::string& path, long pairs);

}  // namespace holdfast::bench
