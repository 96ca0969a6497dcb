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

/// Several testing::servers that know nothing of each other, and clients whose red_locks a majority of them grants. All
/// have the virtual time of this object. Each is made to go wrong by itself.
///
///     testing::primaries five(io, 5);
///     auto redis = five.make_client();
///     five.run(red_lock::initialise(redis));
///     auto lease = five.run(redis.red_lock("orders").lock());
///     five[0].shut_down();
///     five[1].stop_answering();
///     five.advance(1min);  // lease.held(), by the other three
///
/// A new installation, without markers: see red_lock::initialise(). It ends as testing::server does, in any order.
class primaries : public world {
 public:
  /// `io`: an io_context, where everything runs. `how_many`: 3, 5, 7 or 9; else std::invalid_argument.
  template <runnable_context Context>
  primaries(Context& io, std::size_t how_many) : primaries(context_of(io), how_many) {}
  /// As that of testing::server, for all of them.
  ~primaries();

  std::size_t size() const noexcept { return all_.size(); }
  /// One of them, as long as this object lives; `index`: less than size(). Its time is that of all, its locks() are
  /// what it has granted, and its link_of() is the way between it alone and a client of all. A client that it makes
  /// itself has no other server.
  server& operator[](std::size_t index) noexcept { return *all_[index]; }
  const server& operator[](std::size_t index) const noexcept { return *all_[index]; }

  /// A client of all of them, as testing::server::make_client() makes one. config::primaries may be empty; else it is
  /// checked as in production, and has as many as there are here. Throws invalid_config and invalid_ttl.
  client make_client(config = {});
  client make_client(asio::any_io_executor, config = {});

 private:
  primaries(context, std::size_t how_many);

  std::vector<std::unique_ptr<server>> all_;
};

}  // namespace holdfast::testing
