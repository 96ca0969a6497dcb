// SPDX-License-Identifier: BSL-1.0
#include <holdfast/blocking/client.hpp>

#include <string>
#include <utility>
#include <vector>

#include "blocking/access.hpp"
#include "blocking/io_thread.hpp"
#include "blocking/lock_core.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking {
namespace {

/// `Lock`: the blocking lock; `Underlying`: the same lock of coroutines.
template <class Lock, class Underlying>
Lock lock_of(const std::shared_ptr<detail::io_thread>& io, Underlying lock, lock_options terms) {
  std::string name = lock.name();
  return detail::access::make<Lock>(
      std::make_shared<detail::lock_core>(std::vector{io}, detail::any_lock(std::move(lock)), terms, std::move(name)));
}

}  // namespace

client::client(config config) : io_(detail::io_thread::start(std::move(config))) {}

client& client::operator=(client&& other) noexcept {
  detail::replace(io_, std::move(other.io_));
  return *this;
}

client::~client() { detail::end(io_); }

const std::shared_ptr<detail::io_thread>& client::io() const {
  if (!io_) throw error(errc::closed, "the blocking client was moved from");
  return io_;
}

void client::run(asio::awaitable<void> operation) const {
  const auto io = this->io();  // this object may end while it waits
  io->run(this_thread(), std::move(operation), errc::closed);
}

void client::connect() {
  const auto io = this->io();  // as above
  io->run(this_thread(), async().connect(), errc::shutting_down);
}

void client::shutdown(milliseconds grace) { run(async().shutdown(grace)); }

void client::drain(milliseconds grace) { run(async().drain(grace)); }

blocking::mutex client::mutex(std::string_view name, lock_options terms) const {
  return lock_of<blocking::mutex>(io(), async().mutex(name), terms);
}

blocking::fenced_mutex client::fenced_mutex(std::string_view name, lock_options terms) const {
  return lock_of<blocking::fenced_mutex>(io(), async().fenced_mutex(name), terms);
}

blocking::simple_mutex client::simple_mutex(std::string_view name, lock_options terms) const {
  return lock_of<blocking::simple_mutex>(io(), holdfast::mutex(async().simple_mutex(name)), terms);
}

blocking::fair_mutex client::fair_mutex(std::string_view name, lock_options terms) const {
  return lock_of<blocking::fair_mutex>(io(), async().fair_mutex(name), terms);
}

blocking::expirable_semaphore client::expirable_semaphore(std::string_view name, unsigned permits,
                                                          lock_options terms) const {
  const auto io = this->io();
  auto of = async().expirable_semaphore(name, permits);
  auto core = std::make_shared<detail::lock_core>(std::vector{io}, detail::any_lock(of.as_mutex()), terms, of.name());
  return detail::access::make_semaphore(std::move(core), std::move(of));
}

blocking::shared_mutex client::shared_mutex(std::string_view name, lock_options terms) const {
  auto of = async().shared_mutex(name);
  auto writer = lock_of<blocking::mutex>(io(), of.writer(), terms);
  auto reader = lock_of<blocking::mutex>(io(), of.reader(), terms);
  return detail::access::make_shared_mutex(std::move(writer), std::move(reader), std::move(of));
}

blocking::election client::election(std::string_view name, std::string value, lock_options terms) const {
  auto of = async().election(name);
  auto candidate = lock_of<blocking::mutex>(io(), of.candidate(std::move(value)), terms);
  return detail::access::make_election(std::move(candidate), std::move(of));
}

blocking::latch client::latch(std::string_view name) const {
  return detail::access::make_latch(io(), async().latch(name));
}

blocking::red_lock client::red_lock(std::string_view name, lock_options terms, reentrancy nested) const {
  return lock_of<blocking::red_lock>(io(), holdfast::mutex(async().red_lock(name, nested)), terms);
}

holdfast::client& client::async() const { return io()->client(); }

holdfast::owner client::this_thread() noexcept { return detail::this_thread(); }

}  // namespace holdfast::blocking
