// SPDX-License-Identifier: BSL-1.0
// Two locks of threads on one name. The engine knows that they are two sides of one lock.
#include <holdfast/blocking/shared_mutex.hpp>

#include <utility>

#include "blocking/access.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking {

shared_mutex::shared_mutex(mutex writer, mutex reader, holdfast::shared_mutex of)
    : mutex(std::move(writer)), reader_(std::move(reader)), of_(std::move(of)) {}

shared_mutex& shared_mutex::operator=(shared_mutex&& other) noexcept {
  if (this == &other) return *this;
  end();
  mutex::operator=(std::move(other));
  reader_ = std::move(other.reader_);
  of_ = std::move(other.of_);
  return *this;
}

shared_mutex::~shared_mutex() { end(); }

// A release of one side would let in a waiter of the other that has not been closed yet.
void shared_mutex::end() noexcept {
  if (!detail::access::has_core(*this) || detail::access::core(*this)->elsewhere()) return;
  const auto writes = detail::access::core(*this)->close();
  const auto reads = detail::access::core(reader_)->close();
}

void shared_mutex::downgrade() {
  const auto writer = detail::access::core(*this), reader = detail::access::core(reader_);  // the object may end
  writer->downgrade(detail::this_thread(), of_, *reader);
}

unsigned shared_mutex::read_holds() const {
  const auto core = detail::access::core(*this);
  return core->home().get(detail::this_thread(), of_.read_holds(), errc::shutting_down);
}

}  // namespace holdfast::blocking
