// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/observer.hpp>

#include <memory>

namespace holdfast {

/// The numbers of holdfast::metrics for OpenTelemetry, by the names of its conventions: `holdfast.lock.wait.duration`,
/// `db.client.operation.duration` and so on. For config::observer; any number of clients may have the same one. It uses
/// the meter provider that the process has set when it is made, and no other later. Names of locks are no attribute.
/// Of the CMake target holdfast::otel, which there is where holdfast was built beside opentelemetry-cpp.
std::shared_ptr<observer> otel_metrics();

}  // namespace holdfast
