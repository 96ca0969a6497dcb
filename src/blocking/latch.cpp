// SPDX-License-Identifier: BSL-1.0
#include <holdfast/blocking/latch.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "blocking/access.hpp"
#include "blocking/io_thread.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking {
namespace {

/// Waits for the answer of `verb(latch)`. The caller's object may end meanwhile.
template <class Verb>
auto ask(const std::shared_ptr<detail::io_thread>& home, holdfast::latch of, Verb verb) {
  const auto io = home;
  if (!io) throw error(errc::closed, "the latch was moved from");
  auto operation = verb(of);
  if constexpr (std::is_void_v<typename decltype(operation)::value_type>)
    io->run(detail::this_thread(), std::move(operation), errc::shutting_down);
  else
    return io->get(detail::this_thread(), std::move(operation), errc::shutting_down);
}

std::uint32_t checked(const char* text, std::ptrdiff_t given) {
  if (given >= 1 && given <= latch::max()) return static_cast<std::uint32_t>(given);
  throw error(errc::invalid_argument,
              std::string(text) + " of " + std::to_string(given) + " is not in 1 to " + std::to_string(latch::max()));
}

}  // namespace

latch::latch(std::shared_ptr<detail::io_thread> io, holdfast::latch of) : io_(std::move(io)), of_(std::move(of)) {}

latch& latch::operator=(latch&& other) noexcept {
  if (this == &other) return *this;
  if (io_ && io_->elsewhere()) detail::never_end(std::move(io_));
  io_ = std::move(other.io_);
  of_ = std::move(other.of_);
  return *this;
}

latch::~latch() {
  if (io_ && io_->elsewhere()) detail::never_end(std::move(io_));
}

bool latch::try_set(std::ptrdiff_t count) const {
  const auto number = checked("a count", count);
  return ask(io_, of_, [number](const holdfast::latch& of) { return of.try_set(number); });
}

void latch::count_down(std::ptrdiff_t n) const {
  const auto number = checked("a count-down", n);
  ask(io_, of_, [number](const holdfast::latch& of) { return of.count_down(number); });
}

bool latch::try_wait() const {
  return ask(io_, of_, [](const holdfast::latch& of) { return of.try_wait(); });
}

void latch::wait() const {
  ask(io_, of_, [](const holdfast::latch& of) { return of.wait(); });
}

bool latch::wait_within(milliseconds wait) const {
  return ask(io_, of_, [wait](const holdfast::latch& of) { return of.wait_for(wait); });
}

void latch::arrive_and_wait(std::ptrdiff_t n) const {
  const auto number = checked("a count-down", n);
  ask(io_, of_, [number](const holdfast::latch& of) { return of.arrive_and_wait(number); });
}

std::ptrdiff_t latch::count() const {
  return ask(io_, of_, [](const holdfast::latch& of) { return of.count(); });
}

const std::string& latch::name() const noexcept { return of_.name(); }

}  // namespace holdfast::blocking
