// SPDX-License-Identifier: BSL-1.0
// The resource is a PostgreSQL database: the one that PGHOST and PGDATABASE name, in which fence.sql was run once.
// A transfer is one transaction behind the fence, on a thread of its own: the thread of the io_context has leases to
// renew.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>

#include "fenced_transaction.hpp"
namespace asio = boost::asio;

class bank {
 public:
  asio::awaitable<bool> transfer(const holdfast::lease& lease, std::string from, std::string to, int amount) {
    auto task = [=, this, token = lease.token().value()]() -> asio::awaitable<bool> {
      co_return fenced(db_.get(), "accounts", token, [&] {
        execute(db_.get(), "UPDATE account SET amount = amount - $1 WHERE name = $2", {std::to_string(amount), from});
        execute(db_.get(), "UPDATE account SET amount = amount + $1 WHERE name = $2", {std::to_string(amount), to});
      });
    };
    co_return co_await asio::co_spawn(thread_, task(), asio::use_awaitable);
  }

 private:
  std::unique_ptr<PGconn, void (*)(PGconn*)> db_{PQconnectdb(""), PQfinish};
  asio::thread_pool thread_{1};  // one for each connection
};

asio::awaitable<void> transfers(holdfast::client& a, holdfast::client& b) {
  bank bank_a, bank_b;
  auto first = co_await a.fenced_mutex("accounts").lock();
  std::cout << "A: 10 from ann to bob: " << co_await bank_a.transfer(first, "ann", "bob", 10) << '\n';
  co_await b.fenced_mutex("accounts").force_unlock();  // an operator frees the lock, and A does not know yet
  auto second = co_await b.fenced_mutex("accounts").lock();
  std::cout << "B: 20 from bob to ann: " << co_await bank_b.transfer(second, "bob", "ann", 20) << '\n';
  std::cout << "A: held() says " << first.held() << '\n';
  std::cout << "A: 50 from ann to bob: " << co_await bank_a.transfer(first, "ann", "bob", 50) << '\n';
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  asio::io_context io;
  holdfast::client a{io.get_executor(), {.url = url}}, b{io.get_executor(), {.url = url}};
  std::cout << std::boolalpha;
  asio::co_spawn(io, transfers(a, b), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   A: 10 from ann to bob: true
//   B: 20 from bob to ann: true
//   A: held() says true
//   A: 50 from ann to bob: false
