// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>

#include "sync/engine.hpp"

namespace holdfast::detail {

namespace asio = boost::asio;

/// What mutexes and leases refer to weakly: the engine, and the strand on which alone it may be touched.
class core : public std::enable_shared_from_this<core> {
 public:
  using strand_type = asio::strand<asio::any_io_executor>;

  explicit core(strand_type strand) : strand_(std::move(strand)) {}
  virtual ~core() = default;

  const strand_type& strand() const noexcept { return strand_; }
  virtual engine& locks() noexcept = 0;
  /// engine::close(), then the connections. On the strand.
  virtual void close(nanoseconds grace, function<void()> done) = 0;
  /// The same at once, for a context that is going, or was copied into a child process: callers are answered.
  virtual void abandon() = 0;

 private:
  const strand_type strand_;
};

/// The way from the inside to the private parts of public types.
struct access {
  static lease make_lease(std::shared_ptr<lease_record> record) {
    lease l;
    l.record_ = std::move(record);
    return l;
  }
  static const std::shared_ptr<lease_record>& record(const lease& l) { return l.record_; }
  /// `Mutex`: mutex or a kind of it.
  template <class Mutex>
  static Mutex make_mutex(const std::shared_ptr<core>& c, std::string_view name, std::optional<holdfast::owner> who) {
    return {c, std::make_shared<const lock_keys>(name, c ? c->locks().settings().key_prefix : std::string_view()), who};
  }
};

}  // namespace holdfast::detail
