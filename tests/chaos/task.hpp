// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
  std::string server;  // with the locks, past all proxies
  std::uint64_t last_operation = 0;
  bool stopping = false;
  bool ended = false;  // with the last task, and the shutdown of the clients

  std::uint64_t next_operation() { return ++last_operation; }
};

/// One logical task, one owner: takes one lock after the other, works under it, and writes down what it was told.
class task {
 public:
  using next_section = std::function<section(dice&)>;

  task(workplace& place, client& redis, std::size_t client_number, std::uint64_t seed, next_section draw);

  /// Returns when the workplace is stopping and its last section has ended.
  asio::awaitable<void> run();

 private:
  struct hold;  // what it has in hand

  asio::awaitable<void> break_lock(const section& s);
  asio::awaitable<void> work_under(const section& s);
  asio::awaitable<void> work_inside(const section& s);
  asio::awaitable<void> work_as_body(std::uint64_t operation, lease& l, const section& s);
  mutex mutex_of(const section& s) const;
  asio::awaitable<std::optional<lease>> acquire(const section& s, std::uint64_t operation);
  asio::awaitable<void> check_key(std::uint64_t operation, const lease& l);
  asio::awaitable<void> reenter(hold& h, const section& s);
  asio::awaitable<void> check_count(hold& h);
  asio::awaitable<void> linger(hold& h, const section& s);
  asio::awaitable<void> renew(hold& h);
  void feed(hold& h);
  void use_resource(std::uint64_t operation, const lease& l, long long counter, const section& s);
  asio::awaitable<void> release(std::shared_ptr<hold> h, const section& s);
  void drop(hold& h);
  asio::awaitable<bool> unlock(hold& h, lease& l, std::size_t left);
  asio::awaitable<void> check_gone(const hold& h);
  void tell_request(std::uint64_t operation, const section& s, bool as_body = false);
  void tell_grant(std::uint64_t operation, const lease& l);
  void tell_release(std::uint64_t operation, std::size_t left, const result<void>& done);
  bool look(std::uint64_t operation, const lease& l);
  void watch(const std::shared_ptr<hold>& h);

  workplace& place_;
  client& redis_;
  const std::size_t client_number_;
  dice dice_;
  const next_section draw_;
  owner self_;
  key_witness witness_;
  std::vector<std::shared_ptr<hold>> abandoned_;
};

}  // namespace holdfast::chaos
