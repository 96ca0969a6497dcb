// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chaos/guarded_resource.hpp"
#include "chaos/history.hpp"
#include "chaos/key_witness.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

namespace asio = boost::asio;

/// What all tasks of one worker process share. One thread.
struct workplace {
  history log;
  guarded_resource resource;
  std::vector<std::string> servers;  // with the locks, past all proxies; none where they replace each other
  std::uint64_t last_operation = 0;
  bool stopping = false;
  bool ended = false;  // with the last task, and the shutdown of the clients

  std::uint64_t next_operation() { return ++last_operation; }
};

/// Writes down what one task is told of its calls and holds, by the number of the operation that asked for each.
class testimony {
 public:
  testimony(workplace& place, const asio::any_io_executor& on, std::size_t client_number);

  /// `locks`: the name, or those of an any_of.
  void asked(std::uint64_t operation, const std::string& locks, lock_name::kind by, const section& s,
             std::optional<std::uint64_t> whole = {});
  void granted(std::uint64_t operation, const lease& l);
  /// No error: contention.
  void not_granted(std::uint64_t operation, const error_code& why);
  /// Looks at the lease as a program would that asks before it goes on.
  bool look(std::uint64_t operation, const lease& l);
  /// Writes down the loss when it is signalled, and tells. Ends by itself when the lease is released.
  void watch(std::uint64_t operation, const lease& l, std::function<void()> lost);
  void renewing(std::uint64_t operation);
  void renewed(std::uint64_t operation, const result<void>& done);
  void releasing(std::uint64_t operation, std::size_t left);
  void released(std::uint64_t operation, std::size_t left, const result<void>& done);
  void unlocked_again(std::uint64_t operation, const result<void>& done);

  /// Whether the key lives as long as its holder believes.
  asio::awaitable<void> check_key(std::uint64_t operation, const lease& l, lock_name::kind by);
  /// After the last unlock, of a lock that nobody else ever asks for.
  asio::awaitable<void> check_gone(std::uint64_t operation, const std::string& lock);

  /// Writes to the guarded resource, without asking whether the lease is held: that is what the resource has to stand.
  /// `counted`: what the counter was at first; nothing: it is left alone. A reader looks whether it is the same.
  void use_resource(std::uint64_t operation, const lease& l, lock_name::kind by, std::optional<long long> counted);

 private:
  workplace& place_;
  const asio::any_io_executor on_;
  const std::size_t client_number_;
  key_witness witness_;
};

}  // namespace holdfast::chaos
