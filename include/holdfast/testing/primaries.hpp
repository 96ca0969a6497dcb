// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/client.hpp>
#include <holdfast/config.hpp>
#include <holdfast/testing/server.hpp>
#include <holdfast/testing/world.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <vector>

namespace holdfast::testing {

/// Several independent testing::servers, and clients whose red_locks a majority of them grants. All share the virtual
/// time of this object. Each can be made to fail separately.
///
///     testing::primaries five(io, 5);
///     auto redis = five.make_client();
///     five.run(red_lock::initialise(redis));
///     auto lease = five.run(redis.red_lock("orders").lock());
///     five[0].shut_down();
///     five[1].stop_answering();
///     five.advance(1min);  // lease.held(), by the other three
///
/// Starts as a new installation, without markers: see red_lock::initialise(). It ends as testing::server does, in any
/// order.
class primaries : public world {
 public:
  /// `io`: an io_context, where everything runs. `how_many`: 3, 5, 7 or 9; else std::invalid_argument.
  template <runnable_context Context>
  primaries(Context& io, std::size_t how_many) : primaries(context_of(io), how_many) {}
  /// As the destructor of testing::server, for all of them.
  ~primaries();

  std::size_t size() const noexcept { return all_.size(); }
  /// One of the servers, valid as long as this object lives. `index`: less than size(). It shares the time of all. Its
  /// locks() are those that it has granted. Its link_of() is the path between it alone and a client of all. A client
  /// made by this server itself has no other server.
  server& operator[](std::size_t index) noexcept { return *all_[index]; }
  const server& operator[](std::size_t index) const noexcept { return *all_[index]; }

  /// A client of all servers, made as by testing::server::make_client(). config::red_lock.primaries may be empty.
  /// Else it is checked as in production and has as many entries as there are servers here. Throws invalid_config and
  /// invalid_ttl.
  client make_client(config = {});
  client make_client(asio::any_io_executor, config = {});

 private:
  primaries(context, std::size_t how_many);

  std::vector<std::unique_ptr<server>> all_;
};

}  // namespace holdfast::testing
