// SPDX-License-Identifier: BSL-1.0
// Two locks of threads on one name. The engine knows that they are two sides of one lock.
#include <holdfast/blocking/shared_mutex.hpp>

#include <utility>

#include "blocking/access.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking {

shared_mutex::shared_mutex(mutex writer, mutex reader, holdfast::shared_mutex of)
    : mutex(std::move(writer)), reader_(std::move(reader)), of_(std::move(of)) {}

unsigned shared_mutex::read_holds() const {
  const auto core = detail::access::core(*this);
  return core->home().get(detail::this_thread(), of_.read_holds(), errc::shutting_down);
}

}  // namespace holdfast::blocking
