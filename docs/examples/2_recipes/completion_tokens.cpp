// SPDX-License-Identifier: BSL-1.0
// Every function of the library that waits returns an awaitable. co_spawn(executor, that, token) serves each other
// completion token: a callback, a future, a deferred operation, errors as values. yield_context.cpp has another.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;

void callback(holdfast::client& redis, std::promise<void>& done) {
  auto use = [&](std::exception_ptr failed, holdfast::lease lease) {  // the lease is the hold: keep it while you work
    std::cout << "callback: " << (!failed && lease.held() ? "held" : "failed") << '\n';
    done.set_value();
  };
  asio::co_spawn(redis.get_executor(), redis.mutex("a").lock(), use);
}

void future(holdfast::client& redis) {  // never on a thread that runs the client: it would wait for itself
  holdfast::lease lease = asio::co_spawn(redis.get_executor(), redis.mutex("b").lock(), asio::use_future).get();
  std::cout << "use_future: " << (lease.held() ? "held" : "lost") << '\n';
  asio::co_spawn(redis.get_executor(), lease.unlock(), asio::use_future).get();  // a loss throws here
}

asio::awaitable<void> deferred(holdfast::client& redis) {  // begins when it is awaited, on the executor given here
  auto begin = asio::co_spawn(redis.get_executor(), redis.mutex("c").lock(), asio::deferred);
  holdfast::lease lease = co_await std::move(begin)(asio::use_awaitable);
  std::cout << "deferred: " << (lease.held() ? "held" : "lost") << '\n';
}

asio::awaitable<void> tuple(holdfast::client& redis) {  // for codes instead of exceptions as_result() is shorter
  const auto here = co_await asio::this_coro::executor;
  auto [failed, lease] = co_await asio::co_spawn(here, redis.mutex("").lock(), asio::as_tuple(asio::use_awaitable));
  std::cout << "as_tuple: " << (failed ? "failed" : "held") << '\n';
  std::cout << "as_result: " << (co_await holdfast::as_result(redis.mutex("").lock())).error().message() << '\n';
}

int main(int argc, char** argv) {
  asio::thread_pool pool(1);
  holdfast::client redis{pool, {.url = argc > 1 ? argv[1] : "redis://localhost"}};
  std::promise<void> called;
  callback(redis, called);
  called.get_future().wait();
  future(redis);
  asio::co_spawn(pool, deferred(redis), asio::use_future).get();
  asio::co_spawn(pool, tuple(redis), asio::use_future).get();
  pool.join();
}

// Output:
//   callback: held
//   use_future: held
//   deferred: held
//   as_tuple: failed
//   as_result: invalid name
